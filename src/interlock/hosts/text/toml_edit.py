"""Members of a TOML text put and dropped by its statements, so that every other line stays as it is.

Not by tomlkit: it moves tables that are written out of order, and rewrites line endings. A new table is written as
`[a.b]` after its neighbours; in an inline table or under dotted keys the new member is written in their manner.
"""

from __future__ import annotations

import datetime
import json
import re
from typing import NamedTuple

from interlock.hosts.text.document import Damaged, Step
from interlock.hosts.text.splicing import (
    Splice,
    before_break,
    begins_line,
    comma_after,
    indent_at,
    line_break,
    line_end,
    line_start,
    newline_at,
    spliced,
)
from interlock.hosts.text.steps import Drop, Put, Where, shown
from interlock.hosts.text.toml_statements import Statement, Value, statements
from interlock.hosts.writing import Json

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")


class _Held(NamedTuple):
    """A value inside of a statement: the member or item that has it, and the inline table or list around it."""

    value: Value
    member: Statement | None
    around: Value | None
    number: int


def changed(text: str, changes: list[Put | Drop]) -> str:
    """Raises Damaged."""
    for change in changes:
        found = statements(text)
        text = _put(text, found, change) if isinstance(change, Put) else _drop(text, found, change.path)
    return text


def _put(text: str, found: list[Statement], change: Put) -> str:
    held = _held(found, change.path)
    if held is not None:
        return spliced(text, [Splice(held.value.start, held.value.end, inline(change.value))])
    if any(each.path[: len(change.path)] == change.path for each in found):
        text = _drop(text, found, change.path)
        found = statements(text)
    parent = change.path[:-1]
    around = _held(found, parent) if parent else None
    if around is not None:
        return _into(text, around.value, change)
    if isinstance(change.path[-1], int):
        raise Damaged(f"{shown(parent)} is written as tables (`[[...]]`); change it by hand")
    dotted = _dotted(found, parent)
    if dotted is not None:
        keys = ".".join(key(step) for step in change.path[len(dotted.table) :])
        return _line(text, dotted.end, f"{keys} = {inline(change.value)}", indent_at(text, dotted.keys[0]))
    if isinstance(change.value, dict):
        return _table(text, found, change.path, change.value)
    return _pair(text, found, change)


def _held(found: list[Statement], path: Where) -> _Held | None:
    """The value at a path, where one statement has it (not a table of its own)."""
    for statement in found:
        if statement.value is not None and path[: len(statement.path)] == statement.path:
            held = _Held(statement.value, statement, None, 0)
            if statement.path == path:
                return held
            inner = _deeper(held, path, len(statement.path))
            if inner is not None:
                return inner
    return None


def _deeper(held: _Held, path: Where, depth: int) -> _Held | None:
    value = held.value
    for number, member in enumerate(value.members):
        if member.value is not None and path[: len(member.path)] == member.path:
            inner = _Held(member.value, member, value, number)
            return inner if len(member.path) == len(path) else _deeper(inner, path, len(member.path))
    step = path[depth]
    if isinstance(step, int) and step < len(value.items):
        inner = _Held(value.items[step], None, value, step)
        return inner if depth + 1 == len(path) else _deeper(inner, path, depth + 1)
    return None


def _dotted(found: list[Statement], parent: Where) -> Statement | None:
    """The last statement that makes `parent` by a dotted key: no header may then name it."""
    making = [
        each for each in found
        if each.kind == "pair" and len(each.table) < len(parent) < len(each.path) and each.path[: len(parent)] == parent
    ]  # fmt: skip
    return making[-1] if making else None


def _into(text: str, around: Value, change: Put) -> str:
    """Into an inline table or list, after its last member."""
    rendered = inline(change.value)
    if around.kind == "table":
        rendered = f"{key(change.path[-1])} = {rendered}"
    elif around.kind != "list":
        raise Damaged(f"{shown(change.path[:-1])} is no table")
    last = around.members[-1].end if around.members else around.items[-1].end if around.items else None
    if last is None:
        padded = f" {rendered} " if around.kind == "table" and not text[around.start + 1 : around.end - 1] else rendered
        return spliced(text, [Splice(around.start + 1, around.start + 1, padded)])
    if around.items and begins_line(text, around.items[-1].start) and "\n" in text[around.start : around.end]:
        newline = newline_at(text, before_break(text, around.items[-1].start))
        rendered = newline + indent_at(text, around.items[-1].start) + rendered
    else:
        rendered = " " + rendered
    comma = comma_after(text, last, around.end - 1)
    if comma is not None:
        return spliced(text, [Splice(comma + 1, comma + 1, rendered + ",")])
    return spliced(text, [Splice(last, last, "," + rendered)])


def _pair(text: str, found: list[Statement], change: Put) -> str:
    """A line in the table that holds it: after its last one, else after its header."""
    parent = change.path[:-1]
    line = f"{key(change.path[-1])} = {inline(change.value)}"
    own = [each for each in found if each.kind == "pair" and each.table == parent]
    if own:
        return _line(text, own[-1].end, line, indent_at(text, own[-1].keys[0]))
    if not parent:
        newline = newline_at(text, 0)
        return line + newline + text
    heads = [each for each in found if each.kind != "pair" and each.path == parent]
    if heads:
        return _line(text, heads[-1].end, line, indent_at(text, heads[-1].keys[0]))
    return _table(text, found, parent, {str(change.path[-1]): change.value})


