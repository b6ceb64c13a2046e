"""The note of an open login and the memory of an unfinished one."""

from __future__ import annotations

import json
import os
import secrets
import stat
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.flow_note import (
    PENDING_LIMIT,
    PENDING_SECONDS,
    FlowNote,
    Pending,
    Snooze,
    read_note,
    read_snooze,
    remove_note,
    remove_snooze,
    write_note,
    write_snooze,
)
from interlock.upstream.oauth.grant import Registration
from interlock.upstream.oauth.grant_store import StoreTrouble, grant_id

ISSUER = "https://issuer.test"
ID = grant_id("https://resource.test", ISSUER, None)


def pending(age: float = 0.0, state: str = "") -> Pending:
    return Pending(
        state=state or secrets.token_urlsafe(16),
        verifier=secrets.token_urlsafe(32),
        redirect_uri="http://localhost:33418/callback",
        created=time.time() - age,
        scope=("files:read",),
        issuer=ISSUER,
    )


def note(*waiting: Pending, **more: Any) -> FlowNote:
    url = "https://resource.test/mcp"
    basis: dict[str, Any] = {
        "flow_id": secrets.token_hex(8),
        "url": f"{ISSUER}/authorize?state=x",
        "port": 33418,
        "pid": os.getpid(),
        "created": time.time(),
        "found": Discovered(server_url=url, resource=url, issuer=ISSUER, metadata=ServerMetadata(issuer=ISSUER)),
        "registration": Registration(issuer=ISSUER, client_id="client", source="dynamic"),
        "pending": waiting,
    }
    return FlowNote(**{**basis, **more})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "home" / "grants"


def test_a_note_comes_back_as_it_was_written(root: Path) -> None:
    assert read_note(root, ID) is None
    assert not root.exists()
    browser = note(pending(5), pending())
    assert write_note(root, ID, browser) == browser
    assert read_note(root, ID) == browser
    device = note(
        kind="device",
        device_code=secrets.token_hex(),
        user_code="WDJB-MJHT",
        interval=5.0,
        expires_at=time.time() + 600,
    )
    write_note(root, ID, device)
    assert read_note(root, ID) == device
    assert [path.name for path in root.iterdir()] == [f"{ID}.flow.json"]


def test_only_the_newest_eight_of_the_last_hour_are_kept(root: Path) -> None:
    old, ahead = pending(PENDING_SECONDS + 1), pending(-3600)
    fresh = [pending(100 - number) for number in range(PENDING_LIMIT + 4)]
    written = write_note(root, ID, note(old, ahead, *fresh))
    assert written.pending == tuple(fresh[4:])
    assert read_note(root, ID) == written
    text = (root / f"{ID}.flow.json").read_text()
    assert old.verifier not in text
    assert fresh[0].verifier not in text


def test_what_was_young_when_written_is_dropped_when_it_is_read_later(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pending(1800), pending()
    write_note(root, ID, note(first, second))
    later = time.time() + 2000
    monkeypatch.setattr("interlock.upstream.oauth.flow_note.time.time", lambda: later)
    read = read_note(root, ID)
    assert read is not None
    assert read.pending == (second,)


def test_a_note_is_removed_only_by_the_flow_that_it_is_of(root: Path) -> None:
    assert remove_note(root, ID) is False
    assert remove_note(root, ID, "anything") is False
    mine, theirs = note(), note()
    write_note(root, ID, mine)
    write_note(root, ID, theirs)
    assert remove_note(root, ID, mine.flow_id) is False
    assert read_note(root, ID) == theirs
    assert remove_note(root, ID, theirs.flow_id) is True
    assert read_note(root, ID) is None
    write_note(root, ID, mine)
    assert remove_note(root, ID) is True


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\0" * 300, b'{"version": 2}', b'{"version": 1, "kind": "grant"}']
)
def test_damage_is_no_note_and_is_written_over(root: Path, content: bytes) -> None:
    write_note(root, ID, note())
    write_snooze(root, ID, Snooze(offered_at=1.0, unfinished_until=2.0))
    for kind in ("flow", "snooze"):
        (root / f"{ID}.{kind}.json").write_bytes(content)
    assert read_note(root, ID) is None
    assert read_snooze(root, ID) is None
    assert remove_note(root, ID, "anything") is False
    again = note(pending())
    write_note(root, ID, again)
    assert read_note(root, ID) == again


def test_fields_of_a_newer_build_are_passed_over(root: Path) -> None:
    written = write_note(root, ID, note(pending()))
    whole = json.loads((root / f"{ID}.flow.json").read_bytes())
    whole["value"]["later"] = True
    whole["value"]["pending"][0]["later"] = [1]
    (root / f"{ID}.flow.json").write_bytes(json.dumps(whole).encode())
    assert read_note(root, ID) == written


def test_one_grants_note_is_not_anothers(root: Path) -> None:
    write_note(root, ID, note())
    other = "0" * 32
    (root / f"{ID}.flow.json").rename(root / f"{other}.flow.json")
    assert read_note(root, other) is None
    with pytest.raises(ValueError, match="not the id"):
        read_note(root, "../escape")


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and links")
def test_a_note_is_private_and_never_written_through_a_link(root: Path, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write_note(root, ID, note())
        write_snooze(root, ID, Snooze(offered_at=1.0, unfinished_until=2.0))
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in root.iterdir()} == {0o600}
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    victim = tmp_path / "victim"
    victim.write_bytes((root / f"{ID}.flow.json").read_bytes())
    content = victim.read_bytes()
    (root / f"{ID}.flow.json").unlink()
    (root / f"{ID}.flow.json").symlink_to(victim)
    assert read_note(root, ID) is None
    again = note()
    write_note(root, ID, again)
    assert read_note(root, ID) == again
    assert victim.read_bytes() == content
    root.rename(tmp_path / "moved")
    root.symlink_to(tmp_path / "moved")
    with pytest.raises(StoreTrouble, match="is a link"):
        read_note(root, ID)


def test_a_snooze_is_kept_and_removed(root: Path) -> None:
    assert read_snooze(root, ID) is None
    assert remove_snooze(root, ID) is False
    snooze = Snooze(offered_at=10.5, unfinished_until=20.5)
    write_snooze(root, ID, snooze)
    assert read_snooze(root, ID) == snooze
    later = msgspec.structs.replace(snooze, unfinished_until=30.0)
    write_snooze(root, ID, later)
    assert read_snooze(root, ID) == later
    assert remove_snooze(root, ID) is True
    assert read_snooze(root, ID) is None


def test_a_repr_shows_no_verifier_and_no_code() -> None:
    waiting = pending()
    shown = repr(waiting) + repr(note(waiting, device_code="device-" + secrets.token_hex(8)))
    assert waiting.verifier not in shown
    assert waiting.state not in shown
    assert "device-" not in shown
