"""Typed reading of a table that has been checked: the value of a field where it is there and right, else None."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.manifest.nodes import Items, Node, Scalar, Table


@dataclass(frozen=True, slots=True)
class View:
    table: Table | None

    def node(self, name: str) -> Node | None:
        entry = self.table.entries.get(name) if self.table is not None else None
        return entry.node if entry is not None else None

    def at(self, name: str) -> tuple[int, int]:
        """Line and column of the field's name, or (0, 0)."""
        entry = self.table.entries.get(name) if self.table is not None else None
        return entry.at if entry is not None else (0, 0)

    def has(self, name: str) -> bool:
        return self.table is not None and name in self.table.entries

    def text(self, name: str) -> str | None:
        node = self.node(name)
        return node.value if isinstance(node, Scalar) and isinstance(node.value, str) else None

    def literal(self, name: str) -> str | None:
        """A text, number or boolean as the text that stands in the file."""
        node = self.node(name)
        return node.text if isinstance(node, Scalar) and node.value is not None else None

    def flag(self, name: str) -> bool | None:
        node = self.node(name)
        return node.value if isinstance(node, Scalar) and isinstance(node.value, bool) else None

    def number(self, name: str) -> float | None:
        value = node.value if isinstance(node := self.node(name), Scalar) else None
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def texts(self, name: str) -> tuple[tuple[str, tuple[int, int]], ...] | None:
        """The texts of a list with their places. None where there is no list, or where anything in it is not a text."""
        node = self.node(name)
        if not isinstance(node, Items):
            return None
        pairs = [
            (item.value, item.at) for item in node.items if isinstance(item, Scalar) and isinstance(item.value, str)
        ]
        return tuple(pairs) if len(pairs) == len(node.items) else None

    def inner(self, name: str) -> View:
        node = self.node(name)
        return View(node if isinstance(node, Table) else None)

    def names(self) -> Iterator[tuple[str, tuple[int, int], Node]]:
        """Every field of this table in the file's order."""
        if self.table is not None:
            for name, entry in self.table.entries.items():
                yield name, entry.at, entry.node
