"""The grant store in one process: what is kept and how, newer builds, compare-and-swap, discoveries and registrations."""

# ruff: noqa: ASYNC240

from __future__ import annotations

import asyncio
import json
import os
import secrets
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.upstream.oauth.grant import Refusal
from interlock.upstream.oauth.grant_file import VERSION
from interlock.upstream.oauth.grant_store import GrantStore, grant_id, token_hash

from .grants import ID, ISSUER, SERVER, discovered, file_of, grant, put, registration


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "home"


@pytest.fixture
def store(home: Path) -> GrantStore:
    return GrantStore(home)


TEXT = st.text(max_size=30)


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
