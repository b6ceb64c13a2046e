"""Members of a YAML text put and dropped by the places of its nodes, so that every other line stays as it is.

Not by ruamel's round trip: it re-indents lists, wraps long lines and normalizes line endings of what nobody touched.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from interlock.hosts.text.document import Damaged, Step
from interlock.hosts.text.splicing import (
    Splice,
    before_break,
    comma_after,
    line_break,
    line_end,
    line_start,
    newline_at,
    spliced,
)
from interlock.hosts.text.steps import Drop, Put, Where, shown
from interlock.hosts.text.yaml_nodes import Node, composed, name
from interlock.hosts.writing import Json

_SIMPLE = re.compile(r"[A-Za-z_/][A-Za-z0-9_./@+-]*\Z")
_SIMPLE_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*\Z")
_RESERVED = frozenset(("true", "false", "null", "yes", "no", "on", "off", "y", "n"))
"""In any letter case: some are no texts in YAML 1.1, which many programs still read."""
_COLON = re.compile(r"[ \t]*:")
_GAP = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")


class _Spot(NamedTuple):
    """A value and what leads to it."""

    parent: Node
    number: int
    """Among the parent's members or items."""
    value: Node
    after: int
    """Past the key's colon, or the item's dash; in a flow list: where the value begins."""


def changed(text: str, changes: list[Put | Drop]) -> str:
    """Raises Damaged."""
    for change in changes:
        root = composed(text)
        if root is None or (root.value is None and root.start == root.end):
            text = _first(text, change)
        elif isinstance(change, Put):
            text = _put(text, root, change)
        else:
            text = _drop(text, root, change.path)
    return text


def _first(text: str, change: Put | Drop) -> str:
    """A file without a value: what stands in it (comments) stays above."""
    if isinstance(change, Drop):
        raise Damaged(f"{shown(change.path)} is not there")
    newline = newline_at(text, 0)
    gap = "" if not text or text.endswith("\n") else newline
    return text + gap + newline.join(_block_member(str(change.path[-1]), change.value, 0)) + newline


def _find(text: str, root: Node, path: Where) -> _Spot | None:
    """None for the root."""
    spot: _Spot | None = None
    node = root
    for depth, step in enumerate(path):
        if node.kind == "alias":
            raise Damaged(f"{shown(path[:depth])} is an alias of something that stands elsewhere; change it there")
        if node.kind == "table":
            numbers = [number for number, (key, _) in enumerate(node.members) if name(key, text) == step]
            if len(numbers) != 1:
                raise Damaged(f"{shown(path[: depth + 1])} stands there {'twice' if numbers else 'not'}")
            key, value = node.members[numbers[0]]
            colon = _COLON.match(text, key.end)
            if colon is None:
                raise Damaged(f"{shown(path[: depth + 1])} is not written as `key: value`")
            spot = _Spot(node, numbers[0], value, colon.end())
        elif node.kind == "list" and isinstance(step, int) and step < len(node.items):
            value = node.items[step]
            spot = _Spot(node, step, value, value.start if node.flow else _dash(text, node, step) + 1)
        else:
            raise Damaged(f"{shown(path[: depth + 1])} is not there")
        node = spot.value
    return spot


def _dash(text: str, node: Node, number: int) -> int:
    """Of an item of a block list."""
    if number == 0:
        return node.start
    offset = _end(text, node.items[number - 1])
    while text[offset] != "-":
        offset = _GAP.match(text, offset).end()  # type: ignore[union-attr]
        if text[offset] != "-":
            raise Damaged("a list is written in a way that cannot be changed safely")
    return offset


def _end(text: str, node: Node) -> int:
    """Where a node's last character stands, without the blanks and comments that the parser counts to a block."""
    bare = node.start  # what leads to an empty value: the parser puts that one somewhere behind
    while not node.flow and (node.members or node.items):
        if node.members:
            key, inner = node.members[-1]
            colon = _COLON.match(text, key.end)
            bare = key.end if colon is None else colon.end()
        else:
            inner = node.items[-1]
            bare = _dash(text, node, len(node.items) - 1) + 1 if _is_empty(inner) else bare
        node = inner
    if _is_empty(node):
        return bare
    if node.style in ("|", ">"):
        header = text[node.start : line_break(text, node.start)].split("#")[0]
        if "+" in header:
            return node.end - 1 if text[node.end - 1] == "\n" else node.end
        return node.start + len(text[node.start : node.end].rstrip(" \t\r\n"))
    return node.end


