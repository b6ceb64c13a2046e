"""YAML texts in every manner of writing: blocks and flows, quotes, block texts, list indents, with numbered comments."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping

_SIMPLE = re.compile(r"[a-z][a-z ]*[a-z]\Z")
_WORDS = {"true", "false", "null", "yes", "no", "on", "off"}


class Writer:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._newline = chance.choice(["\n", "\r\n", "mixed"])
        self._unit = chance.choice([1, 2, 4])
        self._dash = chance.choice([0, 2])
        self._number = 0

    def newline(self) -> str:
        return self._chance.choice(["\n", "\r\n"]) if self._newline == "mixed" else self._newline

    def comment(self) -> str:
        self._number += 1
        return f"# {self._number}: - {{"

    def between(self) -> str:
        made = ""
        while self._chance.random() < 0.25:
            made += (
                " " * self._chance.randrange(6)
                + (self.comment() if self._chance.random() < 0.6 else "")
                + self.newline()
            )
        return made

    def end(self) -> str:
        return ("  " + self.comment() if self._chance.random() < 0.2 else "") + self.newline()

    def text(self, text: str) -> str:
        if _SIMPLE.match(text) and text not in _WORDS and self._chance.random() < 0.6:
            return text
        if text.isprintable() and self._chance.random() < 0.3:
            return "'" + text.replace("'", "''") + "'"
        quoted = json.dumps(text, ensure_ascii=False)
        return "".join(letter if letter.isprintable() else _escaped(letter) for letter in quoted)

    def flow(self, value: object) -> str:
        if isinstance(value, Mapping):
            return "{" + ", ".join(f"{self.text(key)}: {self.flow(each)}" for key, each in value.items()) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(self.flow(each) for each in value) + "]"
        return self.text(value) if isinstance(value, str) else json.dumps(value)

    def after_key(self, value: object, column: int) -> str:
        """What follows a colon, with the line's end."""
        chance = self._chance
        if isinstance(value, Mapping) and value and chance.random() < 0.75:
            return self.end() + self.table(value, column + self._unit)
        if isinstance(value, list) and value and chance.random() < 0.6:
            return self.end() + self.items(value, column + self._dash)
        if isinstance(value, str) and _SIMPLE.match(value) and chance.random() < 0.2:
            return f" |-{self.newline()}{' ' * (column + 3)}{value}{self.newline()}"
        return " " + self.flow(value) + self.end()

    def table(self, value: Mapping[str, object], column: int) -> str:
        made = ""
        for key, each in value.items():
            made += self.between() + " " * column + self.text(key) + ":" + self.after_key(each, column)
        return made

    def items(self, value: list[object], column: int) -> str:
        made = ""
        for each in value:
            made += self.between() + " " * column + "-"
            if isinstance(each, Mapping) and each and self._chance.random() < 0.6:
                made += (
                    " " + self.table(each, column + 2).lstrip(" ")
                    if not self._peek()
                    else " " + self.flow(each) + self.end()
                )
            else:
                made += " " + self.flow(each) + self.end()
        return made

    def _peek(self) -> bool:
        return self._chance.random() < 0.3

    def file(self, value: Mapping[str, object]) -> bytes:
        text = self.table(value, 0) + self.between()
        if self._chance.random() < 0.3:
            text = text.removesuffix("\n").removesuffix("\r")
        return (b"\xef\xbb\xbf" if self._chance.random() < 0.2 else b"") + text.encode()


def _escaped(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}"
