"""Traces survive the way to a row and back, and to the database and back."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from interlock.journal.record import UNREADABLE, _Record, from_row, to_row
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace
from interlock.store.interface import CallRow

MakeTrace = Callable[..., RouteTrace]

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.integers(0, 2**53)
marks = st.builds(Mark, st.sampled_from(Stage), text, text, st.none() | text, numbers)
traces = st.builds(
    RouteTrace,
    id=text,
    at_ns=st.integers(0, 2**63 - 1),
    method=text,
    principal=text,
    client=text,
    host=st.none() | text,
    server=st.none() | text,
    name=st.none() | text,
    status=text,
    verdict=st.none() | text,
    slug=st.none() | text,
    era_down=text,
    era_up=text,
    bytes_in=numbers,
    bytes_out=numbers,
    micros=numbers,
    marks=st.lists(marks, max_size=9),
)


@given(traces)
def test_a_trace_comes_back_as_it_was(trace: RouteTrace) -> None:
    assert from_row(to_row(trace)) == trace


def test_every_field_of_a_trace_is_stored() -> None:
    """A field that is added to RouteTrace or Mark is added to the record too."""
    stored = {*CallRow._fields, *_Record.__struct_fields__} - {"record"}
    assert {field.name for field in fields(RouteTrace)} == stored
    assert [field.name for field in fields(Mark)] == ["stage", "decision", "reason", "rule", "micros"]


def test_the_record_is_json_with_names(make_trace: MakeTrace) -> None:
    row = to_row(make_trace(id="x", at_ns=7, host=None, verdict=None, bytes_in=0))
    assert (row.id, row.at_ns, row.server, row.status) == ("x", 7, "git", "ok")
    assert json.loads(row.record) == {
        "method": "tools/call",
        "principal": "local:1000",
        "client": "tester/1.0",
        "name": "git/log",
        "era_down": "2026-07-28",
        "era_up": "2025-11-25",
        "bytes_out": 4096,
        "micros": 1234,
        "marks": [
            ["discover", "connected", "shared process", None, 3],
            ["authorize", "allow", "allowed by glob", "/etc/interlock/interlock.yaml:7", 5],
            ["execute", "ok", "answered", None, 1200],
        ],
    }


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"junk",
        b"[]",
        b'{"method":1}',
        b'{"method":"m"}',
        b'{"method":"m","principal":"p","client":"c","marks":[["tomorrow","","",null,1]]}',
        b'{"method":"m","principal":"p","client":"c","marks":[["execute"]]}',
    ],
)
def test_a_record_that_is_not_understood_still_shows_its_columns(record: bytes) -> None:
    trace = from_row(CallRow("x", 7, "git", "ok", record))
    assert (trace.id, trace.at_ns, trace.server, trace.status) == ("x", 7, "git", "ok")
    assert trace.method == UNREADABLE


def test_a_record_of_a_later_release_is_read_as_far_as_it_is_known() -> None:
    record = b'{"method":"m","principal":"p","client":"c","tomorrow":[1],"micros":3}'
    trace = from_row(CallRow("x", 7, None, "ok", record))
    assert (trace.method, trace.micros) == ("m", 3)


@pytest.mark.parametrize("field", ["name", "server", "client", "id", "status", "method"])
def test_a_lone_surrogate_becomes_a_question_mark(make_trace: MakeTrace, field: str) -> None:
    back = from_row(to_row(make_trace(**{field: "a\ud800b"})))
    assert getattr(back, field) == "a?b"


def test_a_lone_surrogate_in_a_reason_becomes_a_question_mark(make_trace: MakeTrace) -> None:
    mark = Mark(Stage.EXECUTE, "ok", "a\udfffb", None, 1)
    assert from_row(to_row(make_trace(marks=[mark]))).marks == [replace(mark, reason="a?b")]


@pytest.mark.parametrize(
    "fields", [{"at_ns": 2**63}, {"marks": [None]}, {"method": object()}, {"id": None}, {"marks": None}]
)
def test_what_no_row_can_hold_is_a_value_error(make_trace: MakeTrace, fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="cannot be stored"):
        to_row(make_trace(**fields))
