"""JSON texts as nobody writes them: comments, blanks and last commas wherever they may stand. Every comment has its number."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

LEGAL = ("", " ", "  ", "\t")


class Writer:
    def __init__(self, chance: random.Random, *, comments: bool) -> None:
        self._chance = chance
        self._comments = comments
        self._newline = chance.choice(["\n", "\r\n", "mixed"])
        self._unit = chance.choice(["  ", "    ", "\t", " "])
        self._one_line = chance.random() < 0.2
        self._number = 0
        self.inside: dict[tuple[str, ...], tuple[int, int]] = {}
        """The numbers of the comments that stand between a member's key and its value's end: from, to."""

    def newline(self) -> str:
        return self._chance.choice(["\n", "\r\n"]) if self._newline == "mixed" else self._newline

    def gap(self, indent: str | None = None) -> str:
        """Between two tokens; with `indent` a new line where the file has lines."""
        lines = indent is not None and not self._one_line
        made = ""
        while self._comments and self._chance.random() < 0.25:
            self._number += 1
            if self._one_line or self._chance.random() < 0.4:
                made += f" /* {self._number}, }} ] */"
            else:
                made += f' // {self._number}, {{ "a": 1{self.newline()}' + self._chance.choice(LEGAL)
        if lines and self._chance.random() < 0.9:
            made += self.newline() + (indent or "")
        elif self._chance.random() < 0.3:
            made += self._chance.choice(LEGAL)
        return made

    def _member(self, key: str, value: object, indent: str, path: tuple[str, ...]) -> str:
        first = self._number
        made = json.dumps(key, ensure_ascii=self._chance.random() < 0.5) + self.gap() + ":" + self.gap()
        made += self._value(value, indent, path)
        self.inside[path] = (first, self._number)
        return made

    def _value(self, value: object, indent: str, path: tuple[str, ...]) -> str:
        inner = indent + self._unit
        if isinstance(value, Mapping):
            if not value:
                return "{}"
            parts = [
                self.gap(inner) + self._member(key, each, inner, (*path, key)) + self.gap()
                for key, each in value.items()
            ]
            return "{" + ",".join(parts) + self._last() + self.gap(indent) + "}"
        if isinstance(value, list):
            if not value:
                return "[]"
            parts = [self.gap(inner) + self._value(each, inner, path) + self.gap() for each in value]
            return "[" + ",".join(parts) + self._last() + self.gap(indent) + "]"
        return json.dumps(value, ensure_ascii=False)

    def _last(self) -> str:
        return "," if self._comments and self._chance.random() < 0.3 else ""

    def file(self, value: Mapping[str, object]) -> bytes:
        text = self.gap() + self._value(value, "", ()) + self.gap() + self._chance.choice(["", "\n", "\r\n"])
        return (b"\xef\xbb\xbf" if self._chance.random() < 0.2 else b"") + text.encode()
