"""The ring of a child's last words: bounded, safe to show, and never half a secret."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.stderr import MAX_BYTES, MAX_LINE_CHARS, MAX_LINES, StderrRing, neutralise


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain", "plain"),
        ("tab\tstays", "tab\tstays"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;5;196mmany\x1b[m colours", "many colours"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b(Bcharset", "charset"),
        ("\x1bPdevice\x1b\\control", "control"),
        ("broken \x1b", "broken \\x1b"),
        ("broken \x1b[12", "broken 12"),
        ("bell\x07", "bell\\x07"),
        ("nul\x00", "nul\\x00"),
        ("backspace\x08", "backspace\\x08"),
        ("del\x7f c1\x9b", "del\\x7f c1\\x9b"),
        ("reversed \u202e", "reversed \\u202e"),
        ("hidden\u200bspace", "hidden\\u200bspace"),
        ("10%\r50%\r100%", "100%"),
        ("100%\r", "100%"),
        ("\r\r", ""),
        ("Grüße, 世界 🌍", "Grüße, 世界 🌍"),
    ],
)
def test_neutralise(raw: str, shown: str) -> None:
    assert neutralise(raw) == shown


@given(st.text())
def test_neutralised_text_cannot_steer_a_terminal(text: str) -> None:
    shown = neutralise(text)
    assert not any(ord(character) < 32 and character != "\t" for character in shown)
    assert not any(0x7F <= ord(character) < 0xA0 for character in shown)
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\ufeff\u2028\u2029")


def test_tail_gives_the_last_lines_that_say_something() -> None:
    ring = StderrRing()
    ring.feed(b"one\n\n  \ntwo\r\nthree\nfour")
    assert ring.tail(2) == "three\nfour"
    assert ring.lines() == ["one", "two", "three", "four"]
    assert ring.total == 23
    assert StderrRing().tail() == ""


def test_characters_cut_between_two_reads_are_whole_again() -> None:
    ring = StderrRing()
    for byte in "fünf 🌍\n".encode():
        ring.feed(bytes([byte]))
    assert ring.lines() == ["fünf 🌍"]


def test_bytes_that_are_no_text_are_replaced() -> None:
    ring = StderrRing()
    ring.feed(b"\xff\xfe bad \xc3\n")
    assert ring.lines() == ["\ufffd\ufffd bad \ufffd"]


def test_at_most_two_hundred_lines() -> None:
    ring = StderrRing()
    ring.feed(b"".join(b"%d\n" % number for number in range(1000)))
    assert ring.lines() == [str(number) for number in range(1000 - MAX_LINES, 1000)]
    assert len(ring.lines(5000)) == MAX_LINES


def test_a_long_line_is_cut_where_it_is_shown() -> None:
    ring = StderrRing()
    ring.feed(b"a" * 5000 + b"\n")
    assert ring.lines() == ["a" * MAX_LINE_CHARS + "…"]


@pytest.mark.parametrize("piece", [1, 100, 511, 4096, 65536, 200_000])
def test_memory_is_bounded_whatever_the_size_of_a_piece(piece: int) -> None:
    ring = StderrRing()
    written = 0
    while written < min(1_000_000, 200_000 * piece):
        ring.feed(b"x" * piece)
        written += piece
        held = sum(len(chunk) for chunk in ring._chunks)
        assert held <= 2 * MAX_BYTES
        assert len(ring._chunks) <= 1 + 2 * MAX_BYTES // 256
    assert ring.total == written


@pytest.mark.parametrize("piece", [1000, 65536, 100_000])
def test_a_line_whose_start_is_lost_is_not_shown(piece: int) -> None:
    """Half a secret is not recognised by a redactor."""
    ring = StderrRing(lambda text: text.replace("S" * 70_000, "[redacted]"))
    data = b"S" * 70_000 + b"\nlater\n"
    for start in range(0, len(data), piece):
        ring.feed(data[start : start + piece])
    assert ring.lines() == ["later"]


def test_one_endless_line_is_said_to_be_too_long() -> None:
    ring = StderrRing()
    for _ in range(100):
        ring.feed(b"x" * 4096)
    assert ring.lines() == ["(a line of more than 64 KiB, not shown)"]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"token=hunter2 end\n", id="plain"),
        pytest.param(b"token=hun\x1b[31mter2 end\n", id="coloured"),
        pytest.param(b"x" * (MAX_LINE_CHARS - 3) + b"hunter2\n", id="at the cut"),
        pytest.param(b"hunter2 done\rhunter2\n", id="redrawn"),
    ],
)
def test_secrets_are_redacted_wherever_they_stand(data: bytes) -> None:
    ring = StderrRing(lambda text: text.replace("hunter2", "[redacted]"))
    ring.feed(data)
    assert "hunter2" not in ring.tail()
    assert "hun" not in ring.tail()


def test_a_secret_of_several_lines_is_redacted_whole() -> None:
    key = "-----BEGIN\nabc\ndef\n-----END"
    ring = StderrRing(lambda text: text.replace(key, "[redacted]"))
    ring.feed(f"before\n{key}\nafter\n".encode().replace(b"\n", b"\r\n"))
    assert ring.lines() == ["before", "[redacted]", "after"]
    assert ring.lines(2) == ["[redacted]", "after"]


@given(st.lists(st.binary(max_size=3000), max_size=60))
def test_pieces_make_no_difference(pieces: list[bytes]) -> None:
    parts, whole = StderrRing(), StderrRing()
    for piece in pieces:
        parts.feed(piece)
    whole.feed(b"".join(pieces))
    assert parts.total == whole.total
    if whole.total < MAX_BYTES:
        assert parts.lines() == whole.lines()
    else:
        # Which line is the first whole one may differ by a piece; the last ones may not.
        assert parts.lines(3) == whole.lines(3) or len(whole.lines()) < 4
