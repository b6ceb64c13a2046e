"""The grant store in one process: what is kept and how, damage, planted links, newer builds, compare-and-swap, the lock."""

# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import errno
import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.upstream.oauth import private_files
from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.grant import Grant, Refusal, Registration
from interlock.upstream.oauth.grant_file import VERSION
from interlock.upstream.oauth.grant_store import Busy, GrantStore, Held, StoreTrouble, grant_id, token_hash

SERVER = "https://resource.test/mcp"
ISSUER = "https://issuer.test"
ID = grant_id(SERVER, ISSUER, None)
posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and links")


def registration(client_id: str = "client", **more: Any) -> Registration:
    return Registration(**{"issuer": ISSUER, "client_id": client_id, "source": "dynamic", **more})


def grant(**more: Any) -> Grant:
    basis = {"server_url": SERVER, "resource": SERVER, "issuer": ISSUER, "registration": registration()}
    return Grant(
        **{**basis, "access_token": "at-" + secrets.token_hex(8), "refresh_token": "rt-" + secrets.token_hex(8), **more}
    )


def discovered(url: str = SERVER, resource: str = SERVER, **more: Any) -> Discovered:
    return Discovered(server_url=url, resource=resource, issuer=ISSUER, metadata=ServerMetadata(issuer=ISSUER), **more)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "home"


@pytest.fixture
def store(home: Path) -> GrantStore:
    return GrantStore(home)


@pytest.fixture
def umask() -> Iterator[Callable[[int], None]]:
    before = os.umask(0o022)
    yield lambda mask: os.umask(mask) and None
    os.umask(before)


async def put(store: GrantStore, value: Grant, id: str = ID) -> Grant:
    async with store.locked(id, 1) as held:
        return held.write(value)


def file_of(store: GrantStore) -> Path:
    return store.root / f"{ID}.json"


def modes(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): stat.S_IMODE(os.lstat(path).st_mode) for path in root.rglob("*")}


def test_ids_differ_by_each_part_and_by_the_raw_string() -> None:
    ids = {
        grant_id(*parts)
        for parts in (
            (SERVER, ISSUER, None),
            (SERVER + "/", ISSUER, None),
            (SERVER, ISSUER + "/", None),
            (SERVER.upper(), ISSUER, None),
            (SERVER, ISSUER, ""),
            (SERVER, ISSUER, "a"),
            (SERVER + ISSUER, "", None),
            ("", SERVER + ISSUER, None),
        )
    }
    assert len(ids) == 8
    assert all(len(id) == 32 and set(id) <= set("0123456789abcdef") for id in ids)
    assert grant_id(SERVER, ISSUER, None) == ID


@pytest.mark.parametrize("id", ["", "x", "../" * 8 + "abcdefgh", ID.upper(), ID + "\n", ID + ".json", "0" * 31 + "/"])
async def test_an_id_that_is_none_becomes_no_path(store: GrantStore, id: str) -> None:
    for use in (store.read, store.stamp, store.forget):
        with pytest.raises(ValueError, match="not the id"):
            use(id)
    with pytest.raises(ValueError, match="not the id"):
        async with store.locked(id, 0):
            pass


async def test_what_is_written_is_read_field_by_field(store: GrantStore) -> None:
    full = grant(
        state="refused",
        scope=("files:read", "ünïcode"),
        obtained_at=1.5,
        expires_at=2.5,
        not_before=3.5,
        refresh_not_before=4.5,
        refresh_expires_at=5.5,
        presented_at=6.5,
        presented_again=True,
        refusal=Refusal(first_at=1.0, last_at=2.0, count=3, error="invalid_grant", description="“gone”"),
        skew=-1800.25,
        registration=registration(
            client_secret=secrets.token_hex(), secret_expires_at=7.5, auth_method="client_secret_basic"
        ),
    )
    written = await put(store, full)
    assert written == msgspec.structs.replace(full, generation=1)
    assert GrantStore(store.root.parent).read(ID) == written
    assert store.all() == [(ID, written)]


