"""Results and errors from one era in the words of the other, everything else untouched.

docs/eras.md has the table of what cannot be expressed.
"""

from __future__ import annotations

from typing import Final

from interlock.wire import codes
from interlock.wire.eras import CACHEABLE, OWNED, SERVER_INFO_KEY, Era
from interlock.wire.messages import (
    Raw,
    RawMap,
    error_body,
    raw,
    try_json,
    try_list,
    try_map,
    try_str,
    write_map,
)

COMPLETE: Final = Raw(b'"complete"')
_REPLACED: Final = {
    codes.LEGACY_RESOURCE_NOT_FOUND: codes.INVALID_PARAMS,
    codes.LEGACY_URL_ELICITATION_REQUIRED: codes.INTERNAL_ERROR,
}
"""Codes that 2026-07-28 forbids to emit (basic/index, Error Codes), and what stands in for them."""
_ZERO: Final = Raw(b"0")
_PRIVATE: Final = Raw(b'"private"')


def result_type(members: RawMap) -> str:
    """`complete` where the member is absent (2026-07-28, basic/index, ResultType)."""
    raw_type = members.get("resultType")
    if raw_type is None or bytes(raw_type) == b'"complete"':
        return "complete"
    return try_str(raw_type) or "complete"


def result_for(members: RawMap, body: bytes, *, method: str, up: Era, down: Era, server_info: bytes) -> bytes:
    """One result as the client's era wants it.

    `members` are the top-level members of `body`, which is returned as it is wherever nothing has to change.
    `server_info` is our own identity: a server's own is stripped, so that none can pose as another.
    """
    meta_raw = members.get("_meta")
    if down is Era.MODERN:
        ours = Raw(server_info)
        hints = method in CACHEABLE and (up is Era.LEGACY or result_type(members) == "complete")
        as_it_is = up is Era.MODERN and meta_raw is None and "resultType" in members
        if as_it_is and not (hints and ("ttlMs" not in members or "cacheScope" not in members)):
            return body[: body.rindex(b"}")] + b',"_meta":{"' + SERVER_INFO_KEY.encode() + b'":' + server_info + b"}}"
        out = dict(members)
        if "resultType" not in out:
            out = {"resultType": COMPLETE, **out}
        elif up is Era.LEGACY:
            out["resultType"] = COMPLETE  # the word means nothing in that era, and no legacy result is incomplete
        if hints:
            out.setdefault("ttlMs", _ZERO)
            out.setdefault("cacheScope", _PRIVATE)
        meta = try_map(meta_raw) or {}
        kept = {key: value for key, value in meta.items() if key not in OWNED}
        kept[SERVER_INFO_KEY] = ours
        out["_meta"] = Raw(write_map(kept))
        return write_map(out)
    changed = False
    out = members
    if meta_raw is not None:
        # Taken apart even where our prefix is not to be seen in it: `\/` and `\u002f` spell the same names.
        meta = try_map(meta_raw) or {}
        kept = {key: value for key, value in meta.items() if key not in OWNED}
        if len(kept) != len(meta):
            out = dict(out)
            changed = True
            if kept:
                out["_meta"] = Raw(write_map(kept))
            else:
                del out["_meta"]
    if up is Era.MODERN:
        out = dict(out)
        changed = out.pop("resultType", None) is not None or changed
        if method in CACHEABLE:
            changed = out.pop("ttlMs", None) is not None or changed
            changed = out.pop("cacheScope", None) is not None or changed
        structured = out.get("structuredContent")
        if method == "tools/call" and structured is not None and bytes(memoryview(structured)[:1]) != b"{":
            # Legacy structuredContent is an object; the value must still reach the model, so it goes in as text.
            del out["structuredContent"]
            _keep_as_text(out, structured)
            changed = True
    return write_map(out) if changed else body


def _keep_as_text(members: RawMap, structured: Raw) -> None:
    content = members.get("content")
    if content is None or bytes(content).strip() in (b"[]", b"null"):
        members["content"] = raw([{"type": "text", "text": bytes(structured).decode("utf-8", "replace")}])


def error_for(body: bytes, *, method: str, down: Era) -> bytes:
    """One error object as the client's era wants it, unknown members kept."""
    if down is Era.MODERN and (b"-32002" in body or b"-32042" in body):
        members = try_map(body)
        code = error_code(body)
        if members is not None and code in _REPLACED:
            members["code"] = raw(_REPLACED[code])
            return write_map(members)
    return body


def is_error_result(members: RawMap) -> bool:
    """True where a tool says of its own call that it failed."""
    flag = members.get("isError")
    return flag is not None and bytes(flag).strip() == b"true"


def well_formed_error(body: bytes) -> bool:
    """True where the bytes are an error object: an integer code and a text message."""
    members = try_map(body)
    if members is None:
        return False
    code = try_json(members.get("code"))
    return isinstance(code, int) and not isinstance(code, bool) and try_str(members.get("message")) is not None


def error_code(body: bytes) -> int | None:
    """The code of an error object, or None where there is none."""
    members = try_map(body)
    code = try_json(members.get("code")) if members is not None else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


def url_elicitations(body: bytes) -> list[RawMap]:
    """The URL elicitations that a legacy -32042 error asks for (2025-11-25, client/elicitation), else an empty list."""
    members = try_map(body)
    if members is None or error_code(body) != codes.LEGACY_URL_ELICITATION_REQUIRED:
        return []
    data = try_map(members.get("data")) or {}
    items = (try_map(item) for item in try_list(data.get("elicitations")) or [])
    return [item for item in items if item is not None]


__all__ = [
    "COMPLETE",
    "error_body",
    "error_code",
    "error_for",
    "is_error_result",
    "result_for",
    "result_type",
    "url_elicitations",
    "well_formed_error",
]
