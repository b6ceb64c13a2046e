"""What a grant store does with damage, planted links, wide modes and a disk that refuses."""

# ruff: noqa: ASYNC240

from __future__ import annotations

import errno
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.upstream.oauth import private_files
from interlock.upstream.oauth.grant_store import GrantStore, StoreTrouble, token_hash

from .grants import ID, discovered, file_of, grant, modes, put, registration

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and links")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "home"


@pytest.fixture
def store(home: Path) -> GrantStore:
    return GrantStore(home)


TEXT = st.text(max_size=30)
JSON_VALUES = st.recursive(
    st.none() | st.integers() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=10
)


@pytest.fixture
def umask() -> Iterator[Callable[[int], None]]:
    before = os.umask(0o022)
    yield lambda mask: os.umask(mask) and None
    os.umask(before)


@posix
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o277, 0o777])
async def test_modes_hold_under_any_umask(
    store: GrantStore, home: Path, umask: Callable[[int], None], mask: int
) -> None:
    umask(mask)
    async with store.locked(ID, 1) as held:
        held.reserve()
        held.write(grant())
        held.write(grant())
    store.remember(discovered())
    store.keep_registration(registration())
    seen = modes(home.parent)
    assert seen.pop("home") == seen.pop("home/grants") == 0o700
    assert len(seen) == 4
    assert set(seen.values()) == {0o600}
    assert store.read(ID) is not None


@posix
async def test_wider_modes_are_tightened(store: GrantStore) -> None:
    written = await put(store, grant())
    for path in store.root.iterdir():
        path.chmod(0o666)
    store.root.chmod(0o777)
    assert store.read(ID) == written
    async with store.locked(ID, 1):
        pass
    assert set(modes(store.root).values()) == {0o600}
    assert stat.S_IMODE(store.root.stat().st_mode) == 0o700


@posix
async def test_a_planted_link_is_neither_read_nor_written_through(store: GrantStore, tmp_path: Path) -> None:
    await put(store, grant())
    victim = tmp_path / "victim"
    content = file_of(store).read_bytes()
    victim.write_bytes(content)
    file_of(store).unlink()
    file_of(store).symlink_to(victim)
    assert store.read(ID) is None
    aside = [path for path in store.root.iterdir() if ".damaged-" in path.name]
    assert [path.is_symlink() for path in aside] == [True]
    file_of(store).symlink_to(victim)
    written = await put(store, grant())
    assert not file_of(store).is_symlink()
    assert store.read(ID) == written
    assert victim.read_bytes() == content


