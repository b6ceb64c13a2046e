"""The two eras of MCP: their revisions, and the `_meta` members that belong to one hop and are re-made on each.

Modern (2026-07-28): no handshake, every request says its version and the client's capabilities in `_meta`.
Legacy (2025-11-25 and earlier): an `initialize` handshake. All legacy revisions are one family.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from interlock.wire import bounds, codes
from interlock.wire.messages import (
    EMPTY_OBJECT,
    Raw,
    RawMap,
    WireError,
    encode,
    read_map,
    try_map,
    try_str,
    write_map,
)
from interlock.wire.revisions import (
    CAPABILITIES_KEY,
    LATEST_LEGACY,
    LEGACY_VERSIONS,
    MODERN_VERSION,
    MODERN_VERSIONS,
    PREFIX,
    SERVER_INFO_KEY,
    VERSION_KEY,
    pick_legacy,
)

__all__ = [
    "CACHEABLE",
    "CAPABILITIES_KEY",
    "LATEST_LEGACY",
    "LEGACY_VERSIONS",
    "MAY_ASK",
    "MODERN_VERSION",
    "MODERN_VERSIONS",
    "OWNED",
    "QUESTIONS",
    "SERVER_INFO_KEY",
    "SUBSCRIPTION_KEY",
    "VERSION_KEY",
    "Era",
    "RequestMeta",
    "has_capability",
    "implementation",
    "legacy_meta",
    "modern_meta",
    "pick_legacy",
    "take_meta",
]


class Era(StrEnum):
    MODERN = "modern"
    LEGACY = "legacy"


ASSUMED_VERSION: Final = "2025-03-26"
"""What a legacy HTTP request without a version header speaks (2025-11-25, transports: Protocol Version Header)."""

CLIENT_INFO_KEY: Final = PREFIX + "clientInfo"
LOG_LEVEL_KEY: Final = PREFIX + "logLevel"
SUBSCRIPTION_KEY: Final = PREFIX + "subscriptionId"
OWNED: Final = frozenset(
    {VERSION_KEY, CLIENT_INFO_KEY, CAPABILITIES_KEY, LOG_LEVEL_KEY, SUBSCRIPTION_KEY, SERVER_INFO_KEY}
)
"""Members of `_meta` that describe one hop. They are stripped on arrival and made anew; all others pass."""

CACHEABLE: Final = frozenset(
    {
        "server/discover",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)
"""Methods whose modern results carry `ttlMs` and `cacheScope` (2026-07-28, server/utilities/caching)."""

MAY_ASK: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods that may end in `input_required` (2026-07-28, basic/patterns/mrtr, Supported Requests)."""

QUESTIONS: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""What a server may ask of a client, and the client capability that allows it."""


@dataclass(slots=True)
class RequestMeta:
    """A request's `_meta`, taken apart: what belongs to this hop, and the `rest`, which passes."""

    rest: RawMap
    version: str | None = None
    client_info: Raw | None = None
    capabilities: Raw | None = None
    log_level: Raw | None = None
    progress_token: Raw | None = None


_KNOWN_META: Final[dict[bytes, RequestMeta]] = {}
_KNOWN_METAS: Final = 256
_KNOWN_META_BYTES: Final = 4096


def take_meta(params: RawMap) -> RequestMeta:
    """Remove `_meta` from `params` and take it apart.

    Raises WireError where it is not an object, or its progress token is neither text nor a number, or too long.
    """
    raw = params.pop("_meta", None)
    if raw is None:
        return RequestMeta({})
    # Clients repeat themselves: without a token of its own, one request's `_meta` is the next one's, byte for byte.
    text = bytes(raw)
    known = _KNOWN_META.get(text)
    if known is not None:
        return RequestMeta({}, known.version, known.client_info, known.capabilities, known.log_level)
    rest = read_map(text)
    pop = rest.pop
    meta = RequestMeta(
        rest,
        try_str(pop(VERSION_KEY, None)),
        pop(CLIENT_INFO_KEY, None),
        pop(CAPABILITIES_KEY, None),
        pop(LOG_LEVEL_KEY, None),
        pop("progressToken", None),
    )
    if rest:
        pop(SUBSCRIPTION_KEY, None)
        pop(SERVER_INFO_KEY, None)
    if meta.progress_token is not None:
        meta.progress_token = _token(bytes(meta.progress_token))
    elif not rest and len(text) <= _KNOWN_META_BYTES:
        if len(_KNOWN_META) >= _KNOWN_METAS:
            _KNOWN_META.clear()
        _KNOWN_META[text] = meta
    return meta


def _token(token: bytes) -> Raw | None:
    """A progress token that may be repeated in every notification; it holds on to no buffer of the request."""
    if token == b"null":
        return None
    if token[:1] not in _TOKEN_STARTS or len(token) > bounds.MAX_TOKEN_BYTES:
        raise WireError(codes.INVALID_PARAMS, "_meta.progressToken must be a string or a number, and short")
    return Raw(token)


_TOKEN_STARTS: Final = frozenset(bytes([byte]) for byte in b'"-0123456789')


def modern_meta(
    rest: RawMap,
    client_info: bytes,
    capabilities: Raw | None,
    log_level: Raw | None,
    progress_token: int | None,
    version: str = MODERN_VERSION,
) -> Raw:
    """`_meta` for a request to a modern server: the passing members first, then ours."""
    parts = [b"{"]
    if rest:
        parts.append(write_map(rest)[1:-1])
        parts.append(b",")
    parts.append(b'"io.modelcontextprotocol/protocolVersion":"' + version.encode() + b'",')
    parts.append(b'"io.modelcontextprotocol/clientInfo":' + client_info)
    parts.append(b',"io.modelcontextprotocol/clientCapabilities":' + bytes(capabilities or EMPTY_OBJECT))
    if log_level is not None:
        parts.append(b',"io.modelcontextprotocol/logLevel":' + bytes(log_level))
    if progress_token is not None:
        parts.append(b',"progressToken":%d' % progress_token)
    parts.append(b"}")
    return Raw(b"".join(parts))


def legacy_meta(rest: RawMap, progress_token: int | None) -> Raw | None:
    """`_meta` for a request to a legacy server, or None where it would be empty."""
    if progress_token is not None:
        rest = {**rest, "progressToken": Raw(b"%d" % progress_token)}
    return Raw(write_map(rest)) if rest else None


def implementation(name: str, version: str, title: str | None = None) -> bytes:
    """An `Implementation` object: how a client or server names itself."""
    members = {"name": name, "version": version}
    if title is not None:
        members["title"] = title
    return encode(members)


def has_capability(capabilities: Raw | None, question: str) -> bool:
    """True where a client that declared `capabilities` may be asked `question` (a method of QUESTIONS)."""
    needed = QUESTIONS.get(question)
    members = try_map(capabilities)
    return needed is not None and members is not None and needed in members and bytes(members[needed]) != b"null"
