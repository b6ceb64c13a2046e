"""Finds authorize URLs in whatever a bridge says: JSON-RPC messages, lines on standard error, a browser's arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

_URL = re.compile(r"https?://[^\s\"'<>\\^`{|}]+")
_TRAILING = ".,;:!?)]"


def authorize_urls(text: str) -> list[str]:
    """The URLs in `text` that ask for an authorization code, in order, each once.

    A URL counts where its query has `response_type=code` and a `redirect_uri` (RFC 6749 section 4.1.1); everything else
    that looks like a URL (documentation, metadata, the server itself) does not.
    """
    found: dict[str, None] = {}
    for match in _URL.finditer(text):
        url = match.group().rstrip(_TRAILING)
        try:
            query = parse_qs(urlsplit(url).query)
        except ValueError:
            continue
        if query.get("response_type") == ["code"] and "redirect_uri" in query:
            found[url] = None
    return list(found)


def urls_in(value: object) -> list[str]:
    """The authorize URLs in any string of a decoded JSON value, in order, each once."""
    found: dict[str, None] = {}
    for text in _strings(value):
        found.update(dict.fromkeys(authorize_urls(text)))
    return list(found)


def redirect_uri(url: str) -> str:
    """Where the authorization server of an authorize URL sends the browser back to; empty where it names none."""
    return parse_qs(urlsplit(url).query).get("redirect_uri", [""])[0]


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