async def test_a_store_that_was_never_used_holds_nothing_and_makes_nothing(store: GrantStore, home: Path) -> None:
    assert store.read(ID) is None
    assert store.stamp(ID) is None
    assert store.all() == []
    assert store.recalled(SERVER, None) is None
    assert store.registration(ISSUER, None) is None
    assert store.drop_registration(ISSUER, "client") is False
    assert store.forget(ID) is False
    assert not home.exists()


async def test_generations_count_up_from_what_is_on_the_disk(store: GrantStore) -> None:
    first = await put(store, grant())
    stale = await put(store, grant())
    assert (first.generation, stale.generation) == (1, 2)
    # A value that was read long ago does not set the count back.
    assert (await put(store, first)).generation == 3
    store.forget(ID)
    # After a logout too, no generation comes twice in a process that remembers one.
    assert (await put(store, stale)).generation == 3


async def test_the_stamp_changes_with_every_change_however_fast(store: GrantStore) -> None:
    stamps: list[object] = [store.stamp(ID)]
    async with store.locked(ID, 1) as held:
        for _ in range(50):
            held.write(grant())
            stamps.append(store.stamp(ID))
    assert stamps[0] is None
    assert len(set(stamps)) == 51
    assert store.stamp(ID) == stamps[-1]
    store.forget(ID)
    assert store.stamp(ID) is None


async def test_the_stamp_changes_also_where_the_clock_was_set_back(store: GrantStore) -> None:
    await put(store, grant())
    later = time.time_ns() + 3600 * 10**9
    os.utime(file_of(store), ns=(later, later))
    before = store.stamp(ID)
    await put(store, grant())
    after = store.stamp(ID)
    assert before is not None
    assert after is not None
    assert after[0] > before[0]


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


async def test_fields_of_a_newer_build_survive_a_write_of_ours(store: GrantStore) -> None:
    await put(store, grant())
    whole = json.loads(file_of(store).read_bytes())
    whole["value"]["dpop_key"] = {"kty": "EC"}
    whole["value"]["registration"]["statement"] = "signed"
    file_of(store).write_bytes(json.dumps(whole).encode())
    before = store.read(ID)
    assert before is not None
    again = await put(store, msgspec.structs.replace(before, scope=("more",)))
    value = json.loads(file_of(store).read_bytes())["value"]
    assert value["dpop_key"] == {"kty": "EC"}
    assert value["registration"] == {**msgspec.to_builtins(again.registration), "statement": "signed"}
    assert value["scope"] == ["more"]
    # What belonged to another registration is not put under a new one.
    await put(store, msgspec.structs.replace(again, registration=registration("another")))
    value = json.loads(file_of(store).read_bytes())["value"]
    assert "statement" not in value["registration"]
    assert value["dpop_key"] == {"kty": "EC"}


async def test_a_file_of_a_later_version_is_kept(store: GrantStore, home: Path) -> None:
    await put(store, grant())
    content = json.dumps({"version": VERSION + 1, "wholly": "different"}).encode()
    file_of(store).write_bytes(content)
    for _ in range(3):
        assert store.read(ID) is None
    assert file_of(store).read_bytes() == content
    assert (home / "grant.log").read_text().count("grant-newer") == 1
    async with store.locked(ID, 1) as held:
        assert held.read() is None
        assert held.drop_if(token_hash("x")) is False
        assert file_of(store).read_bytes() == content
        written = held.write(grant())
    assert store.read(ID) == written
    assert [path.read_bytes() for path in store.root.glob("*.newer-*")] == [content]


async def test_compare_and_swap_drops_only_the_token_that_was_presented(store: GrantStore) -> None:
    old = await put(store, grant())
    new = await put(store, grant())
    assert old.refresh_token
    assert new.refresh_token
    assert new.access_token
    async with store.locked(ID, 1) as held:
        for loser in (old.refresh_token, old.access_token or "", "", ID):
            assert held.drop_if(token_hash(loser)) is False
            assert held.drop_if(loser) is False
        assert held.drop_if(new.refresh_token) is False
        assert held.read() == new
        assert held.drop_if(token_hash(new.refresh_token)) is True
        assert held.read() is None
        assert held.drop_if(token_hash(new.refresh_token)) is False
        again = held.write(grant(refresh_token=None))
        assert again.access_token
        assert held.drop_if(token_hash(again.access_token)) is True
    assert store.read(ID) is None


