"""What every store does, whatever database is behind it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.store import sqlite
from interlock.store.interface import MAX_CATALOGUE_BYTES, MAX_KNOWN_ENTRIES, CallRow, Gap, Store, StoreError

OpenStore = Callable[[], Store]
MakeRow = Callable[..., CallRow]


def ids(rows: list[CallRow]) -> list[str]:
    return [row.id for row in rows]


def test_a_store_with_nothing_in_it_answers_with_nothing(open_store: OpenStore) -> None:
    store = open_store()
    assert store.recent_calls(10) == []
    assert store.find_calls("", 10) == []
    assert store.recent_gaps(0, 10) == []
    assert store.load_catalogue("git", "d") is None
    assert store.load_era("git", "d") is None
    assert store.prune(10**18, 100) == 0


@pytest.mark.parametrize("count", [1, 2, 63, 512, 513, 2000])
def test_rows_come_back_as_they_were(open_store: OpenStore, count: int) -> None:
    rows = [
        CallRow(f"{n:05}", n, None if n % 3 else "git", "ok", f'{{"n":{n},"ü":"\\u0000"}}'.encode())
        for n in range(count)
    ]
    open_store().append_calls(rows)
    assert open_store().find_calls("", count + 1) == rows


def test_appending_nothing_is_no_error(open_store: OpenStore) -> None:
    open_store().append_calls([])
    assert open_store().recent_calls(1) == []


def test_a_batch_may_be_repeated(open_store: OpenStore, row: MakeRow) -> None:
    store = open_store()
    store.append_calls([row("a", status="ok"), row("b")])
    store.append_calls([row("a", status="changed"), row("b"), row("c")])
    assert [(found.id, found.status) for found in store.find_calls("", 9)] == [("a", "ok"), ("b", "ok"), ("c", "ok")]


@pytest.mark.parametrize(
    ("limit", "server", "status", "expected"),
    [
        (10, None, None, ["d", "c", "b", "a"]),
        (2, None, None, ["d", "c"]),
        (0, None, None, []),
        (-1, None, None, []),
        (10, "git", None, ["c", "a"]),
        (1, "git", None, ["c"]),
        (10, None, "denied", ["d", "c"]),
        (10, "git", "denied", ["c"]),
        (10, "g%t", None, []),
        (10, "GIT", None, []),
        (10, "git' OR 1=1 --", None, []),
        (10, "\ud800", None, []),
    ],
)
def test_recent_calls(
    open_store: OpenStore, row: MakeRow, limit: int, server: str | None, status: str | None, expected: list[str]
) -> None:
    store = open_store()
    # Written in another order than they arrived in: a long call is recorded late.
    store.append_calls(
        [row("c", 30, "git", "denied"), row("a", 10), row("d", 40, None, "denied"), row("b", 20, "time")]
    )
    assert ids(store.recent_calls(limit, server, status)) == expected


@pytest.mark.parametrize(
    ("prefix", "limit", "expected"),
    [
        ("ab", 9, ["ab1", "ab2"]),
        ("ab1", 9, ["ab1"]),
        ("", 9, ["ab1", "ab2", "b%1", "b_2"]),
        ("", 2, ["ab1", "ab2"]),
        ("b%", 9, ["b%1"]),
        ("b_", 9, ["b_2"]),
        ("*", 9, []),
        ("AB", 9, []),
        ("\ud800", 9, []),
        ("ab", 0, []),
    ],
)
def test_find_calls(open_store: OpenStore, row: MakeRow, prefix: str, limit: int, expected: list[str]) -> None:
    store = open_store()
    store.append_calls([row(id, at) for at, id in enumerate(["ab2", "b%1", "ab1", "b_2"])])
    assert ids(store.find_calls(prefix, limit)) == expected


def test_pruning_takes_the_oldest_first_and_no_more_than_asked(open_store: OpenStore, row: MakeRow) -> None:
    store = open_store()
    store.append_calls([row(f"{at:02}", at) for at in range(20)])
    assert store.prune(15, 10) == 10
    assert ids(store.find_calls("", 99)) == [f"{at:02}" for at in range(10, 20)]
    assert store.prune(15, 10) == 5
    assert store.prune(15, 10) == 0
    assert ids(store.find_calls("", 99)) == ["15", "16", "17", "18", "19"]


def test_gaps(open_store: OpenStore) -> None:
    store = open_store()
    gaps = [Gap(0, 5, None, "damaged"), Gap(10, 20, 3, "disk full \ud800"), Gap(30, 40, 1, "slow")]
    for gap in gaps:
        store.append_gap(gap)
    newest_first = [Gap(30, 40, 1, "slow"), Gap(10, 20, 3, "disk full ?"), Gap(0, 5, None, "damaged")]
    assert open_store().recent_gaps(0, 9) == newest_first
    assert store.recent_gaps(20, 9) == newest_first[:2]
    assert store.recent_gaps(0, 1) == newest_first[:1]
    store.prune(21, 0)
    assert store.recent_gaps(0, 9) == newest_first[:1]


def test_catalogues_are_kept_for_exactly_one_server_and_configuration(open_store: OpenStore) -> None:
    store = open_store()
    store.save_catalogue("git", "one", b"\x00\xff")
    store.save_catalogue("git", "two", b"")
    store.save_catalogue("git", "one", b"newer")
    other = open_store()
    assert other.load_catalogue("git", "one") == b"newer"
    assert other.load_catalogue("git", "two") == b""
    assert other.load_catalogue("git", "three") is None
    assert other.load_catalogue("Git", "one") is None


def test_a_catalogue_that_is_too_large_is_refused_and_the_last_one_stays(open_store: OpenStore) -> None:
    store = open_store()
    store.save_catalogue("git", "d", b"small")
    with pytest.raises(StoreError, match="the catalogue of git has 16777217 bytes") as refused:
        store.save_catalogue("git", "d", bytes(MAX_CATALOGUE_BYTES + 1))
    assert refused.value.trouble == "too_large"
    assert store.load_catalogue("git", "d") == b"small"


def test_the_number_of_kept_catalogues_and_eras_is_bounded(open_store: OpenStore) -> None:
    store = open_store()
    for number in range(MAX_KNOWN_ENTRIES + 2):
        store.save_catalogue("git", str(number), b"x")
        store.save_era("git", str(number), "modern")
    assert store.load_catalogue("git", "1") is None
    assert store.load_era("git", "1") is None
    assert store.load_catalogue("git", "2") == b"x"
    assert store.load_era("git", "2") == "modern"


def test_the_bytes_of_kept_catalogues_are_bounded(open_store: OpenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "MAX_KNOWN_BYTES", 1000)
    store = open_store()
    for number in range(4):
        store.save_catalogue("git", str(number), bytes(400))
    assert [store.load_catalogue("git", str(number)) is not None for number in range(4)] == [False, False, True, True]


def test_eras(open_store: OpenStore) -> None:
    store = open_store()
    store.save_era("git", "one", "2025-11-25")
    store.save_era("git", "one", "2026-07-28")
    assert open_store().load_era("git", "one") == "2026-07-28"
    assert open_store().load_era("git", "two") is None


def test_a_closed_store_opens_again_when_it_is_used(open_store: OpenStore, row: MakeRow) -> None:
    store = open_store()
    store.append_calls([row("a")])
    store.close()
    store.close()
    store.append_calls([row("b")])
    assert ids(store.find_calls("", 9)) == ["a", "b"]


@given(st.text(max_size=20), st.text(max_size=20), st.binary(max_size=50))
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_key_serves(open_store: OpenStore, key: str, digest: str, payload: bytes) -> None:
    store = open_store()
    store.save_catalogue(key, digest, payload)
    assert store.load_catalogue(key, digest) == payload
    store.close()
