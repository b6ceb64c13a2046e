"""Where the members of a JSON text stand: found on demand, for a file may be large and only a few entries in it matter.

The text is strict JSON that was parsed before, or blank (jsonc.py sees to both). Members beside the asked path are
skipped from bracket to bracket.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from interlock.hosts.text.decoding import Lines
from interlock.hosts.text.document import At, Step

_SPACE = re.compile(r"[ \t\r\n]*+")
_TOKEN = re.compile(r'[ \t\r\n]*+("[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\],:]|[^ \t\r\n{}\[\],:"]++)', re.DOTALL)
_BARE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[^ \t\r\n{}\[\],:"]++', re.DOTALL)
_STRAIGHT = r'[^"{}\[\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"{}\[\]]*+)*+'
_FLAT = rf"[\[{{]{_STRAIGHT}[\]}}]"
_SHALLOW = rf"[\[{{]{_STRAIGHT}(?:{_FLAT}{_STRAIGHT})*+[\]}}]"
_SMALL = rf"[\[{{]{_STRAIGHT}(?:{_SHALLOW}{_STRAIGHT})*+[\]}}]"
_TO_BRACKET = re.compile(rf"{_STRAIGHT}(?:{_SMALL}{_STRAIGHT})*+", re.DOTALL)
"""To the next bracket, past values that are at most three deep: a history of thousands of them is passed in one go."""
_TEXT = json.JSONDecoder().decode


class Member(NamedTuple):
    """Of an object, or of a list: then `step` is its number and `start` the value's."""

    step: Step
    start: int
    value_start: int
    value_end: int


def skip(plain: str, offset: int) -> int:
    """Past white space."""
    return _SPACE.match(plain, offset).end()  # type: ignore[union-attr]


def value_end(plain: str, start: int) -> int:
    """Where the value that begins at `start` ends. Without recursion, so that no depth is too deep."""
    if plain[start] not in "{[":
        return _BARE.match(plain, start).end()  # type: ignore[union-attr]
    depth, offset = 1, start + 1
    while depth:
        offset = _TO_BRACKET.match(plain, offset).end()  # type: ignore[union-attr]
        depth += 1 if plain[offset] in "{[" else -1
        offset += 1
    return offset


def deeper_than(plain: str, limit: int) -> bool:
    """Whether brackets are nested deeper, give or take the three levels that are passed in one go."""
    depth, offset = 0, 0
    while (offset := _TO_BRACKET.match(plain, offset).end()) < len(plain):  # type: ignore[union-attr]
        depth += 1 if plain[offset] in "{[" else -1
        if depth > limit:
            return True
        offset += 1
    return False


def members(plain: str, start: int) -> list[Member]:
    """Of the object or list that begins at `start`, in their order, doubled keys included."""
    found: list[Member] = []
    keyed = plain[start] == "{"
    offset = skip(plain, start + 1)
    while plain[offset] not in "}]":
        begin, step = offset, len(found)
        key: Step = step
        if keyed:
            end = value_end(plain, offset)
            key = _TEXT(plain[offset:end])
            offset = skip(plain, skip(plain, end) + 1)
        end = value_end(plain, offset)
        found.append(Member(key, begin, offset, end))
        offset = skip(plain, end)
        if plain[offset] == ",":
            offset = skip(plain, offset + 1)
    return found


class Places(Mapping[tuple[Step, ...], At]):
    """Line and column of every key and list item, by its path. Of a doubled key the later one counts."""

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._open: dict[int, dict[Step, Member]] = {}
        self._lines: Lines | None = None
        self._all: dict[tuple[Step, ...], At] | None = None

    def __getitem__(self, path: tuple[Step, ...]) -> At:
        found = self._member(path) if path else None
        if found is None:
            raise KeyError(path)
        return self._at(found.start)

    def __iter__(self) -> Iterator[tuple[Step, ...]]:
        return iter(self._whole())

    def __len__(self) -> int:
        return len(self._whole())

    def below(self, path: tuple[Step, ...]) -> Mapping[tuple[Step, ...], At]:
        if not path:
            return self._whole()
        found = self._member(path)
        if found is None:
            return {}
        return {at: self._at(offset) for at, offset in _walked(self._plain, found.value_start)[0].items()}

    def duplicates(self) -> tuple[tuple[tuple[Step, ...], At], ...]:
        doubled = _walked(self._plain, skip(self._plain, 0))[1]
        return tuple((path, self._at(offset)) for path, offset in doubled)

    def _whole(self) -> dict[tuple[Step, ...], At]:
        if self._all is None:
            start = skip(self._plain, 0)
            self._all = {path: self._at(offset) for path, offset in _walked(self._plain, start)[0].items()}
        return self._all

    def _member(self, path: tuple[Step, ...]) -> Member | None:
        start, found = skip(self._plain, 0), None
        for step in path:
            if self._plain[start : start + 1] not in ("{", "["):
                return None
            inner = self._open.get(start)
            if inner is None:
                inner = self._open[start] = {each.step: each for each in members(self._plain, start)}
            found = inner.get(step)
            if found is None:
                return None
            start = found.value_start
        return found

    def _at(self, offset: int) -> At:
        if self._lines is None:
            self._lines = Lines(self._plain)
        return self._lines.at(offset)


def _walked(plain: str, start: int) -> tuple[dict[tuple[Step, ...], int], list[tuple[tuple[Step, ...], int]]]:
    """Offsets of all members below the value at `start`, and of the doubled keys. One pass, no recursion."""
    places: dict[tuple[Step, ...], int] = {}
    doubled: list[tuple[tuple[Step, ...], int]] = []
    stack: list[tuple[tuple[Step, ...], bool, set[Step]]] = []  # path, whether an object, keys so far
    path: tuple[Step, ...] = ()
    awaits_key = False
    counts: list[int] = []
    offset = start
    while (token := _TOKEN.match(plain, offset)) is not None:
        word, offset = token[1], token.end()
        begin = offset - len(word)
        if stack and word not in ("}", "]", ",", ":"):
            base, keyed, seen = stack[-1]
            if keyed and awaits_key:
                path = (*base, _TEXT(word))
                if path[-1] in seen:
                    doubled.append((path, begin))
                    for old in [each for each in places if each[: len(path)] == path]:
                        del places[old]
                seen.add(path[-1])
                places[path] = begin
                awaits_key = False
                continue
            if not keyed:
                path = (*base, counts[-1])
                places[path] = begin
        if word in ("{", "["):
            stack.append((path, word == "{", set()))
            counts.append(0)
            awaits_key = word == "{"
        elif word in ("}", "]"):
            stack.pop()
            counts.pop()
        elif word == ",":
            counts[-1] += 1
            awaits_key = stack[-1][1]
        if not stack:
            break
    return places, doubled
