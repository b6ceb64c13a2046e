"""Members of a JSON text put and dropped, so that every other character stays: comments, order, indentation, last commas.

It works on two texts of one length (jsonc.py): the file's, and the one with blanks for comments and last commas, in which
members are found. What it writes goes into both.
"""

from __future__ import annotations

import json
import re

from interlock.hosts.text import jsonc
from interlock.hosts.text.document import Damaged, Step
from interlock.hosts.text.json_places import Member, members, skip
from interlock.hosts.text.jsonc import Plain
from interlock.hosts.text.splicing import (
    Splice,
    before_break,
    begins_line,
    indent_at,
    line_break,
    line_end,
    line_start,
    newline_at,
    spliced,
)
from interlock.hosts.text.steps import Drop, Put, applied, shown
from interlock.hosts.writing import Json

_TAIL = re.compile(r"[ \t]*(?:/\*[^\r\n]*?\*/[ \t]*)*(?://[^\r\n]*)?")
"""Comments that follow on the same line."""
_TIGHT = re.compile(r'":[^ \t\r\n]')


def changed(read: Plain, changes: list[Put | Drop]) -> str:
    """Raises Damaged."""
    text, plain = read.text, read.plain
    if not plain.strip():
        return _first(text, changes)
    for change in changes:
        splices = _put(text, plain, change) if isinstance(change, Put) else _drop(text, plain, change.path)
        text, plain = spliced(text, splices), spliced(plain, splices)
        if read.trailing_comma is not None:  # what was written may end in one, too
            plain = jsonc.plain(text.encode()).plain
    return text


def _first(text: str, changes: list[Put | Drop]) -> str:
    """A file without a value: what stands in it (comments) stays above."""
    made = applied({}, changes)
    newline = newline_at(text, 0)
    rendered = json.dumps(made, indent="  ", ensure_ascii=False).replace("\n", newline) + newline
    if not text.strip():
        return rendered
    return text + ("" if text.endswith("\n") else newline) + rendered


def _put(text: str, plain: str, change: Put) -> list[Splice]:
    start = _container(plain, change.path)
    inner = members(plain, start)
    step = change.path[-1]
    unit = _unit(plain)
    found = [each for each in inner if each.step == step]
    if len(found) > 1:
        raise Damaged(f"{shown(change.path)} stands there twice")
    if found:
        member = found[0]
        lone = "\n" not in plain.strip() or not _on_lines(plain, start, inner)
        rendered = _compact(change.value, plain) if lone else _lines(change.value, plain, member.start, unit, text)
        return [Splice(member.value_start, member.value_end, rendered)]
    return _inserted(text, plain, start, inner, step, change.value, unit)


def _inserted(
    text: str, plain: str, start: int, inner: list[Member], step: Step, value: Json, unit: str
) -> list[Splice]:
    name = "" if isinstance(step, int) else json.dumps(step, ensure_ascii=False) + ":"
    tight = _is_tight(plain)
    one_line = "\n" not in plain.strip() or (bool(inner) and not _on_lines(plain, start, inner))
    name += "" if not name or (tight and one_line) else " "
    if one_line:
        rendered = name + _compact(value, plain)
        if not inner:
            return [Splice(start + 1, start + 1, rendered)]
        end = inner[-1].value_end
        comma = _own_comma(text, plain, end)
        if comma is not None:
            return [Splice(comma + 1, comma + 1, f"{'' if tight else ' '}{rendered},")]
        return [Splice(end, end, f",{'' if tight else ' '}{rendered}")]
    newline = newline_at(text, start)
    if not inner:
        outer = indent_at(plain, start)
        indent = outer + unit
        rendered = name + _nested(value, indent, unit, newline)
        at = _after_tail(text, start + 1)
        rest = text[at : line_break(text, at)]
        return [Splice(at, at, f"{newline}{indent}{rendered}{newline + outer if rest.strip() else ''}")]
    last = inner[-1]
    own_line = next(each for each in reversed(inner) if begins_line(plain, each.start))
    indent = indent_at(plain, own_line.start)
    rendered = name + _nested(value, indent, unit, newline_at(text, last.start))
    newline = newline_at(text, before_break(text, own_line.start))
    comma = _own_comma(text, plain, last.value_end)
    if comma is not None:
        at = _after_tail(text, comma + 1)
        return [Splice(at, at, f"{newline}{indent}{rendered},")]
    at = _after_tail(text, last.value_end)
    added = f"{newline}{indent}{rendered}"
    if at == last.value_end:
        return [Splice(at, at, "," + added)]
    return [Splice(last.value_end, last.value_end, ","), Splice(at, at, added)]


