"""Masks what the manifest takes from the environment for one server, wherever that server's own words are shown.

The general redactor (journal/redact.py) knows secrets by their shape. These values are known exactly, so they are masked
also where they look like words: servers like to repeat a refused key in their error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from urllib.parse import urlsplit

from interlock.manifest.config import HttpTransport, StdioTransport
from interlock.upstream.secret_forms import MIN_LENGTH, masked


def masker(transport: StdioTransport | HttpTransport, environ: Mapping[str, str]) -> Callable[[str], str]:
    """Takes text and gives it back without the values that `transport` names by reference. Values are read at each use."""

    def mask(text: str) -> str:
        return masked(text, known_values(transport, environ))

    return mask


def known_values(transport: StdioTransport | HttpTransport, environ: Mapping[str, str]) -> Iterable[str]:
    """The values themselves, as they are now. Short ones are left out."""
    if isinstance(transport, StdioTransport):
        names = [each.source for each in transport.env if each.source is not None]
    else:
        names = [each.source for each in (*transport.headers, *transport.session_headers) if each.source is not None]
        if transport.token is not None and transport.token.env is not None:
            names.append(transport.token.env)
        if transport.oauth is not None and transport.oauth.client_secret_env is not None:
            names.append(transport.oauth.client_secret_env)
        if transport.endpoint_env is not None:
            yield from _url_parts(environ.get(transport.endpoint_env, ""))
    for name in names:
        value = environ.get(name, "").strip()
        if len(value) >= MIN_LENGTH:
            yield value


def _url_parts(url: str) -> Iterable[str]:
    """What of a URL from the environment may be secret: its password, long parts of its path, and the query's values."""
    try:
        parts = urlsplit(url)
        password = parts.password
    except ValueError:
        return
    if password:
        yield password
    yield from (part for part in parts.path.split("/") if len(part) >= 12)
    yield from (value for pair in parts.query.split("&") if len(value := pair.rpartition("=")[2]) >= MIN_LENGTH)
