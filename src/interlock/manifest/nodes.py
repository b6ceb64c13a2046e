"""What a YAML document is once read: nodes that know their line. And how a file is cut into its documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

MAX_BYTES = 512 * 1024
"""Of one file. A hundred fully described servers need about 120 KiB."""
MAX_DEPTH = 32
MAX_NODES = 20_000
"""Of one document, aliases counted as often as they are used."""

_MARKER = re.compile(r"^(---|\.\.\.)(?=[ \t\n]|\Z)", re.MULTILINE)
_NO_CONTENT = re.compile(r"(?:[ \t]*(?:#[^\n]*)?(?:\n|\Z))*\Z")
_DIRECTIVES = re.compile(r"(?:(?:%[^\n]*|[ \t]*(?:#[^\n]*)?)(?:\n|\Z))*\Z")


@dataclass(frozen=True, slots=True)
class Scalar:
    """`text` is what stands in the file (escapes resolved), `value` what it means by the core schema."""

    value: str | int | float | bool | None
    text: str
    at: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Items:
    items: tuple[Node, ...]
    at: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a table: where the key stands, and its value."""

    at: tuple[int, int]
    node: Node


@dataclass(frozen=True, slots=True)
class Table:
    entries: Mapping[str, Entry]
    at: tuple[int, int]


Node = Scalar | Items | Table


@dataclass(frozen=True, slots=True)
class YamlFault:
    """What the YAML itself has wrong; never holds text from a value."""

    code: str
    what: str
    at: tuple[int, int]
    write: str = ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """The text of one document and the number of its first line, from 1."""

    text: str
    first_line: int


@dataclass(slots=True)
class Parsed:
    """`root` is None where the document is empty or could not be read; `faults` says which."""

    root: Node | None = None
    faults: list[YamlFault] = field(default_factory=list)


def chunks(text: str) -> Iterator[Chunk]:
    """Cut a stream into its documents, so that one that cannot be parsed does not take the rest with it.

    This is exact: `---` or `...` at the start of a line is a marker everywhere, inside scalars too (YAML 1.2.2, rule
    c-forbidden).
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    start = 0
    for marker in [*_MARKER.finditer(text), None]:
        end = len(text) if marker is None else marker.start()
        piece = text[start:end]
        if not _NO_CONTENT.match(piece) and not _DIRECTIVES.match(piece):
            yield Chunk(piece, text.count("\n", 0, start) + 1)
        if marker is not None:
            start = marker.start() if marker.group() == "---" else marker.end()
