"""A TOML text cut into its statements, with the place of every key and value. The text was parsed by tomllib before."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from interlock.hosts.text.document import Step

_BLANK = re.compile(r"[ \t]*+")
_BETWEEN = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_LINE_END = re.compile(r"[ \t]*+(?:#[^\r\n]*+)?\r?(?:\n|\Z)")
_KEY = re.compile(r"""[A-Za-z0-9_-]++|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'""")
_TEXT = re.compile(
    r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*+"{3,5}'
    r"|'''(?:[^']|'{1,2}(?!'))*+'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*+"'
    r"|'[^'\n]*+'",
    re.DOTALL,
)
_BARE = re.compile(r"[^ \t\r\n,\]}#]++(?: [0-9][^ \t\r\n,\]}#]*+)?")  # a date may have a space before its time


@dataclass(frozen=True, slots=True)
class Value:
    """`kind` is `table` and `list` for the inline ones."""

    start: int
    end: int
    kind: Literal["table", "list", "other"]
    members: tuple[Statement, ...] = ()
    """Of an inline table."""
    items: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Statement:
    """A line of its own (or several), or a member of an inline table. All offsets are of the text."""

    kind: Literal["header", "array", "pair"]
    path: tuple[Step, ...]
    """From the top; an array of tables has the number of its item in it."""
    table: tuple[Step, ...]
    """What a pair stands in: the path without the key, which may have several parts (`a.b = 1`)."""
    keys: tuple[int, ...]
    """Where each part of the key begins."""
    start: int
    """Where the line begins; of a member of an inline table: where the key does."""
    end: int
    """Past the line's end, with its comment; of a member of an inline table: past the value."""
    value: Value | None = None


def statements(text: str) -> list[Statement]:
    found: list[Statement] = []
    arrays: dict[tuple[Step, ...], int] = {}
    table: tuple[Step, ...] = ()
    offset = 0
    while True:
        begin = _BETWEEN.match(text, offset).end()  # type: ignore[union-attr]
        if begin >= len(text):
            return found
        start = text.rfind("\n", 0, begin) + 1
        if text[begin] == "[":
            array = text.startswith("[[", begin)
            key, keys, offset = _key(text, begin + (2 if array else 1))
            end = _LINE_END.match(text, offset + (2 if array else 1)).end()  # type: ignore[union-attr]
            table = _numbered(key if not array else key[:-1], arrays)
            if array:
                table = (*table, key[-1])
                arrays[table] = arrays.get(table, -1) + 1
                table = (*table, arrays[table])
            found.append(Statement("array" if array else "header", table, (), keys, start, end))
        else:
            pair = _pair(text, begin, table)
            end = _LINE_END.match(text, pair.end).end()  # type: ignore[union-attr]
            found.append(Statement("pair", pair.path, table, pair.keys, start, end, pair.value))
        offset = end


def _numbered(key: tuple[str, ...], arrays: dict[tuple[Step, ...], int]) -> tuple[Step, ...]:
    """The key with the number of the last item after every array of tables in it."""
    path: tuple[Step, ...] = ()
    for part in key:
        path = (*path, part)
        if path in arrays:
            path = (*path, arrays[path])
    return path


def _pair(text: str, begin: int, table: tuple[Step, ...]) -> Statement:
    key, keys, offset = _key(text, begin)
    value = _value(text, _BLANK.match(text, offset + 1).end(), (*table, *key))  # type: ignore[union-attr]
    return Statement("pair", (*table, *key), table, keys, begin, value.end, value)


def _key(text: str, offset: int) -> tuple[tuple[str, ...], tuple[int, ...], int]:
    """The parts, where each begins, and the offset of what follows (`=` or `]`)."""
    parts, places = [], []
    while True:
        offset = _BLANK.match(text, offset).end()  # type: ignore[union-attr]
        found = _KEY.match(text, offset)
        assert found is not None
        places.append(offset)
        parts.append(_plain_key(found[0]))
        offset = _BLANK.match(text, found.end()).end()  # type: ignore[union-attr]
        if text[offset] != ".":
            return tuple(parts), tuple(places), offset
        offset += 1


def _plain_key(word: str) -> str:
    if word.startswith('"'):
        key: str = tomllib.loads(f"k = {word}")["k"] if "\\" in word else word[1:-1]
        return key
    return word[1:-1] if word.startswith("'") else word


def _value(text: str, start: int, path: tuple[Step, ...]) -> Value:
    letter = text[start]
    if letter in "\"'":
        return Value(start, _TEXT.match(text, start).end(), "other")  # type: ignore[union-attr]
    if letter == "[":
        items: list[Value] = []
        offset = _BETWEEN.match(text, start + 1).end()  # type: ignore[union-attr]
        while text[offset] != "]":
            items.append(_value(text, offset, (*path, len(items))))
            offset = _BETWEEN.match(text, items[-1].end).end()  # type: ignore[union-attr]
            if text[offset] == ",":
                offset = _BETWEEN.match(text, offset + 1).end()  # type: ignore[union-attr]
        return Value(start, offset + 1, "list", items=tuple(items))
    if letter == "{":
        members: list[Statement] = []
        offset = _BETWEEN.match(text, start + 1).end()  # type: ignore[union-attr]
        while text[offset] != "}":
            members.append(_pair(text, offset, path))
            offset = _BETWEEN.match(text, members[-1].end).end()  # type: ignore[union-attr]
            if text[offset] == ",":
                offset = _BETWEEN.match(text, offset + 1).end()  # type: ignore[union-attr]
        return Value(start, offset + 1, "table", members=tuple(members))
    return Value(start, _BARE.match(text, start).end(), "other")  # type: ignore[union-attr]


def places(found: list[Statement]) -> Iterator[tuple[tuple[Step, ...], int]]:
    """Path and offset of every key and list item; a table that is never named has the place of its first key."""
    for statement in found:
        depth = len(statement.table)
        if statement.kind == "pair":
            for number, offset in enumerate(statement.keys):
                yield statement.path[: depth + number + 1], offset
        else:
            names = [number for number, step in enumerate(statement.path) if isinstance(step, str)]
            for number, offset in zip(names, statement.keys, strict=True):
                yield statement.path[: number + 1], offset
                following = statement.path[number + 1 : number + 2]
                if following and isinstance(following[0], int):
                    yield statement.path[: number + 2], offset
        if statement.value is not None:
            yield from _inner(statement.value, statement.path)


def _inner(value: Value, path: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], int]]:
    for number, item in enumerate(value.items):
        yield (*path, number), item.start
        yield from _inner(item, (*path, number))
    yield from places(list(value.members))
