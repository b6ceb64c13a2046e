"""Resource URIs: `<slug>+<uri>`, so that the server behind each one is read off and never guessed.

The slug is a function of the server's key alone. It is a valid beginning of a URI scheme (RFC 3986, 3.1), has no `+`,
and is lower-case, because clients normalise schemes to lower case: `github+file:///a` stays a URI with a scheme.
`rewrite_result_uris` puts the slug where a result names resources of its server, and touches nothing else.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable

import msgspec

HASH_LENGTH = 10
"""Hex digits of SHA-256, as in exposed names."""

_PLAIN_SLUG = re.compile(r"[a-z][a-z0-9.-]{0,39}\Z")
_HASHED_SLUG = re.compile(rf"-[0-9a-f]{{{HASH_LENGTH}}}\Z")
_SLUG_STEM = 28
_DEPTH = 8
"""Content inside content inside content (tool results in sampling messages): as deep as this is followed."""

_Members = dict[str, msgspec.Raw]
_members = msgspec.json.Decoder(_Members)
_items = msgspec.json.Decoder(list[msgspec.Raw])
_text = msgspec.json.Decoder(str)
_encode = msgspec.json.encode


def slug(server_key: str) -> str:
    """The key as it stands where it can begin a URI scheme, otherwise a cleaned form of it with a hash of the key."""
    if _PLAIN_SLUG.match(server_key) and not _HASHED_SLUG.search(server_key):
        return server_key
    digest = hashlib.sha256(server_key.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    stem = re.sub(r"[^a-z0-9.]+", "-", server_key.lower()).strip("-.")[:_SLUG_STEM].rstrip("-.") or "server"
    return f"{stem if stem[0].isalpha() else 's' + stem}-{digest}"


def expose_uri(server_key: str, uri: str) -> str:
    """`uri` (or a URI template) of one server as clients of the gateway see it. Nothing of `uri` is changed."""
    return f"{slug(server_key)}+{uri}"


class UriRouter:
    """Finds the server that an exposed URI belongs to. `keys` are all server keys that may be routed to."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = {slug(key): key for key in keys}

    def route(self, exposed: str) -> tuple[str, str] | None:
        """The server's key and its own URI; None where the URI does not begin with the slug of a known server.

        The slug is compared in any case. The rest is handed back as it came, so what a client did to it (a lower-cased
        scheme, say) is what the server would have seen from that client without us.
        """
        head, plus, uri = exposed.partition("+")
        key = self._keys.get(head.lower()) if plus else None
        return None if key is None else (key, uri)


def rewrite_result_uris(raw: bytes, server_key: str) -> bytes:
    """A result of one server, with its own resource URIs exposed.

    Rewritten are `uri` of embedded resources and resource links in `content` and in prompt or sampling messages, `uri`
    in `contents` and `resources`, `uriTemplate` in `resourceTemplates`, and the same inside `inputRequests`. All else
    (`structuredContent`, `_meta`, unknown members and content types) is spliced through byte by byte. `raw` comes back
    unchanged where it is not a JSON object of that shape. Member names written with escapes are not recognised.
    """
    if b'"uri' not in raw:
        return raw
    prefix = f"{slug(server_key)}+"
    return _rewrite(raw, lambda members: _in_result(members, prefix, 0))


def rewrite_resource(raw: bytes, server_key: str) -> bytes:
    """One entry of `resources`, `resourceTemplates` or `contents`, with its URI exposed."""
    if b'"uri' not in raw:
        return raw
    prefix = f"{slug(server_key)}+"
    return _rewrite(raw, lambda members: _in_resource(members, prefix))


def with_uri(raw: bytes, uri: str) -> bytes:
    """A JSON object with its top-level `uri` replaced: request parameters on the way up, `resources/updated` down.

    `raw` comes back unchanged where it is not an object or has no `uri`.
    """

    def put(members: _Members) -> bool:
        if "uri" not in members:
            return False
        members["uri"] = msgspec.Raw(_encode(uri))
        return True

    return _rewrite(raw, put)


def _rewrite(raw: bytes, change: Callable[[_Members], bool]) -> bytes:
    """`raw` after `change` on its members; itself, byte for byte, where nothing changed or it is no object."""
    try:
        members = _members.decode(raw)
        return _encode(members) if change(members) else raw
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return raw


def _in_result(members: _Members, prefix: str, depth: int) -> bool:
    changed = _each(members, "content", lambda item: _in_content(item, prefix, depth))
    changed |= _each(members, "contents", lambda item: _in_resource(item, prefix))
    changed |= _each(members, "resources", lambda item: _in_resource(item, prefix))
    changed |= _each(members, "resourceTemplates", lambda item: _in_resource(item, prefix))
    changed |= _each(members, "messages", lambda item: _in_message(item, prefix, depth))
    if "inputRequests" in members:
        # A modern server's questions: a sampling request carries messages, which may embed its resources.
        changed |= _member(members, "inputRequests", lambda asks: _in_input_requests(asks, prefix, depth))
    return changed


def _in_input_requests(asks: _Members, prefix: str, depth: int) -> bool:
    def in_params(params: _Members) -> bool:
        return _each(params, "messages", lambda item: _in_message(item, prefix, depth))

    changed = False
    for key in asks:
        changed |= _member(asks, key, lambda ask: _member(ask, "params", in_params))
    return changed


def _in_message(message: _Members, prefix: str, depth: int) -> bool:
    """`content` is one item in prompts, and one or several in sampling messages."""

    def in_item(item: _Members) -> bool:
        return _in_content(item, prefix, depth)

    return _each(message, "content", in_item) or _member(message, "content", in_item)


def _in_content(item: _Members, prefix: str, depth: int) -> bool:
    kind = _string(item.get("type"))
    if kind == "resource_link":
        return _put(item, "uri", prefix)
    if kind == "resource":
        return _member(item, "resource", lambda resource: _put(resource, "uri", prefix))
    if kind == "tool_result" and depth < _DEPTH:
        return _each(item, "content", lambda inner: _in_content(inner, prefix, depth + 1))
    return False


def _in_resource(members: _Members, prefix: str) -> bool:
    changed = _put(members, "uri", prefix)
    return _put(members, "uriTemplate", prefix) or changed


def _put(members: _Members, key: str, prefix: str) -> bool:
    uri = _string(members.get(key))
    if uri is None:
        return False
    members[key] = msgspec.Raw(_encode(prefix + uri))
    return True


def _member(members: _Members, key: str, change: Callable[[_Members], bool]) -> bool:
    """Change the object at `key`, if there is one."""
    raw = members.get(key)
    if raw is None or not _starts(raw, b"{"):
        return False
    inner = _members.decode(raw)
    if not change(inner):
        return False
    members[key] = msgspec.Raw(_encode(inner))
    return True


def _each(members: _Members, key: str, change: Callable[[_Members], bool]) -> bool:
    """Change every object in the array at `key`, if there is one."""
    raw = members.get(key)
    if raw is None or not _starts(raw, b"["):
        return False
    items = _items.decode(raw)
    changed = False
    for index, item in enumerate(items):
        if not _starts(item, b"{"):
            continue
        inner = _members.decode(item)
        if change(inner):
            items[index] = msgspec.Raw(_encode(inner))
            changed = True
    if changed:
        members[key] = msgspec.Raw(_encode(items))
    return changed


def _string(raw: msgspec.Raw | None) -> str | None:
    return _text.decode(raw) if raw is not None and _starts(raw, b'"') else None


def _starts(raw: msgspec.Raw, first: bytes) -> bool:
    # A view, not a copy: the value may be megabytes long.
    return memoryview(raw)[:1] == first