async def test_the_lock_excludes_tasks_of_one_process(store: GrantStore) -> None:
    inside = 0
    most = 0

    async def add() -> None:
        nonlocal inside, most
        async with store.locked(ID, 20) as held:
            inside += 1
            most = max(most, inside)
            before = held.read()
            await asyncio.sleep(0)
            held.write(grant(access_token=str(int(before.access_token or 0) + 1 if before else 1)))
            inside -= 1

    await asyncio.gather(*(add() for _ in range(20)))
    after = store.read(ID)
    assert after is not None
    assert (most, after.access_token, after.generation) == (1, "20", 20)


async def test_busy_comes_in_time_and_the_loop_goes_on(store: GrantStore) -> None:
    turns = 0

    async def spin() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    spinning = asyncio.create_task(spin())
    async with store.locked(ID, 1):
        began = time.monotonic()
        with pytest.raises(Busy, match=r"holds .*\.lock for more than 0\.2 seconds"):
            async with store.locked(ID, 0.2):
                raise AssertionError
        assert 0.2 <= time.monotonic() - began < 2
        with pytest.raises(Busy):
            async with store.locked(ID, 0):
                raise AssertionError
        other = grant_id(SERVER, ISSUER, "another")
        async with store.locked(other, 0):
            pass
    assert turns > 20
    spinning.cancel()
    async with store.locked(ID, 0):
        pass


async def test_a_cancelled_waiter_and_a_cancelled_holder_leave_no_lock(store: GrantStore) -> None:
    entered = asyncio.Event()

    async def hold() -> None:
        async with store.locked(ID, 5) as held:
            held.reserve()
            entered.set()
            await asyncio.Event().wait()

    holder = asyncio.create_task(hold())
    await entered.wait()
    waiter = asyncio.create_task(put(store, grant()))
    await asyncio.sleep(0)
    for task in (waiter, holder):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with store.locked(ID, 0):
        pass
    assert [path.name for path in store.root.iterdir()] == [f"{ID}.lock"]


async def test_a_failure_under_the_lock_lets_it_go(store: GrantStore) -> None:
    with pytest.raises(ZeroDivisionError):
        async with store.locked(ID, 1):
            raise ZeroDivisionError
    async with store.locked(ID, 0):
        pass


async def test_held_is_of_no_use_after_the_lock(store: GrantStore) -> None:
    async with store.locked(ID, 1) as held:
        kept: Held = held
    for use in (kept.read, kept.reserve, kept.remove, lambda: kept.write(grant()), lambda: kept.drop_if("x")):
        with pytest.raises(RuntimeError, match="not held"):
            use()


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


async def test_all_lists_good_grants_only_and_forget_takes_what_is_beside(store: GrantStore) -> None:
    ids = sorted(grant_id(SERVER, ISSUER, str(number)) for number in range(3))
    for id in ids:
        await put(store, grant(), id)
    (store.root / f"{ids[1]}.json").write_bytes(b"")
    (store.root / "README.json").write_bytes(b"{}")
    (store.root / f"{ids[0]}.flow.json").write_bytes(b"{}")
    assert [id for id, _ in store.all()] == [ids[0], ids[2]]
    assert store.forget(ids[0]) is True
    assert store.forget(ids[0]) is False
    assert [path.name for path in store.root.glob(f"{ids[0]}*")] == [f"{ids[0]}.lock"]
    assert [id for id, _ in store.all()] == [ids[2]]


async def test_forget_waits_for_the_lock_and_says_busy(store: GrantStore, monkeypatch: pytest.MonkeyPatch) -> None:
    written = await put(store, grant())
    monkeypatch.setattr("interlock.upstream.oauth.grant_store._FORGET_SECONDS", 0.05)
    async with store.locked(ID, 1) as held:
        with pytest.raises(Busy):
            store.forget(ID)
        assert store.read(ID) == written
        assert held.remove() is True
        assert held.remove() is False
    assert store.read(ID) is None


