"""stdio framing: the same lines however the bytes are cut, and no more memory than the limit."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.lines import HEAD_BYTES, LineSplitter, looks_like_message

from .texts import pieces

LIMIT = 10
STREAMS = st.lists(
    st.sampled_from([b"\n", b"\n", b"\r\n", b"\r", b"a", b"{}", b"0123456789", b"0123456789x", b"\x00", b"\xff"]),
    max_size=20,
).map(b"".join)


def expected_lines(stream: bytes, limit: int) -> tuple[list[bytes], int]:
    """What the stream holds, the plain way: complete lines only."""
    lines = [line.removesuffix(b"\r") for line in stream.split(b"\n")[:-1]]
    return [line for line in lines if line and len(line) <= limit], sum(len(line) > limit for line in lines)


@given(STREAMS.flatmap(lambda stream: st.tuples(st.just(stream), pieces(stream))))
def test_any_cut_gives_the_same_lines(case: tuple[bytes, list[bytes]]) -> None:
    stream, parts = case
    splitter = LineSplitter(LIMIT)
    lines = [line for part in parts for line in splitter.feed(part)]
    wanted, overflows = expected_lines(stream, LIMIT)
    assert lines == wanted
    # The last line may be too long before it has ended.
    tail = stream.rpartition(b"\n")[2]
    assert splitter.overflows == overflows + (len(tail) > LIMIT + 1)
    splitter.feed(b"\n")
    assert splitter.overflows == expected_lines(stream + b"\n", LIMIT)[1]


@pytest.mark.parametrize(
    ("parts", "lines", "overflows"),
    [
        ([b"a\nb\n"], [b"a", b"b"], 0),
        ([b"a", b"b", b"\n"], [b"ab"], 0),
        ([b"a\r", b"\n"], [b"a"], 0),
        ([b"a\rb\n"], [b"a\rb"], 0),
        ([b"\n\r\n\n"], [], 0),
        ([b"no end"], [], 0),
        ([b"0123456789\r\n"], [b"0123456789"], 0),
        ([b"0123456789\r", b"\n"], [b"0123456789"], 0),
        ([b"0123456789x\n", b"ok\n"], [b"ok"], 1),
        ([b"0123456789", b"xyz", b"more", b"\nok\n"], [b"ok"], 1),
        ([b"0123456789xyz\n0123456789xyz\nok\n"], [b"ok"], 2),
        ([b"0123456789xyz", b"\nok\n0123456789xyz\n"], [b"ok"], 2),
    ],
)
def test_lines(parts: list[bytes], lines: list[bytes], overflows: int) -> None:
    splitter = LineSplitter(LIMIT)
    assert [line for part in parts for line in splitter.feed(part)] == lines
    assert splitter.overflows == overflows


def test_the_head_of_a_line_that_is_too_long_is_kept() -> None:
    splitter = LineSplitter(2000)
    start = b'{"jsonrpc":"2.0","id":5,"result":{"text":"'
    splitter.feed(start + b"x" * 1000)
    splitter.feed(b"y" * 1500)
    splitter.feed(b"z" * 100_000 + b'"}}\n{"ok":1}\n')
    assert splitter.heads == [(start + b"x" * HEAD_BYTES)[:HEAD_BYTES]]
    for number in range(50):
        splitter.feed(b"%d" % number * 3000 + b"\n")
    assert len(splitter.heads) == 16
    assert splitter.overflows == 51


def test_a_line_without_end_costs_no_more_than_the_limit() -> None:
    """Also where it comes in the smallest pieces, which would be the dearest to keep one by one."""
    splitter = LineSplitter(200_000)
    tracemalloc.start()
    try:
        for _ in range(150_000):
            splitter.feed(b"xy")
        assert splitter.overflows == 1
        splitter.feed(b"\n")
        for _ in range(90_000):
            splitter.feed(b"xy")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert splitter.feed(b"\n") == [b"xy" * 90_000]
    assert peak < 1_000_000


@pytest.mark.parametrize(
    ("line", "expected"),
    [(b'{"a":1}', True), (b" [1]", True), (b"Server started", False), (b"", False), (b'"x"', False), (b"1", False)],
)
def test_looks_like_message(line: bytes, expected: bool) -> None:
    assert looks_like_message(line) is expected