@posix
@pytest.mark.parametrize("target", ["elsewhere", "missing"])
async def test_a_linked_folder_or_lock_is_refused_aloud(
    store: GrantStore, home: Path, tmp_path: Path, target: str
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    home.mkdir(parents=True)
    store.root.symlink_to(tmp_path / target)
    with pytest.raises(StoreTrouble, match="is a link or no folder"):
        store.read(ID)
    with pytest.raises(StoreTrouble, match="is a link or no folder"):
        await put(store, grant())
    assert list(elsewhere.iterdir()) == []
    store.root.unlink()
    store.root.mkdir(mode=0o700)
    (store.root / f"{ID}.lock").symlink_to(tmp_path / "planted")
    with pytest.raises(StoreTrouble, match=r"\.lock is a link or no plain file"):
        await put(store, grant())
    assert not (tmp_path / "planted").exists()


@posix
async def test_a_linked_home_is_the_users_choice(tmp_path: Path) -> None:
    (tmp_path / "big-disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "big-disk")
    store = GrantStore(tmp_path / "home")
    written = await put(store, grant())
    assert GrantStore(tmp_path / "big-disk").read(ID) == written


async def test_a_file_in_the_place_of_the_folder_is_refused_aloud(store: GrantStore, home: Path) -> None:
    home.parent.mkdir()
    home.write_text("I am a file")
    with pytest.raises(StoreTrouble, match="is a file"):
        store.read(ID)
    with pytest.raises(StoreTrouble):
        await put(store, grant())
    assert home.read_text() == "I am a file"


def damaged(content: bytes) -> list[bytes]:
    other = json.loads(content)
    moved = {**other, "id": "0" * 32}
    wrong = json.loads(content)
    wrong["value"]["generation"] = "many"
    kind = {**other, "kind": "found"}
    return [
        b"",
        b"\0" * len(content),
        content[:1],
        content[: len(content) // 2],
        content[:-3],
        content + b"}",
        b"[]",
        b"null",
        b'"grant"',
        b"\xff\xfe{}",
        b"[" * 5000,
        b'{"version": 1}',
        b'{"version": true, "kind": "grant"}',
        b'{"version": 0}',
        b'{"access_token": "of another program", "expires_in": 3600}',
        b"x" * (private_files.LIMIT + 1),
        *(json.dumps(each).encode() for each in (moved, wrong, kind)),
    ]


async def test_damage_of_every_kind_is_set_aside_kept_and_named(store: GrantStore, home: Path) -> None:
    await put(store, grant())
    good = file_of(store).read_bytes()
    for content in damaged(good):
        for old in store.root.glob("*.damaged-*"):
            old.unlink()
        file_of(store).write_bytes(content)
        assert store.read(ID) is None, content[:40]
        assert not file_of(store).exists()
        (aside,) = store.root.glob("*.damaged-*")
        assert aside.read_bytes() == content
        line = (home / "grant.log").read_text().splitlines()[-1]
        assert f" grant-damaged {aside.name} " in line
        assert store.all() == []
    await put(store, grant())
    assert store.read(ID) is not None


async def test_damage_is_found_by_the_writer_too(store: GrantStore) -> None:
    await put(store, grant())
    file_of(store).write_bytes(b"{")
    async with store.locked(ID, 1) as held:
        assert held.read() is None
        assert held.drop_if(token_hash("x")) is False
        written = held.write(grant())
    assert store.read(ID) == written
    assert [path.read_bytes() for path in store.root.glob("*.damaged-*")] == [b"{"]


async def test_a_reader_leaves_damage_to_whoever_holds_the_lock(store: GrantStore) -> None:
    await put(store, grant())
    async with store.locked(ID, 1) as held:
        file_of(store).write_bytes(b"{")
        assert store.read(ID) is None
        assert file_of(store).read_bytes() == b"{"
        written = held.write(grant())
    assert store.read(ID) == written


async def test_only_the_newest_three_damaged_files_stay(store: GrantStore) -> None:
    await put(store, grant())
    for number in range(6):
        file_of(store).write_bytes(b"{" * (number + 1))
        assert store.read(ID) is None
    assert len(list(store.root.glob("*.damaged-*"))) == 3


async def test_stale_temporary_files_go_and_fresh_ones_of_others_stay(store: GrantStore) -> None:
    await put(store, grant())
    other = "f" * 32
    names = {
        f".{ID}.json.1-00000000.tmp": 0.0,
        f".{other}.json.1-00000001.tmp": 0.0,
        f".{other}.json.1-00000002.tmp": 3600.0,
        f".{ID}.flow.json.1-00000003.tmp": -3600.0,
        "notes.tmp": 3600.0,
    }
    for name, age in names.items():
        (store.root / name).write_bytes(b"half")
        os.utime(store.root / name, (time.time() - age,) * 2)
    async with store.locked(ID, 1):
        pass
    left = {path.name for path in store.root.glob("*.tmp")} | {path.name for path in store.root.glob(".*.tmp")}
    assert left == {f".{other}.json.1-00000001.tmp", "notes.tmp"}


@pytest.mark.parametrize(
    ("number", "word"), [("ENOSPC", "no space"), ("EROFS", "read-only"), ("EACCES", "chown"), ("EIO", "Check the disk")]
)
async def test_a_disk_that_refuses_any_step_loses_nothing(
    store: GrantStore, monkeypatch: pytest.MonkeyPatch, number: str, word: str
) -> None:
    before = await put(store, grant())
    for call in ("open", "write", "fsync", "ftruncate", "replace"):
        async with store.locked(ID, 1) as held:
            with monkeypatch.context() as patched:
                patched.setattr(private_files.os, call, refusing(getattr(os, call), getattr(errno, number)))
                with pytest.raises(StoreTrouble) as raised:
                    held.write(grant())
        text = str(raised.value)
        assert raised.value.errno == getattr(errno, number)
        assert word in text
        assert "What was stored before is unchanged" in text
        assert "rt-" not in text
        assert store.read(ID) == before
        assert list(store.root.glob(".*.tmp")) == []


def refusing(real: Callable[..., Any], number: int) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        # Reading goes on: only what changes something is refused.
        if real is not os.write and isinstance(arguments[0], str | Path) and not str(arguments[0]).endswith(".tmp"):
            return real(*arguments, **named)
        raise OSError(number, os.strerror(number))

    return call


@settings(max_examples=60)
@given(content=st.binary(max_size=200) | JSON_VALUES.map(lambda value: json.dumps(value).encode()))
def test_reading_survives_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    store = GrantStore(tmp_path_factory.getbasetemp() / "any")
    store.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    file_of(store).write_bytes(content)
    assert store.read(ID) is None
    assert store.all() == []
