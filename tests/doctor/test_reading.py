"""The small readers: JSON with comments, spans of time, and the store looked at without touching it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.doctor import host_files
from interlock.doctor.times import span, until

_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.sampled_from(["https://a//b", "/*", "*/", ",]", '\\"//']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(_values, st.booleans())
def test_plain_json_stays_what_it_is(value: object, indented: bool) -> None:
    text = json.dumps(value, indent=2 if indented else None, ensure_ascii=False)
    assert json.loads(host_files._plain_json(text)) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1, // x\n}', {"a": 1}),
        ('{"a": [1, 2,\n], /* , */ "b": "// no"}', {"a": [1, 2], "b": "// no"}),
        ('{"a": {},\n // last\n}', {"a": {}}),
    ],
)
def test_comments_and_trailing_commas(text: str, value: object) -> None:
    assert json.loads(host_files._plain_json(text)) == value


@given(st.text())
def test_nothing_breaks_the_reader(text: str) -> None:
    host_files._plain_json(text)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-3, "0 s"), (0, "0 s"), (59.6, "60 s"), (89, "89 s"), (90, "2 min"), (3600, "60 min"), (5400, "2 h"),
     (86400, "24 h"), (172800, "2 days"), (1e6, "12 days")],
)  # fmt: skip
def test_spans(seconds: float, words: str) -> None:
    assert span(seconds) == words


def test_until() -> None:
    assert until(3600, 0) == "in 60 min (1970-01-01 01:00:00 UTC)"
    assert until(0, 3600) == "60 min ago (1970-01-01 00:00:00 UTC)"
    assert until(1e30, 0).endswith("(an unreadable time)")