def _end_of(text: str, spot: _Spot) -> int:
    return spot.after if _is_empty(spot.value) else _end(text, spot.value)


def _is_empty(node: Node) -> bool:
    return node.kind == "scalar" and node.start == node.end


def _column(text: str, offset: int) -> int:
    return offset - line_start(text, offset)


def _put(text: str, root: Node, change: Put) -> str:
    spot = _find(text, root, change.path[:-1])
    node = root if spot is None else spot.value
    if node.kind == "alias":
        raise Damaged(f"{shown(change.path[:-1])} is an alias of something that stands elsewhere; change it there")
    step = change.path[-1]
    if node.kind == "table" and any(name(key, text) == step for key, _ in node.members):
        found = _find(text, root, change.path)
        assert found is not None
        return _replaced(text, found, change.value)
    if node.kind == "list" and isinstance(step, int) and step < len(node.items):
        found = _find(text, root, change.path)
        assert found is not None
        return _replaced(text, found, change.value)
    if not node.members and not node.items and (spot is None or not _in_flow(text, root, change.path[:-1])):
        made: Json = [change.value] if isinstance(step, int) else {step: change.value}
        if spot is None:
            newline = newline_at(text, node.start)
            whole = newline.join(_block_member(str(step), change.value, 0))
            return spliced(text, [Splice(node.start, node.end, whole)])
        return _replaced(text, spot, made)
    if node.flow:
        return _into_flow(text, node, step, change.value)
    last = _end(text, node)
    at = line_end(text, last)
    column = _column(text, node.start if isinstance(step, int) else node.members[0][0].start)
    at = _past_comments(text, at, column)
    lines = _block_item(change.value, column) if isinstance(step, int) else _block_member(step, change.value, column)
    newline = newline_at(text, max(0, at - 2))
    if at and text[at - 1] != "\n":
        return text[:at] + newline + newline.join(lines) + text[at:]
    return text[:at] + newline.join(lines) + newline + text[at:]


def _past_comments(text: str, at: int, column: int) -> int:
    """Past comments that are indented like what is inside of the last member: they are about that."""
    while at < len(text):
        line = text[at : line_break(text, at)]
        if not line.lstrip(" ").startswith("#") or len(line) - len(line.lstrip(" ")) <= column:
            break
        at = line_end(text, at)
    return at


def _in_flow(text: str, root: Node, path: Where) -> bool:
    """Whether something that leads there is written in braces or brackets."""
    return any((root if not depth else _node(text, root, path[:depth])).flow for depth in range(len(path)))


def _node(text: str, root: Node, path: Where) -> Node:
    spot = _find(text, root, path)
    return root if spot is None else spot.value


def _replaced(text: str, spot: _Spot, value: Json) -> str:
    old = spot.value
    end = _end_of(text, spot)
    if spot.parent.flow:
        return spliced(
            text,
            [Splice(spot.after, end, " " + _flow(value)) if _is_empty(old) else Splice(old.start, end, _flow(value))],
        )
    newline = newline_at(text, spot.after)
    block = bool(value) and isinstance(value, dict | list)
    same_line = "\n" not in text[spot.after : end]
    if not block:
        return spliced(text, [Splice(spot.after, end, " " + _flow(value))])
    item = spot.parent.kind == "list"
    if item:
        column = _column(text, spot.parent.start)
        lines = _block_item(value, column)
        first = lines[0][column + 1 :]
        return spliced(text, [Splice(spot.after, end, newline.join([first, *lines[1:]]))])
    column = _column(text, spot.parent.members[spot.number][0].start)
    lines = _block_value(value, column)
    if same_line:
        stop = line_break(text, end)
        return spliced(text, [Splice(spot.after, end, ""), Splice(stop, stop, newline + newline.join(lines))])
    if old.kind == "scalar" or old.flow:
        return spliced(text, [Splice(spot.after, end, newline + newline.join(lines))])
    return spliced(text, [Splice(line_break(text, spot.after), end, newline + newline.join(lines))])


