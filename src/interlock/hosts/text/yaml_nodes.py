"""A YAML text as a tree of nodes that know where they stand, built from parser events.

Not by the library's constructor: that one forgets places, follows aliases without a bound and turns tags into objects.
Plain scalars are read by the YAML 1.2 core schema, so `no` and `on` are texts. Importing this file imports the library.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from interlock.hosts.text.decoding import CONFLICT, conflict, place
from interlock.hosts.text.document import Damaged, Step

_MAX_DEPTH = 400
_QUOTED = re.compile(r"'(?!<)[^']{3,}'|\"[^\"]{3,}\"")
_MAX_WEIGHT = 1_000_000
"""Nodes, with every alias counted as what it stands for."""
_INT = re.compile(r"[-+]?[0-9]{1,400}\Z")
_OTHER_INT = re.compile(r"0o[0-7]{1,400}\Z|0x[0-9a-fA-F]{1,400}\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_WORDS: Mapping[str, bool | float | None] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


@dataclass(slots=True)
class Node:
    """`end` is where the parser says that it ends; of a block that is past the blanks and comments that follow it."""

    kind: Literal["scalar", "table", "list", "alias"]
    start: int
    end: int
    value: object
    flow: bool = False
    style: str = ""
    """Of a scalar: the quotation mark, `|`, `>` or nothing."""
    members: list[tuple[Node, Node]] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    weight: int = 1
    anchor: str | None = None


def composed(text: str) -> Node | None:
    """The root of the only document; None where there is none. Raises Damaged."""
    try:
        return _built(text)
    except MarkedYAMLError as fault:
        marker = conflict(text)
        if marker is not None:
            raise Damaged(CONFLICT, marker) from None
        mark = fault.problem_mark or fault.context_mark
        at = place(text, mark.index) if mark is not None else None
        raise Damaged(_cause(fault.problem or "syntax", fault.context or ""), at) from None
    except YAMLError as fault:
        offset = getattr(fault, "position", 0)
        raise Damaged("a character stands here that YAML does not allow", place(text, offset)) from None
    except RecursionError:
        raise Damaged("it is nested too deeply") from None


def _built(text: str) -> Node | None:
    root: Node | None = None
    stack: list[Node] = []
    keys: list[Node | None] = []
    anchors: dict[str, Node] = {}
    documents = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        start, end = event.start_mark.index, event.end_mark.index
        if len(stack) > _MAX_DEPTH:
            raise Damaged("it is nested too deeply", place(text, start))
        if isinstance(event, DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise Damaged("a second document begins here (`---`), and hosts read one", place(text, start))
            continue
        if isinstance(event, ScalarEvent):
            style = event.style or ""
            node = Node("scalar", start, end, _scalar(event.value, event.tag, style), style=style, anchor=event.anchor)
        elif isinstance(event, AliasEvent):
            target = anchors.get(event.anchor)
            if target is None or target in stack:
                raise Damaged("an alias (`*`) stands here without an anchor (`&`) before it", place(text, start))
            node = Node("alias", start, end, target.value, weight=target.weight)
        elif isinstance(event, MappingStartEvent):
            stack.append(Node("table", start, end, {}, flow=bool(event.flow_style), anchor=event.anchor))
            keys.append(None)
            continue
        elif isinstance(event, SequenceStartEvent):
            stack.append(Node("list", start, end, [], flow=bool(event.flow_style), anchor=event.anchor))
            keys.append(None)
            continue
        elif isinstance(event, MappingEndEvent | SequenceEndEvent):
            node = stack.pop()
            keys.pop()
            node.end = end
        else:
            continue
        if node.anchor is not None:
            anchors[node.anchor] = node
        if not stack:
            root = node
            continue
        _add(stack[-1], node, keys, text)
    return root


def _add(parent: Node, node: Node, keys: list[Node | None], text: str) -> None:
    if isinstance(parent.value, list):
        parent.items.append(node)
        parent.value.append(node.value)
    elif keys[-1] is None:
        if node.kind != "scalar":
            raise Damaged("a key that is no plain text", place(text, node.start))
        keys[-1] = node
    elif isinstance(parent.value, dict):
        key = keys[-1]
        keys[-1] = None
        parent.members.append((key, node))
        parent.value[name(key, text)] = node.value
    parent.weight += node.weight
    if parent.weight > _MAX_WEIGHT:
        raise Damaged("its aliases stand for more than any configuration holds", place(text, node.start))


def name(key: Node, text: str) -> str:
    """A key as a text, whatever YAML takes it for."""
    return key.value if isinstance(key.value, str) else text[key.start : key.end]


def _scalar(text: str, tag: object, style: str) -> object:
    kind = str(tag).rpartition(":")[2] if tag is not None else ""
    if kind in ("int", "float", "bool", "null") or (not kind and not style):
        return _plain(text)
    return text


def _plain(text: str) -> object:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in "+-.0123456789":
        if _INT.match(text):
            return int(text)
        if _OTHER_INT.match(text):
            return int(text, 0)
        if _FLOAT.match(text):
            return float(text)
    return text


def places(root: Node, text: str) -> Iterator[tuple[tuple[Step, ...], int]]:
    """Path and offset of every key and list item, in the order of the text. An alias has nothing below it."""
    pending: list[tuple[tuple[Step, ...], int, Node]] = [((), root.start, root)]
    while pending:
        path, offset, node = pending.pop()
        if path:
            yield path, offset
        inner: list[tuple[tuple[Step, ...], int, Node]] = [
            ((*path, name(key, text)), key.start, value) for key, value in node.members
        ]
        inner += [((*path, number), item.start, item) for number, item in enumerate(node.items)]
        pending += reversed(inner)


def _cause(problem: str, context: str) -> str:
    """The library's words name characters and kinds of tokens, not what stands in the file."""
    if "'\\t'" in problem:
        return "a tab stands here, and YAML indents with spaces only"
    if "mapping values are not allowed" in problem:
        return (
            "a colon where none may stand: the line is indented wrongly, or a text with a colon needs quotation marks"
        )
    if "could not find expected ':'" in problem:
        return "the key on the line before has no colon, or the indentation is wrong"
    if "expected <block end>" in problem:
        return "the indentation does not fit to the lines before"
    if "expected ',' or" in problem:
        return "a comma or a closing bracket is missing"
    if "quoted scalar" in context:
        return "a text in quotation marks is not closed, or a backslash in it begins no escape"
    if "cannot start any token" in problem:
        return "a text that begins with this character needs quotation marks"
    return f"it is not valid YAML: {' '.join(_QUOTED.sub('something', problem).split())[:100]}"
