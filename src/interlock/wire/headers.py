"""The HTTP headers that mirror a request's body (MCP 2026-07-28, Streamable HTTP: Request Metadata, Server Validation)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from interlock.wire import codes
from interlock.wire.messages import Raw, WireError, try_json, try_map, try_str

NAME_SOURCE: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Which member of `params` the `Mcp-Name` header mirrors."""

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_SAFE_INTEGER: Final = 2**53 - 1
_PLAIN_NAME: Final = re.compile(rb"[A-Za-z0-9_./:-]+")
_PLAIN_BYTES: Final = re.compile(rb"[\t\x20-\x7e]*")
_PLAIN_TEXT: Final = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
"""What may stand in a header as it is (RFC 9110, 5.5), with no space or tab at either end."""
_NUMBER: Final = re.compile(r"(-?(?:0|[1-9][0-9]{0,400}))(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,3})?")
"""A JSON number, bounded (RFC 8259, 6)."""


class HeaderParam(Protocol):
    """One tool parameter that is mirrored: the header's full name, and the path of `properties` that leads to it."""

    @property
    def header_name(self) -> str: ...
    @property
    def path(self) -> Sequence[str]: ...


def encode_value(value: str) -> str:
    """A value as it may stand in a header: as it is where it is plain ASCII, else in the base64 form."""
    plain = _PLAIN_TEXT.fullmatch(value) is not None and not (value.startswith(_PREFIX) and value.endswith(_SUFFIX))
    if plain:
        return value
    return _PREFIX + base64.b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii") + _SUFFIX


def decode_value(text: str) -> str:
    """The value that a header stands for. Raises ValueError where the base64 form is broken or holds no UTF-8."""
    if not (text.startswith(_PREFIX) and text.endswith(_SUFFIX) and len(text) >= len(_PREFIX) + len(_SUFFIX)):
        return text
    try:
        return base64.b64decode(text[len(_PREFIX) : -len(_SUFFIX)], validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"not valid base64: {error}") from None


def value_at(arguments: Raw | None, path: Sequence[str]) -> object:
    """The argument at a property path, or None where it is absent or null."""
    current: Raw | None = arguments
    for step in path:
        members = try_map(current)
        if members is None or step not in members:
            return None
        current = members[step]
    return try_json(current)


def spell(value: object) -> str | None:
    """A primitive as header text; None where it cannot be mirrored.

    Only integers within +-(2**53 - 1) are allowed to be mirrored. A larger one is spelled out all the same: a server that
    checks it finds it equal, and one that does not check ignores it.
    """
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and value.is_integer() and abs(value) <= _SAFE_INTEGER:
        return str(int(value))
    return None


def param_headers(params: Sequence[HeaderParam], arguments: Raw | None) -> list[tuple[str, str]]:
    """The `Mcp-Param-*` headers of one call, encoded."""
    headers: list[tuple[str, str]] = []
    for param in params:
        text = spell(value_at(arguments, param.path))
        if text is not None:
            headers.append((param.header_name, encode_value(text)))
    return headers


def mismatch(message: str) -> WireError:
    return WireError(codes.HEADER_MISMATCH, f"Header mismatch: {message}")


def check_standard(headers: Mapping[bytes, bytes], method: str, version: str, name: Raw | None) -> None:
    """Compare the standard headers of a modern POST with its body. `headers` has lower-case names.

    Raises WireError (-32020) for the first header that is missing or says something else.
    """
    if (
        headers.get(b"mcp-method") == method.encode()
        and headers.get(b"mcp-protocol-version") == version.encode()
        and (method not in NAME_SOURCE or _plainly_same(headers.get(b"mcp-name"), name))
    ):
        return  # nearly every request: byte for byte the same
    given = _text(headers, b"mcp-protocol-version")
    if given is None:
        raise mismatch("the MCP-Protocol-Version header is missing")
    if given != version:
        raise mismatch(f"MCP-Protocol-Version header value {_short(given)} does not match body value {_short(version)}")
    given = _text(headers, b"mcp-method")
    if given is None:
        raise mismatch("the Mcp-Method header is missing")
    if given != method:
        raise mismatch(f"Mcp-Method header value {_short(given)} does not match body value {_short(method)}")
    if method in NAME_SOURCE:
        given = _text(headers, b"mcp-name")
        if given is None:
            raise mismatch("the Mcp-Name header is missing")
        wanted = try_str(name)
        try:
            decoded = decode_value(given)
        except ValueError as error:
            raise mismatch(f"the Mcp-Name header is {error}") from None
        if decoded != wanted:
            raise mismatch(f"Mcp-Name header value {_short(decoded)} does not match body value {_short(wanted)}")


def _plainly_same(header: bytes | None, name: Raw | None) -> bool:
    """True where the JSON string holds just the header's bytes: word characters and the like, so nothing to decode."""
    return (
        header is not None
        and name is not None
        and _PLAIN_NAME.fullmatch(header) is not None
        and bytes(name) == b'"%b"' % header
    )


def check_params(headers: Mapping[bytes, bytes], params: Sequence[HeaderParam], arguments: Raw | None) -> None:
    """Compare the `Mcp-Param-*` headers of one call with its arguments. Raises WireError (-32020)."""
    for param in params:
        wanted = value_at(arguments, param.path)
        given = _text(headers, param.header_name.lower().encode())
        if wanted is None:
            if given is not None:
                raise mismatch(f"{param.header_name} is sent, but the argument is absent or null")
            continue
        if given is None:
            if spell(wanted) is None:
                continue  # nothing that a header could say; whether the argument fits its schema is the server's business
            raise mismatch(f"the {param.header_name} header is missing")
        try:
            decoded = decode_value(given)
        except ValueError as error:
            raise mismatch(f"the {param.header_name} header is {error}") from None
        if not _same(decoded, wanted):
            raise mismatch(f"{param.header_name} does not match the argument")


def _same(text: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return text == spell(value)
    # Numbers are compared as numbers: `42.0` and `42` are equal (Server Validation, note).
    number = _NUMBER.fullmatch(text)
    if number is None:
        return False
    whole, fraction, exponent = number.groups()
    if isinstance(value, float) and not value.is_integer():
        return float(text) == value
    return exponent is None and int(whole) == value and not (fraction or "").strip(".0")


def _short(value: object) -> str:
    """For messages: what was sent, but not megabytes of it."""
    text = repr(value)
    return text if len(text) <= 100 else text[:100] + "..."


def _text(headers: Mapping[bytes, bytes], name: bytes) -> str | None:
    value = headers.get(name)
    if value is None:
        return None
    text = value.strip(b" \t")
    if _PLAIN_BYTES.fullmatch(text) is None:
        raise mismatch(f"the {name.decode()} header has characters that a header may not hold")
    return text.decode("ascii")
