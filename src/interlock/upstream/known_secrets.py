"""Masks what the manifest takes from the environment and from files for one server, wherever that server's own words are shown.

The general redactor (journal/redact.py) knows secrets by their shape. These values are known exactly, so they are masked
also where they look like words: servers like to repeat a refused key in their error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from urllib.parse import urlsplit

from interlock.manifest.config import EnvValue, HeaderValue, HttpTransport, StdioTransport
from interlock.upstream import secret_file
from interlock.upstream.secret_forms import MIN_LENGTH, masked


def masker(transport: StdioTransport | HttpTransport, environ: Mapping[str, str]) -> Callable[[str], str]:
    """Takes text and gives it back without the values that `transport` names by reference. Values are read at each use."""

    def mask(text: str) -> str:
        return masked(text, known_values(transport, environ))

    return mask


def known_values(transport: StdioTransport | HttpTransport, environ: Mapping[str, str]) -> Iterable[str]:
    """The values themselves, as they are now. Short ones are left out."""
    if isinstance(transport, StdioTransport):
        given: Sequence[EnvValue | HeaderValue] = transport.env
    else:
        given = (*transport.headers, *transport.session_headers)
    names = [each.source for each in given if each.source is not None]
    if isinstance(transport, HttpTransport):
        if transport.token is not None and transport.token.env is not None:
            names.append(transport.token.env)
        if transport.oauth is not None and transport.oauth.client_secret_env is not None:
            names.append(transport.oauth.client_secret_env)
        if transport.endpoint_env is not None:
            yield from _url_parts(environ.get(transport.endpoint_env, ""))
    values = [environ.get(name, "") for name in names]
    for each in given:
        if each.file is not None:
            values += secret_file.known(each.file)
    for value in values:
        if len(value.strip()) >= MIN_LENGTH:
            yield value.strip()


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