def _line(text: str, at: int, line: str, indent: str) -> str:
    newline = newline_at(text, max(0, at - 2))
    if at and text[at - 1] != "\n":  # the last line has no ending, and keeps none
        return text[:at] + newline + indent + line + text[at:]
    return text[:at] + indent + line + newline + text[at:]


def _table(text: str, found: list[Statement], path: Where, value: dict[str, Json]) -> str:
    """A table of its own after those that it belongs to, else at the end of the file."""
    at = len(text)
    for depth in range(len(path) - 1, 0, -1):
        near = [number for number, each in enumerate(found) if _block(found, number)[:depth] == path[:depth]]
        if near:
            at = _past_comments(text, found[near[-1]].end)
            break
    newline = newline_at(text, max(0, at - 2))
    lines = newline.join(_rendered(path, value))
    if not text[:at].strip():
        return text[:at] + lines + newline + text[at:]
    if text[at - 1] != "\n":
        return text[:at] + newline * 2 + lines + text[at:]
    return text[:at] + newline + lines + newline + text[at:]


def _past_comments(text: str, at: int) -> int:
    """Past comments right below a table (its members that are switched off), but not those right above the next one."""
    end = at
    while end < len(text) and text[end : line_break(text, end)].lstrip(" \t").startswith("#"):
        end = line_end(text, end)
    return end if end == len(text) or not text[end : line_break(text, end)].strip() else at


def _block(found: list[Statement], number: int) -> Where:
    """The table that a statement is in, or makes."""
    statement = found[number]
    return statement.table if statement.kind == "pair" else statement.path


def _rendered(path: Where, value: dict[str, Json]) -> list[str]:
    names = [key(step) for step in path if isinstance(step, str)]
    lines: list[str] = []
    tables = []
    for name, each in value.items():
        if isinstance(each, dict):
            tables.append((name, each))
        elif each is not None:
            lines.append(f"{key(name)} = {inline(each)}")
    if lines or not tables:
        lines.insert(0, f"[{'.'.join(names)}]")
    for name, table in tables:
        lines += [*([""] if lines else []), *_rendered((*path, name), table)]
    return lines


def _drop(text: str, found: list[Statement], path: Where) -> str:
    held = _held(found, path)
    if held is not None and held.around is not None:
        return _out_of(text, held.around, held.number)
    splices: list[Splice] = []
    number = 0
    while number < len(found):
        if found[number].path[: len(path)] != path:
            number += 1
            continue
        first = last = number
        # A table goes from its header to its last line, with the comments in between.
        while last + 1 < len(found) and found[last + 1].path[: len(path)] == path:
            last += 1
        splices.append(_lines(text, found[first], found[last]))
        number = last + 1
    if not splices:
        raise Damaged(f"{shown(path)} is not there")
    return spliced(text, splices)


def _lines(text: str, first: Statement, last: Statement) -> Splice:
    start, end = first.start, last.end
    unended = end == len(text) and not text.endswith("\n")
    if first.kind != "pair" and start:
        # The blank line above the table goes with it.
        blank = line_start(text, start - 1)
        if not text[blank:start].strip():
            start = blank
    if unended and start:
        start = before_break(text, start)
    return Splice(start, end, "")


def _out_of(text: str, around: Value, number: int) -> str:
    """A member of an inline table or list, with its comma."""
    spans = [(each.start, each.end) for each in around.members or around.items]
    start, end = spans[number]
    if number + 1 < len(spans):
        following = spans[number + 1][0]
        between = text[end:following]
        if between.strip() == ",":
            return spliced(text, [Splice(start, following, "")])
        comma = comma_after(text, end, following)
        return spliced(text, [Splice(start, end if comma is None else comma + 1, "")])
    comma = comma_after(text, end, around.end - 1)
    if number == 0:
        close = around.end - 1
        blank = comma is None and not text[end:close].strip() and not text[around.start + 1 : start].strip()
        return spliced(
            text, [Splice(around.start + 1, close, "") if blank else Splice(start, comma + 1 if comma else end, "")]
        )
    before = comma_after(text, spans[number - 1][1], start)
    assert before is not None
    if not text[before + 1 : start].strip():
        if comma is None:
            return spliced(text, [Splice(before, end, "")])
        return spliced(text, [Splice(before + 1, comma + 1, "")])
    return spliced(text, [Splice(before, before + 1, ""), Splice(start, comma + 1 if comma is not None else end, "")])


def key(step: Step) -> str:
    name = str(step)
    return name if _BARE.match(name) else _quoted(name)


def inline(value: Json) -> str:
    """On one line. A member that is null is left out, since TOML has none."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, datetime.date | datetime.time):  # what stood in the file before, put back
        return value.isoformat()
    if isinstance(value, list):
        return "[" + ", ".join(inline(each) for each in value) + "]"
    if isinstance(value, dict):
        inner = ", ".join(f"{key(name)} = {inline(each)}" for name, each in value.items() if each is not None)
        return f"{{ {inner} }}" if inner else "{}"
    if value is None:
        raise Damaged("TOML has no null")
    return _quoted(value)


def _quoted(text: str) -> str:
    # JSON's escapes are a subset of TOML's but for DEL, which TOML wants escaped (toml.io/en/v1.0.0#string).
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
