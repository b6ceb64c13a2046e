"""How a grant, and the other things of the store, stand in a file: JSON with a version, kept readable for other builds.

Two builds may share the store for a while. So what a newer one added to the same version is carried along when an older
one rewrites the file, and a file of a later version is never read as if it were understood.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from interlock.upstream.oauth.grant import Grant

VERSION = 1
Kept = TypeVar("Kept")
Extra = dict[str, object]


class Damaged(Exception):
    """What stands in the file is not what belongs there. The text says why, and holds nothing of the content."""


class Newer(Exception):
    """The file is of a later version than this build knows."""


def encode(kind: str, id: str, value: msgspec.Struct, extra: Extra | None = None) -> bytes:
    """The file's content. `extra`: fields that another build had put in (`decode`); ours win where both have one."""
    ours = msgspec.to_builtins(value)
    assert isinstance(ours, dict)
    whole = {"version": VERSION, "kind": kind, "id": id, "value": _merged(extra or {}, ours)}
    return msgspec.json.format(msgspec.json.encode(whole), indent=1) + b"\n"


def decode(kind: str, id: str, content: bytes, type: type[Kept]) -> tuple[Kept, Extra]:
    """What `encode` wrote for the same kind and id, and the fields that this build does not know. Raises Damaged or Newer."""
    try:
        whole = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise Damaged("no JSON" if content.strip() else "empty") from None
    if not isinstance(whole, dict):
        raise Damaged("no object")
    version = whole.get("version")
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise Damaged("no version")
    if version > VERSION:
        raise Newer(f"version {version}")
    if whole.get("kind") != kind or whole.get("id") != id:
        raise Damaged("not what its name says")
    value = whole.get("value")
    if not isinstance(value, dict):
        raise Damaged("no value")
    try:
        made = msgspec.convert(value, type)
    except (msgspec.ValidationError, RecursionError):
        # The message of the exception might quote a value.
        raise Damaged("wrong fields") from None
    return made, _unknown(value, msgspec.to_builtins(made))


def grant_extra(extra: Extra, old: Grant, new: Grant) -> Extra:
    """What may be carried from the old grant's file to the new one's: not what belonged to another registration."""
    if old.registration.client_id != new.registration.client_id or old.registration.issuer != new.registration.issuer:
        return {name: value for name, value in extra.items() if name != "registration"}
    return extra


def _unknown(raw: Extra, known: object) -> Extra:
    """The fields of `raw` that are not in `known`, also within objects that both have."""
    assert isinstance(known, dict)
    found: Extra = {}
    for name, value in raw.items():
        if name not in known:
            found[name] = value
        elif isinstance(value, dict) and isinstance(known[name], dict):
            inner = _unknown(value, known[name])
            if inner:
                found[name] = inner
    return found


def _merged(extra: Extra, ours: Extra) -> Extra:
    whole = dict(ours)
    for name, value in extra.items():
        mine = ours.get(name)
        if name not in ours:
            whole[name] = value
        elif isinstance(mine, dict) and isinstance(value, dict):
            whole[name] = _merged(value, mine)
    return whole