def _into_flow(text: str, node: Node, step: Step, value: Json) -> str:
    rendered = _flow(value) if isinstance(step, int) else f"{_key(step)}: {_flow(value)}"
    last = _last_end(text, node)
    if last is None:
        return spliced(text, [Splice(node.start + 1, node.start + 1, rendered)])
    comma = comma_after(text, last, node.end - 1)
    if comma is not None:
        return spliced(text, [Splice(comma + 1, comma + 1, f" {rendered},")])
    return spliced(text, [Splice(last, last, f", {rendered}")])


def _last_end(text: str, node: Node) -> int | None:
    if node.members:
        key, value = node.members[-1]
        return key.end if _is_empty(value) else _end(text, value)
    return _end(text, node.items[-1]) if node.items else None


def _drop(text: str, root: Node, path: Where) -> str:
    spot = _find(text, root, path)
    assert spot is not None
    parent = spot.parent
    if parent.flow:
        return _out_of_flow(text, parent, spot.number)
    begin = _dash(text, parent, spot.number) if parent.kind == "list" else parent.members[spot.number][0].start
    if text[line_start(text, begin) : begin].strip(" "):
        raise Damaged(f"{shown(path)} stands on one line with what it belongs to; change it by hand")
    end = _end_of(text, spot)
    start = line_start(text, begin)
    stop = line_end(text, end)
    splices = []
    if stop == len(text) and not text.endswith("\n") and start:
        start = before_break(text, start)
    splices.append(Splice(start, stop, ""))
    if len(parent.members) + len(parent.items) == 1 and len(path) > 1:
        above = _find(text, root, path[:-1])
        assert above is not None
        empty = " []" if parent.kind == "list" else " {}"
        splices.append(Splice(above.after, above.after, empty))
    return spliced(text, splices)


def _out_of_flow(text: str, node: Node, number: int) -> str:
    spans = [(key.start, key.end if _is_empty(value) else _end(text, value)) for key, value in node.members]
    spans += [(item.start, _end(text, item)) for item in node.items]
    start, end = spans[number]
    if number + 1 < len(spans):
        following = spans[number + 1][0]
        comma = comma_after(text, end, following)
        assert comma is not None
        return spliced(text, [Splice(start, comma + 1 if text[end:following].strip() != "," else following, "")])
    comma = comma_after(text, end, node.end - 1)
    if number == 0:
        close = node.end - 1
        if comma is None and not text[end:close].strip() and not text[node.start + 1 : start].strip():
            return spliced(text, [Splice(node.start + 1, close, "")])
        return spliced(text, [Splice(start, end if comma is None else comma + 1, "")])
    before = comma_after(text, spans[number - 1][1], start)
    assert before is not None
    if not text[before + 1 : start].strip():
        return spliced(text, [Splice(before, end, "") if comma is None else Splice(before + 1, comma + 1, "")])
    return spliced(text, [Splice(before, before + 1, ""), Splice(start, end if comma is None else comma + 1, "")])


def _block_member(key: str, value: Json, column: int) -> list[str]:
    if value and isinstance(value, dict | list):
        return [f"{' ' * column}{_key(key)}:", *_block_value(value, column)]
    return [f"{' ' * column}{_key(key)}: {_flow(value)}"]


def _block_value(value: Json, column: int) -> list[str]:
    """Below a key that stands in this column."""
    lines: list[str] = []
    if isinstance(value, dict):
        for key, each in value.items():
            lines += _block_member(key, each, column + 2)
    elif isinstance(value, list):
        for each in value:
            lines += _block_item(each, column + 2)
    return lines


def _block_item(value: Json, column: int) -> list[str]:
    if value and isinstance(value, dict):
        lines = [line for key, each in value.items() for line in _block_member(key, each, column + 2)]
        return [f"{' ' * column}- {lines[0][column + 2 :]}", *lines[1:]]
    return [f"{' ' * column}- {_flow(value)}"]


def _key(key: str) -> str:
    return key if _SIMPLE_KEY.match(key) and key.lower() not in _RESERVED else _quoted(key)


def _flow(value: Json) -> str:
    """On one line."""
    if isinstance(value, str):
        return value if _SIMPLE.match(value) and value.lower() not in _RESERVED else _quoted(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(name)}: {_flow(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(each) for each in value) + "]"
    return json.dumps(value)


def _quoted(text: str) -> str:
    """JSON's escapes are YAML's too; what YAML takes for a line break or does not print is escaped besides."""
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in quoted)


def _escape(letter: str) -> str:
    number = ord(letter)
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
