"""Depth and number of values, against the plain way to find them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire import shape

from .texts import values


def depth_of(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


def commas_of(value: object) -> int:
    if isinstance(value, dict):
        return max(len(value) - 1, 0) + sum(map(commas_of, value.values()))
    if isinstance(value, list):
        return max(len(value) - 1, 0) + sum(map(commas_of, value))
    return 0


@given(values(), st.integers(0, 6))
def test_both_agree_with_the_plain_way(text: str, limit: int) -> None:
    value = json.loads(text)
    assert shape.too_deep(text.encode(), limit) is (depth_of(value) > limit)
    assert shape.too_many(text.encode(), limit) is (commas_of(value) > limit)


BRACKETS = st.recursive(
    st.just("[]"), lambda inner: st.lists(inner, min_size=1, max_size=3).map(lambda parts: "[" + "".join(parts) + "]")
)


@given(BRACKETS, st.integers(1, 200), st.integers(0, 12))
def test_spines_and_bushes_together(bush: str, spine: int, below: int) -> None:
    """Shapes on which the quick rounds give up at different moments. Commas do not matter for depth."""
    text = "[" + ("[" * spine + "]" * spine) * 20 + bush * 5 + "]"
    deepest = level = 0
    for char in text:
        level += 1 if char == "[" else -1
        deepest = max(deepest, level)
    assert shape.too_deep(text.encode(), deepest - below - 1) is True
    assert shape.too_deep(text.encode(), deepest) is False


@pytest.mark.parametrize(
    ("data", "limit", "expected"),
    [
        (b"[]", 0, True),
        (b"[]", 1, False),
        (b'{"a":{"b":[1]}}', 2, True),
        (b'{"a":{"b":[1]}}', 3, False),
        (b'["[[[[[[",[]]', 2, False),
        (b'["\\"[[[[",[]]', 2, False),
        (b'["\\\\",[[]]]', 2, True),
        (b'["\\\\\\"[[[",[]]', 2, False),
        (b"[{},[],{},[],{}]", 1, True),
        (b"[{},[],{},[],{}]", 2, False),
        (b"[" * 300 + b"]" * 300, 200, True),
        (b"[" * 200 + b"]" * 200, 200, False),
    ],
)
def test_depth(data: bytes, limit: int, expected: bool) -> None:
    assert shape.too_deep(data, limit) is expected


@pytest.mark.parametrize(
    ("data", "limit", "expected"),
    [
        (b"[1,2,3]", 2, False),
        (b"[1,2,3]", 1, True),
        (b'["a,b,c,d"]', 0, False),
        (b'{"a":[1,2],"b,c":[3,4]}', 3, False),
        (b'{"a":[1,2],"b,c":[3,4]}', 2, True),
        (b'["\\",\\\\",","]', 1, False),
    ],
)
def test_number_of_values(data: bytes, limit: int, expected: bool) -> None:
    assert shape.too_many(data, limit) is expected
