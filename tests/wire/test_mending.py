"""Messages that are mended, and whose request a broken message was about."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire import mending

from .texts import values

UNITS = st.sampled_from(
    ["\\ud83d", "\\uD800", "\\udbff", "\\ude00", "\\uDC00", "\\udfff", "\\\\", "u", "\\n", "\\u0041", "x"]
)


@given(st.lists(UNITS, max_size=12).map("".join))
def test_surrogates_are_mended_as_a_utf16_reader_would(text: str) -> None:
    """Python's reader keeps unpaired surrogates and joins pairs: the reference."""
    mended = mending.mend(b'"' + text.encode() + b'"', utf8=False)
    expected = json.loads('"' + text + '"')
    assert json.loads(mended) == "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in expected)
    assert len(mended) == len(text) + 2


@given(values())
def test_what_is_in_order_is_not_touched(text: str) -> None:
    assert mending.mend(text.encode(), utf8=True) == text.encode()
    assert mending.mend(text.encode(), utf8=False) == text.encode()
    assert json.loads(mending.one_line(text.encode())) == json.loads(text)


@given(st.binary(max_size=60))
def test_mending_anything_gives_utf8(data: bytes) -> None:
    mending.mend(data, utf8=True).decode()
    mending.mend(data, utf8=False)


@given(st.text(max_size=20), st.integers(0, 2))
def test_clean(text: str, kind: int) -> None:
    assert mending.clean(text) == text
    lone = ["\ud800", "\udfff", "\udc80"][kind]
    assert mending.clean(text + lone + "x") == text + "\ufffdx"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"m","params":{', (1, None)),
        (b'{"jsonrpc": "2.0", "id": "a b", "method": "m", ...', ("a b", None)),
        (b'{"id":-3,"method":"m"', (-3, None)),
        (b'{"jsonrpc":"2.0","id":1,"result":', (None, 1)),
        (b'{"jsonrpc":"2.0","id":"\\u0041\\n","error":', (None, "A\n")),
        (b'{"result":{"x":NaN},"jsonrpc":"2.0","id":12}', (None, 12)),
        (b'{"method":"m","params":{"x":NaN},"jsonrpc":"2.0","id":12}\r\n', (12, None)),
        # nothing that would be a guess about the middle of a message
        (b'{"jsonrpc":"2.0","id":1', (None, None)),
        (b'{"jsonrpc":"2.0","id":1,"params":{},"method":"m"', (None, None)),
        (b'{"params":{"jsonrpc":"2.0","id":1,"method":"m"', (None, None)),
        (b'{"result":{"id":5}}', (None, None)),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"m"', (None, None)),
        (b'{"jsonrpc":"2.0","id":"' + b"x" * 300 + b'","method":"m"', (None, None)),
        (b'{"jsonrpc":"2.0","id":"\\ud800","method":"m"', (None, None)),
        (b'{"jsonrpc":"2.0","id":' + b"1" * 30 + b',"method":"m"', (None, None)),
        (b"", (None, None)),
        (b"\xff\xfe", (None, None)),
    ],
)
def test_guessing_ids(data: bytes, expected: tuple[object, object]) -> None:
    assert mending.guess_ids(data) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"params":{"id":2,"method":"x"},"method":5,"id":7}', (7, None)),
        (b'{"result":{"id":2},"id":"r"}', (None, "r")),
        (b'{"error":{},"id":1.0}', (None, 1)),
        (b'{"id":3}', (3, None)),
        (b'{"id":true,"method":"m"}', (None, None)),
        (b'{"id":null,"method":"m"}', (None, None)),
        (b'{"id":[1],"method":"m"}', (None, None)),
        (b'{"method":"m"}', (None, None)),
        (b"[]", (None, None)),
    ],
)
def test_ids_of_json_that_is_no_message(data: bytes, expected: tuple[object, object]) -> None:
    assert mending.ids_of(data) == expected


@given(st.binary(max_size=100))
def test_ids_of_anything(data: bytes) -> None:
    for ids in (mending.guess_ids(data), mending.ids_of(data)):
        assert None in ids
