"""Event streams: the same events however the bytes are cut, and no more memory than the limit."""

from __future__ import annotations

import re
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.sse import KEEP_ALIVE, Event, EventTooLarge, SseDecoder, encode_event

from .texts import pieces

LINES = st.sampled_from(
    [
        b"data: a",
        b"data:b",
        b"data",
        b"data:",
        b"data:  c",
        b"event: ping",
        b"event:",
        b"id: 7",
        b"id",
        b"id: a\x00b",
        b": note",
        b"retry: 10",
        b"retry: x",
        b"retry:-1",
        b"other: 1",
        b"",
        b"",
        b"",
        "data: é".encode(),
        b"data: \xff",
        b" data: x",
        b"dat",
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])
STREAMS = st.builds(
    lambda mark, lines: mark + b"".join(line + end for line, end in lines),
    st.sampled_from([b"", b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef\xbb\xbf\xef\xbb\xbf"]),
    st.lists(st.tuples(LINES, ENDS), max_size=15),
)


def reference(stream: bytes) -> tuple[list[Event], str | None, int | None]:
    """WHATWG HTML, 9.2.6, word for word, on the whole stream at once."""
    stream = stream.removeprefix(b"\xef\xbb\xbf")
    lines = re.split(rb"\r\n|\n|\r", stream)[:-1]
    events: list[Event] = []
    data, event, id_buffer, last, retry = b"", b"", None, None, None
    for line in lines:
        if not line:
            if id_buffer is not None:
                last = id_buffer.decode("utf-8", "replace") or None
            if data:
                events.append(Event(data[:-1], event.decode("utf-8", "replace") or "message", last))
            data, event = b"", b""
            continue
        if line[:1] == b":":
            continue
        field, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if field == b"event":
            event = value
        elif field == b"data":
            data += value + b"\n"
        elif field == b"id" and b"\0" not in value:
            id_buffer = value
        elif field == b"retry" and re.fullmatch(rb"[0-9]+", value):
            retry = int(value)
    return events, last, retry


@given(STREAMS.flatmap(lambda stream: st.tuples(st.just(stream), pieces(stream))))
def test_any_cut_gives_the_events_of_the_standard(case: tuple[bytes, list[bytes]]) -> None:
    stream, parts = case
    decoder = SseDecoder()
    events = [event for part in parts for event in decoder.feed(part)]
    assert (events, decoder.last_id, decoder.retry_ms) == reference(stream)


@pytest.mark.parametrize(
    ("stream", "events", "last_id", "retry"),
    [
        (b'data: {"a":1}\n\n', [Event(b'{"a":1}')], None, None),
        (b"event: endpoint\r\ndata: /messages\r\n\r\n", [Event(b"/messages", "endpoint")], None, None),
        (b"data: a\rdata: b\r\r", [Event(b"a\nb")], None, None),
        # a priming event: an id and no data (2025-11-25, transports: Resumability)
        (b"id: 5\ndata\n\n", [Event(b"", "message", "5")], "5", None),
        (b"id: 5\nretry: 100\n\n", [], "5", 100),
        (b"id: 5\n\ndata: x\n\n", [Event(b"x", "message", "5")], "5", None),
        # an event that is cut off is not given, and its id does not count as received
        (b"id: 1\ndata: a\n\nid: 2\ndata: b\n", [Event(b"a", "message", "1")], "1", None),
        (b"id: 1\ndata: a\n\nid: 2\ndata: b", [Event(b"a", "message", "1")], "1", None),
        (b"id: 1\ndata: a\n\nid\ndata: b\n\n", [Event(b"a", "message", "1"), Event(b"b")], None, None),
        (KEEP_ALIVE + b"data: x\n\n" + KEEP_ALIVE, [Event(b"x")], None, None),
        # an id that is too long for a header is none
        (b"id: " + b"i" * 1025 + b"\ndata: x\n\n", [Event(b"x")], None, None),
        (b"id: " + b"i" * 1024 + b"\n\n", [], "i" * 1024, None),
        (b"retry: 9999999999\n\n", [], None, None),
    ],
)
def test_streams(stream: bytes, events: list[Event], last_id: str | None, retry: int | None) -> None:
    for size in (1, 2, 7, len(stream)):
        decoder = SseDecoder()
        found = [event for at in range(0, len(stream), size) for event in decoder.feed(stream[at : at + size])]
        assert (found, decoder.last_id, decoder.retry_ms) == (events, last_id, retry)


def test_an_event_that_ends_in_carriage_returns_is_given_at_once() -> None:
    decoder = SseDecoder()
    assert decoder.feed(b"data: x\r\r") == [Event(b"x")]
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"data: y\r\n\r") == [Event(b"y")]
    assert decoder.feed(b"\ndata: z\n\n") == [Event(b"z")]


def test_what_a_resumed_stream_took_over_stays() -> None:
    decoder = SseDecoder()
    decoder.last_id, decoder.retry_ms = "before", 50
    assert decoder.feed(b"data: x\n\n") == [Event(b"x", "message", "before")]
    assert (decoder.last_id, decoder.retry_ms) == ("before", 50)


@pytest.mark.parametrize(
    "stream",
    [b"data: " + b"x" * 200, b": " + b"x" * 200, b"id: " + b"x" * 200, b"data: x\n" * 60, b"x" * 200 + b"\n\n"],
)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_events_are_bounded(stream: bytes, size: int) -> None:
    decoder = SseDecoder(limit=100)
    stream = b"data: first\n\n" + stream
    events: list[Event] = []

    def feed_all() -> None:
        for at in range(0, len(stream), size):
            events.extend(decoder.feed(stream[at : at + size]))

    with pytest.raises(EventTooLarge) as caught:
        feed_all()
    assert events + caught.value.events == [Event(b"first")]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_the_limit_itself_is_allowed(size: int) -> None:
    stream = (
        b"data: "
        + b"x" * 94
        + b"\n\n"
        + b": "
        + b"y" * 98
        + b"\n"
        + b"data:"
        + b"z" * 49
        + b"\ndata: "
        + b"z" * 50
        + b"\n\n"
    )
    decoder = SseDecoder(limit=100)
    events = [event for at in range(0, len(stream), size) for event in decoder.feed(stream[at : at + size])]
    assert events == [Event(b"x" * 94), Event(b"z" * 49 + b"\n" + b"z" * 50)]


def test_an_event_in_the_smallest_lines_costs_no_more_than_the_limit() -> None:
    decoder = SseDecoder(limit=300_000)

    def feed_all() -> None:
        for _ in range(200_000):
            decoder.feed(b"data:ab\n")

    tracemalloc.start()
    try:
        with pytest.raises(EventTooLarge):
            feed_all()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_500_000


@given(st.binary(max_size=300))
def test_anything_is_taken(data: bytes) -> None:
    for event in SseDecoder().feed(data):
        assert b"\r" not in event.data


IDS = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0"), min_size=1, max_size=20).filter(
    lambda id: id[0] != " "
)


@given(st.binary(max_size=80), st.none() | IDS, st.none() | IDS, st.none() | st.integers(0, 10**8), st.integers(1, 20))
def test_events_that_we_write_are_read_back(
    data: bytes, id: str | None, event: str | None, retry: int | None, size: int
) -> None:
    written = encode_event(data, id=id, event=event, retry_ms=retry)
    decoder = SseDecoder()
    found = [each for at in range(0, len(written), size) for each in decoder.feed(written[at : at + size])]
    text = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert found == [Event(text, event or "message", id)]
    assert (decoder.last_id, decoder.retry_ms) == (id, retry)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (encode_event(b"{}"), b"data: {}\n\n"),
        (encode_event(b"{}", id="1.2"), b"id: 1.2\ndata: {}\n\n"),
        (encode_event(b"", id="1.1", retry_ms=500), b"id: 1.1\nretry: 500\ndata: \n\n"),
        (encode_event(b"x", event="endpoint"), b"event: endpoint\ndata: x\n\n"),
        (encode_event(b"a\nb\r\nc\rd"), b"data: a\ndata: b\ndata: c\ndata: d\n\n"),
    ],
)
def test_events_that_we_write(written: bytes, expected: bytes) -> None:
    assert written == expected
