"""The pages that a person sees at the scripted authorization server, and forms as they come back."""

from __future__ import annotations

import html
from collections.abc import Mapping
from urllib.parse import parse_qsl

from interlock.lab.http_server import Request


def page(title: str, text: str, form: Mapping[str, str] | None = None, action: str = "") -> bytes:
    """A page; with `form` (hidden fields) it has one button to approve and one to deny, posted as `decision`."""
    parts = [
        f"<!doctype html><title>{html.escape(title)}</title><h1>{html.escape(title)}</h1><p>{html.escape(text)}</p>"
    ]
    if form is not None:
        parts.append(f'<form method="post" action="{html.escape(action)}">')
        parts += [
            f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
            for name, value in form.items()
        ]
        parts.append(
            '<button type="submit" name="decision" value="approve">Approve</button>'
            '<button type="submit" name="decision" value="deny">Deny</button></form>'
        )
    return "".join(parts).encode()


def query_of(request: Request) -> dict[str, str]:
    """Query parameters, the first of each."""
    return {name: values[0] for name, values in request.query.items()}


def form_of(request: Request) -> dict[str, str]:
    """A posted form, the first of each field; empty where it is none."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        return {}
    fields: dict[str, str] = {}
    for name, value in parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True):
        fields.setdefault(name, value)
    return fields