def _drop(text: str, plain: str, path: tuple[Step, ...]) -> list[Splice]:
    start = _container(plain, path)
    inner = members(plain, start)
    places = [number for number, each in enumerate(inner) if each.step == path[-1]]
    if len(places) != 1:
        raise Damaged(f"{shown(path)} stands there twice" if places else f"{shown(path)} is not there")
    number = places[0]
    member = inner[number]
    if number + 1 < len(inner):
        following = inner[number + 1]
        comma = plain.index(",", member.value_end)
        return _cut(text, member, comma, following.start)
    comma_after = _own_comma(text, plain, member.value_end)
    end = member.value_end if comma_after is None else comma_after + 1
    if comma_after is not None and text[member.value_end : comma_after].strip():
        end = member.value_end  # a comment between the value and its comma
    splices = []
    if end == member.value_end and comma_after is not None:
        splices.append(Splice(comma_after, comma_after + 1, ""))
    begin = member.start
    before = None if number == 0 else plain.index(",", inner[number - 1].value_end)
    if number == 0:
        close = skip(text, end)
        if text[close : close + 1] in ("}", "]") and not text[start + 1 : begin].strip():
            return [Splice(start + 1, close, "")]
    rest = text[end : line_break(text, end)].strip()
    # The closing bracket may come up to the line before, but not into a comment there.
    closes = rest[:1] in ("}", "]") and "//" not in text[start + 1 if before is None else before + 1 : begin]
    if begins_line(text, begin) and (not rest or closes):
        begin = before_break(text, begin)
        if before is not None and before >= begin:
            begin = before
    elif begins_line(text, begin):
        end = skip(text, end) if "\n" not in text[end : skip(text, end)] else end  # a comment comes up to our place
    elif before is not None and not text[before + 1 : begin].strip():
        # On one line with the member before: the white space between them goes too.
        if comma_after is None:
            return [*splices, Splice(before, end, "")]
        return [*splices, Splice(before + 1, end, "")]
    splices.append(Splice(begin, end, ""))
    if before is not None and comma_after is None and before < begin:
        splices.append(Splice(before, before + 1, ""))
    return splices


def _cut(text: str, member: Member, comma: int, following: int) -> list[Splice]:
    """A member with others after it. What stands between (a comment) stays."""
    end = comma + 1
    if text[member.value_end : comma].strip():
        return [Splice(member.start, member.value_end, ""), Splice(comma, end, "")]
    rest = text[end : line_break(text, end)]
    if begins_line(text, member.start):
        if not rest.strip():
            return [Splice(line_start(text, member.start), line_end(text, end), "")]
        return [Splice(member.start, end + len(rest) - len(rest.lstrip(" \t")), "")]
    if not text[end:following].strip() and "\n" not in text[end:following]:
        return [Splice(member.start, following, "")]
    return [Splice(member.start, end, "")]


def _container(plain: str, path: tuple[Step, ...]) -> int:
    """Where the object or list that holds the path's last step begins."""
    start = skip(plain, 0)
    for depth, step in enumerate(path[:-1]):
        found = [each for each in members(plain, start) if each.step == step]
        if len(found) != 1:
            raise Damaged(f"{shown(path[: depth + 1])} stands there twice")
        start = found[0].value_start
    return start


def _own_comma(text: str, plain: str, end: int) -> int | None:
    """The comma after the last member, which is blank in the plain text."""
    close = skip(plain, end)
    offset = end
    while offset < close:
        if text.startswith("//", offset):
            offset = line_break(text, offset)
        elif text.startswith("/*", offset):
            offset = text.index("*/", offset + 2) + 2
        elif text[offset] == ",":
            return offset
        else:
            offset += 1
    return None


def _after_tail(text: str, offset: int) -> int:
    """Past the comments that follow on the line; the offset itself where there are none."""
    found = _TAIL.match(text, offset)
    return found.end() if found is not None and found[0].strip() else offset


def _on_lines(plain: str, start: int, inner: list[Member]) -> bool:
    """The object has its members on lines of their own."""
    return any(begins_line(plain, each.start) and "\n" in plain[start : each.start] for each in inner)


def _unit(plain: str) -> str:
    """How the file indents: by its first member."""
    start = skip(plain, 0)
    for member in members(plain, start)[:1]:
        indent = indent_at(plain, member.start)
        if begins_line(plain, member.start) and indent:
            return indent
    found = re.search(r'\n([ \t]+)"', plain)
    return found[1] if found is not None else "  "


def _is_tight(plain: str) -> bool:
    """No space after colons, as programs write."""
    return _TIGHT.search(plain) is not None and re.search(r'":[ \t]', plain) is None


def _nested(value: Json, indent: str, unit: str, newline: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)


def _lines(value: Json, plain: str, start: int, unit: str, text: str) -> str:
    return _nested(value, indent_at(plain, start), unit, newline_at(text, before_break(text, start)))


def _compact(value: Json, plain: str) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":") if _is_tight(plain) else None)
