"""What stands beside a grant while a login is open: the note with the URL, and the memory of a login nobody finished.

The note owns nothing: the bound callback port does (callback.py). It lets every process answer with the same URL, and
keeps the verifier of each `state`, so that an old click still lands after its process is gone (RFC 7636).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from interlock.upstream.oauth import private_files
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Registration
from interlock.upstream.oauth.grant_file import Damaged, Newer, decode, encode
from interlock.upstream.oauth.grant_ids import checked
from interlock.upstream.oauth.private_files import StoreTrouble, Unfit

PENDING_LIMIT = 8
PENDING_SECONDS = 3600.0
"""No authorization server lets a person take longer; an older verifier is only something to steal."""
_FUTURE_SECONDS = 300.0

_Kept = TypeVar("_Kept")


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """One authorize URL that was published and may still come back. `created` is on this machine's clock."""

    state: str
    verifier: str
    redirect_uri: str
    created: float
    scope: tuple[str, ...]
    issuer: str
    """Validated when the URL was made; the answer's `iss` is compared with it (RFC 9207)."""

    def __repr__(self) -> str:
        # A repr ends up in tracebacks; no verifier may.
        return f"Pending({self.issuer!r}, {self.redirect_uri!r}, created {self.created:.0f})"


class FlowNote(msgspec.Struct, frozen=True, kw_only=True):
    """An open login. Times are on this machine's clock."""

    flow_id: str
    url: str
    port: int
    pid: int
    created: float
    found: Discovered
    registration: Registration
    pending: tuple[Pending, ...] = ()
    """Newest last, at most 8, none older than an hour; whatever more is given is dropped on writing and reading."""
    kind: Literal["browser", "device"] = "browser"
    device_code: str | None = None
    user_code: str | None = None
    interval: float | None = None
    """Seconds between two questions to the token endpoint (RFC 8628 section 3.2)."""
    expires_at: float | None = None
    """Of the device code."""
    key: str = ""
    """With which the owner of the port proves that it is that (identity.py). Another one with each owner."""

    def __repr__(self) -> str:
        return f"FlowNote({self.kind}, port {self.port}, pid {self.pid}, {len(self.pending)} pending)"


class Snooze(msgspec.Struct, frozen=True, kw_only=True):
    """A login that was offered; until `unfinished_until` no call offers one again. This machine's clock."""

    offered_at: float
    unfinished_until: float


class Steps(msgspec.Struct, frozen=True, kw_only=True):
    """Which sets of scopes the server asked for of late, as digests, each with when it first did. This machine's clock."""

    asked: dict[str, float] = {}


def read_note(root: Path, id: str) -> FlowNote | None:
    """The note; None where there is none or it cannot be used. Raises StoreTrouble where the folder is not ours."""
    note = _read(root, id, "flow", FlowNote)
    return None if note is None else msgspec.structs.replace(note, pending=_recent(note.pending))


def key_of(root: Path) -> Callable[[str], str | None]:
    """Finds the secret in the note of a grant's login, as it is then. It never raises."""

    def key(id: str) -> str | None:
        try:
            note = read_note(root, id)
        except (ValueError, StoreTrouble):  # an id that is none, or a folder that is not ours
            return None
        return note.key or None if note is not None else None

    return key


def write_note(root: Path, id: str, note: FlowNote) -> FlowNote:
    """Replace the note in one step, and give back what stands in it now. Raises StoreTrouble."""
    note = msgspec.structs.replace(note, pending=_recent(note.pending))
    _write(root, id, "flow", note)
    return note


def remove_note(root: Path, id: str, flow_id: str | None = None) -> bool:
    """Whether a note was removed. With `flow_id`, only the note of that flow: never one of who took over."""
    if flow_id is not None:
        note = _read(root, id, "flow", FlowNote)
        if note is None or note.flow_id != flow_id:
            return False
    return private_files.present(root) and private_files.remove(_path(root, id, "flow"))


def read_snooze(root: Path, id: str) -> Snooze | None:
    """None where there is none or it cannot be read."""
    return _read(root, id, "snooze", Snooze)


def write_snooze(root: Path, id: str, snooze: Snooze) -> None:
    """Raises StoreTrouble."""
    _write(root, id, "snooze", snooze)


def remove_snooze(root: Path, id: str) -> bool:
    """Whether there was one."""
    return private_files.present(root) and private_files.remove(_path(root, id, "snooze"))


def read_steps(root: Path, id: str) -> Steps:
    """Empty where there are none or they cannot be read."""
    return _read(root, id, "steps", Steps) or Steps()


def write_steps(root: Path, id: str, steps: Steps) -> None:
    """Raises StoreTrouble."""
    _write(root, id, "steps", steps)


def _path(root: Path, id: str, kind: str) -> Path:
    return root / f"{checked(id)}.{kind}.json"


def _read(root: Path, id: str, kind: str, type: type[_Kept]) -> _Kept | None:
    path = _path(root, id, kind)
    if not private_files.present(root):
        return None
    try:
        content = private_files.read(path)
        # A damaged note is only replaced by the next one: what it offered was for minutes.
        return None if content is None else decode(kind, id, content, type)[0]
    except (Unfit, Damaged, Newer):
        return None


def _write(root: Path, id: str, kind: str, value: msgspec.Struct) -> None:
    path = _path(root, id, kind)
    private_files.make(root)
    private_files.write(path, encode(kind, id, value))


def _recent(pending: tuple[Pending, ...]) -> tuple[Pending, ...]:
    now = time.time()
    return tuple(each for each in pending if -_FUTURE_SECONDS < now - each.created < PENDING_SECONDS)[-PENDING_LIMIT:]
