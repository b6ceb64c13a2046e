"""TOML texts in every manner of writing: tables, dotted keys, inline tables, in odd orders, with numbered comments."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping


class Writer:
    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._newline = chance.choice(["\n", "\r\n", "mixed"])
        self._unit = chance.choice(["", "", "  ", "\t"])
        self._number = 0
        self._spread = False

    def newline(self) -> str:
        return self._chance.choice(["\n", "\r\n"]) if self._newline == "mixed" else self._newline

    def comment(self) -> str:
        self._number += 1
        return f"# {self._number}, [a] = {{"

    def between(self) -> str:
        made = ""
        while self._chance.random() < 0.3:
            made += (
                self._chance.choice(["", "  "])
                + (self.comment() if self._chance.random() < 0.5 else "")
                + self.newline()
            )
        return made

    def key(self, key: str) -> str:
        return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else json.dumps(key, ensure_ascii=False)

    def inline(self, value: object, *, lines: bool = True) -> str:
        chance = self._chance
        if isinstance(value, Mapping):
            inner = ", ".join(f"{self.key(key)} = {self.inline(each, lines=False)}" for key, each in value.items())
            return f"{{ {inner} }}" if inner and chance.random() < 0.7 else "{" + inner + "}"
        if isinstance(value, list):
            parts = [self.inline(each, lines=lines) for each in value]
            if lines and parts and chance.random() < 0.4:
                ends = [self.newline() + "  " + part + "," + (" " + self.comment() if chance.random() < 0.3 else "")
                        for part in parts]  # fmt: skip
                return "[" + "".join(ends) + self.newline() + "]"
            return "[" + ", ".join(parts) + "]"
        if isinstance(value, str):
            if "'" not in value and value.isprintable() and chance.random() < 0.3:
                return f"'{value}'"
            if "\\" not in value and '"' not in value and chance.random() < 0.2:
                return f'"""{value}"""'
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        return json.dumps(value)

    def end(self) -> str:
        return ("  " + self.comment() if self._chance.random() < 0.2 else "") + self.newline()

    def table(self, value: Mapping[str, object], path: tuple[str, ...]) -> str:
        """Pairs first, then the tables below."""
        made = ""
        tables = []
        indent = self._unit * max(0, len(path) - 1)
        for key, each in value.items():
            manner = self._chance.random()
            if isinstance(each, Mapping) and manner < 0.6:
                tables.append((key, each))
            elif isinstance(each, Mapping) and each and manner < 0.75:
                for below, inner in each.items():
                    made += (
                        self.between()
                        + f"{indent}{self.key(key)}.{self.key(below)} = {self.inline(inner)}"
                        + self.end()
                    )
            else:
                made += self.between() + f"{indent}{self.key(key)} = {self.inline(each)}" + self.end()
        self._chance.shuffle(tables)
        for key, each in tables:
            names = ".".join(self.key(part) for part in (*path, key))
            inner = self.table(each, (*path, key))
            below = self._chance.random() < 0.5 and each and all(isinstance(part, Mapping) for part in each.values())
            header = "" if below and re.match(r"(?:\s|#.*\n)*\[", inner) else f"{indent}[{names}]" + self.end()
            made += self.between() + header + inner
        return made

    def file(self, value: Mapping[str, object]) -> bytes:
        text = self.table(value, ()) + self.between()
        if self._chance.random() < 0.3:
            text = text.removesuffix("\n").removesuffix("\r")
        return (b"\xef\xbb\xbf" if self._chance.random() < 0.2 else b"") + text.encode()