def test_discovery_is_recalled_by_url_and_resource(store: GrantStore) -> None:
    plain = discovered(scopes_supported=("a",), remarks=("odd",))
    other = discovered(url="https://resource.test/other", resource="https://resource.test")
    overridden = discovered(resource="api://override")
    store.remember(plain)
    store.remember(other)
    store.remember(overridden, override="api://override")
    again = GrantStore(store.root.parent)
    assert again.recalled(SERVER, None) == plain
    assert again.recalled(SERVER, "api://override") == overridden
    assert again.recalled(SERVER, "api://unknown") is None
    assert again.recalled("https://resource.test/other", None) == other
    assert again.recalled("https://elsewhere.test", None) is None
    moved = msgspec.structs.replace(plain, issuer="https://moved.test")
    store.remember(moved)
    assert store.recalled(SERVER, None) == moved
    for number in range(20):
        store.remember(discovered(resource=f"api://{number}"), override=f"api://{number}")
    assert len(list(store.root.glob("*.found.json"))) == 9
    for path in store.root.glob("*.found.json"):
        path.write_bytes(b"{")
    assert store.recalled(SERVER, None) is None


def test_registrations_are_kept_by_issuer_and_dropped_by_client_id(store: GrantStore) -> None:
    first, second = registration("first"), registration("second", client_secret=secrets.token_hex())
    preset = registration("preset", source="preset")
    store.keep_registration(first)
    store.keep_registration(preset)
    assert store.registration(ISSUER, None) == first
    store.keep_registration(second)
    assert store.registration(ISSUER, None) == second
    assert store.registration(ISSUER, "preset") == preset
    assert store.registration(ISSUER, "unknown") is None
    assert store.registration(ISSUER + "/", None) is None
    # One that got invalid_client for the first does not take away the second.
    assert store.drop_registration(ISSUER, "first") is True
    assert store.drop_registration(ISSUER, "first") is False
    assert store.drop_registration("https://elsewhere.test", "second") is False
    assert store.registration(ISSUER, None) == second
    assert store.drop_registration(ISSUER, "second") is True
    assert store.registration(ISSUER, None) is None
    assert store.registration(ISSUER, "preset") == preset


def test_earlier_registrations_go_once_they_are_a_minute_old(store: GrantStore) -> None:
    for number in range(5):
        store.keep_registration(registration(str(number)))
    store.keep_registration(registration("preset", source="preset"))
    assert len(list(store.root.glob("*.client.json"))) == 6
    for path in store.root.iterdir():
        os.utime(path, (time.time() - 100,) * 2)
    store.keep_registration(registration("last"))
    assert len(list(store.root.glob("*.client.json"))) == 2
    kept = store.registration(ISSUER, None)
    assert kept is not None
    assert kept.client_id == "last"


def test_a_repr_shows_no_secret() -> None:
    secret = secrets.token_hex(16)
    shown = repr(grant(access_token=secret, refresh_token=secret, registration=registration(client_secret=secret)))
    assert secret not in shown
    assert secret not in repr(registration(client_secret=secret))
    assert ISSUER in shown


TEXT = st.text(max_size=30)


JSON_VALUES = st.recursive(
    st.none() | st.integers() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=10
)


@settings(max_examples=60)
@given(content=st.binary(max_size=200) | JSON_VALUES.map(lambda value: json.dumps(value).encode()))
def test_reading_survives_any_bytes(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    store = GrantStore(tmp_path_factory.getbasetemp() / "any")
    store.root.mkdir(mode=0o700, parents=True, exist_ok=True)
    file_of(store).write_bytes(content)
    assert store.read(ID) is None
    assert store.all() == []


@settings(max_examples=40)
@given(
    tokens=st.tuples(st.none() | st.text(), st.none() | st.text()),
    scope=st.lists(TEXT, max_size=4).map(tuple),
    times=st.tuples(*[st.none() | st.floats(allow_nan=False, allow_infinity=False)] * 2),
)
def test_any_grant_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory,
    tokens: tuple[str | None, str | None],
    scope: tuple[str, ...],
    times: tuple[float | None, float | None],
) -> None:
    store = GrantStore(tmp_path_factory.getbasetemp() / "round")
    value = grant(
        access_token=tokens[0], refresh_token=tokens[1], scope=scope, expires_at=times[0], refresh_expires_at=times[1]
    )
    written = asyncio.run(put(store, value))
    assert store.read(ID) == written
    assert msgspec.structs.replace(written, generation=0) == value
