"""One YAML document to a tree of nodes, bounded in depth and in what aliases can blow up to.

The tree is built from parser events and not by a YAML constructor: a constructor forgets lines, follows aliases without
a bound and turns tags into objects. Plain scalars are read by the YAML 1.2 core schema, so `no` and `on` are texts.
Importing this file imports the YAML library, so it is imported where a file is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from interlock.manifest.nodes import MAX_DEPTH, MAX_NODES, Chunk, Entry, Items, Node, Parsed, Scalar, Table, YamlFault
from interlock.manifest.showing import shown

_INT = re.compile(r"[-+]?[0-9]{1,18}\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
}


def parse(chunk: Chunk) -> Parsed:
    """Read one document. Never raises: whatever is wrong stands in `faults`."""
    parsed = Parsed()
    builder = _Builder(chunk.first_line - 1, parsed.faults)
    try:
        for event in YAML(typ="safe", pure=True).parse(chunk.text):
            if not builder.feed(event):
                return parsed
    except MarkedYAMLError as fault:
        mark = fault.problem_mark or fault.context_mark
        at = (mark.line + chunk.first_line, mark.column + 1) if mark is not None else (chunk.first_line, 1)
        what, write = f"This is not valid YAML: {_plain(fault.problem or 'syntax')}.", ""
        if "'\\t'" in what:
            what, write = "This is not valid YAML: a tab stands here, and YAML indents with spaces only.", "spaces"
        parsed.faults.append(YamlFault("yaml-syntax", what, at, write))
        return parsed
    except YAMLError:
        what = "This is not valid YAML: it holds a character that YAML does not allow."
        parsed.faults.append(YamlFault("yaml-character", what, (chunk.first_line, 1)))
        return parsed
    except Exception as fault:  # a fault of the parser in one document must not hide the others
        what = f"The YAML parser gave up on this document ({type(fault).__name__})."
        parsed.faults.append(YamlFault("yaml-parser", what, (chunk.first_line, 1)))
        return parsed
    parsed.root = builder.root
    return parsed


def _plain(problem: str) -> str:
    """A parser's message as one line; it names characters and token kinds, and the odd anchor, not values."""
    return " ".join(problem.split())[:160].rstrip(".")


def _value(text: str) -> str | int | float | bool | None:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "+-.0123456789":
        if _INT.match(text):
            return int(text)
        if _FLOAT.match(text):
            return float(text)
    return text


@dataclass(slots=True)
class _Open:
    """A list or table whose end has not been seen."""

    at: tuple[int, int]
    anchor: str | None
    items: list[Node] | None
    entries: dict[str, Entry]
    key: Scalar | None = None
    skip: bool = False
    weight: int = 1


class _Builder:
    """Takes parser events in order and builds one tree, without recursion."""

    def __init__(self, line_offset: int, faults: list[YamlFault]) -> None:
        self.root: Node | None = None
        self._offset = line_offset
        self._faults = faults
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._documents = 0

    def feed(self, event: Event) -> bool:
        """False: stop, the document is refused and `faults` says why."""
        mark = event.start_mark
        at = (mark.line + 1 + self._offset, mark.column + 1)
        if isinstance(event, ScalarEvent):
            if not self._tag_fits(event.tag, at):
                return False
            text = event.value
            plain = event.implicit[0] and not event.style
            return self._scalar(Scalar(_value(text) if plain else text, text, at), event.anchor)
        if isinstance(event, SequenceStartEvent | MappingStartEvent):
            if not self._tag_fits(event.tag, at):
                return False
            return self._open(isinstance(event, SequenceStartEvent), at, event.anchor)
        if isinstance(event, SequenceEndEvent | MappingEndEvent):
            return self._close()
        if isinstance(event, AliasEvent):
            found = self._anchors.get(event.anchor or "")
            if found is None:
                what = "An alias (`*name`) refers to nothing before it, or to what it stands in."
                return self._refuse("yaml-alias", what, at)
            return self._put(found[0], found[1])
        if isinstance(event, DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                return self._refuse("yaml-syntax", "A second document begins here without a line `---` of its own.", at)
        return True

    def _refuse(self, code: str, what: str, at: tuple[int, int], write: str = "") -> bool:
        self._faults.append(YamlFault(code, what, at, write))
        return False

    def _tag_fits(self, tag: object, at: tuple[int, int]) -> bool:
        if tag is None or str(tag) in ("None", "!"):
            return True
        what = "YAML tags (`!name`) are not used in manifests."
        return self._refuse("yaml-tag", what, at, "the value without the tag")

    def _scalar(self, node: Scalar, anchor: str | None) -> bool:
        top = self._stack[-1] if self._stack else None
        if top is not None and top.items is None and top.key is None:
            if anchor:
                self._anchors[anchor] = (node, 1)
            return self._key(top, node)
        if anchor:
            self._anchors[anchor] = (node, 1)
        return self._put(node, 1)

    def _key(self, top: _Open, node: Scalar) -> bool:
        if node.text == "<<" and node.value == "<<":
            return self._refuse(
                "yaml-merge", "YAML merge keys (`<<`) are not used in manifests.", node.at, "the fields themselves"
            )
        before = top.entries.get(node.text)
        if before is not None:
            what = f"{shown(node.text)} stands twice in the same table; the first is on line {before.at[0]}."
            self._faults.append(YamlFault("duplicate-field", what, node.at, "one of the two"))
            top.skip = True
        top.key = node
        return True

    def _open(self, is_list: bool, at: tuple[int, int], anchor: str | None) -> bool:
        top = self._stack[-1] if self._stack else None
        if top is not None and top.items is None and top.key is None:
            return self._refuse("yaml-key", "A field's name must be a plain text.", at)
        if len(self._stack) >= MAX_DEPTH:
            return self._refuse("too-deep", f"Nested deeper than {MAX_DEPTH} levels.", at)
        self._stack.append(_Open(at, anchor, [] if is_list else None, {}))
        return True

    def _close(self) -> bool:
        done = self._stack.pop()
        node: Node = Table(done.entries, done.at) if done.items is None else Items(tuple(done.items), done.at)
        if done.anchor:
            self._anchors[done.anchor] = (node, done.weight)
        return self._put(node, done.weight)

    def _put(self, node: Node, weight: int) -> bool:
        if not self._stack:
            self.root = node
            return True
        top = self._stack[-1]
        if top.items is None and top.key is None:
            if isinstance(node, Scalar):
                return self._key(top, node)
            return self._refuse("yaml-key", "A field's name must be a plain text.", node.at)
        top.weight += weight
        if top.weight > MAX_NODES:
            return self._refuse(
                "too-large", f"More than {MAX_NODES} values, aliases counted as often as they are used.", node.at
            )
        if top.items is not None:
            top.items.append(node)
        elif top.key is not None:
            if not top.skip:
                top.entries[top.key.text] = Entry(top.key.at, node)
            top.key, top.skip = None, False
        return True
