"""One member of a JSON file changed as text, so that every other byte of a person's file stays as it was.

Comments and trailing commas are blanked out with spaces before parsing: the places that the parser reports are then the
places in the file itself. Only hosts that read such files get them written (hosts.py).
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"|(?P<comment>//[^\r\n]*|/\*.*?\*/)', re.DOTALL)
_COMMA = re.compile(r'"(?:[^"\\\n]|\\.)*+"|(?P<comment>,)(?=\s*[}\]])')
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


class Damaged(Exception):
    """The file cannot be changed safely; the text says why, for people."""


class _Member(NamedTuple):
    key: str
    key_start: int
    value_start: int
    value_end: int


def parse(text: str, *, comments: bool) -> dict[str, object]:
    """The whole file as a value; an empty one is an empty object. Raises Damaged."""
    return _parse(_plain(text, comments=comments))


def put(text: str, path: tuple[str, ...], entry: object, *, comments: bool) -> str:
    """The text with `entry` at `path`, of which only missing objects are made. Raises Damaged, and changes nothing else."""
    plain = _plain(text, comments=comments)
    before = _parse(plain)
    if not plain.strip():
        return _rendered(_nested(path, entry), "", "  ", "\n") + "\n"
    start = _SPACE.match(plain).end()  # type: ignore[union-attr]
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _unit(plain)
    for depth, key in enumerate(path):
        members = _members(plain, start)
        found = [member for member in members if member.key == key]
        if len(found) > 1:
            raise Damaged(f'"{key}" stands there twice')
        if not found:
            value = _nested(path[depth + 1 :], entry)
            changed = _inserted(text, plain, start, members, key, value, unit, newline)
            break
        member = found[0]
        if depth == len(path) - 1:
            indent = _indent_at(plain, member.key_start)
            rendered = _rendered(entry, indent, unit, newline) if "\n" in plain else _compact(entry)
            changed = text[: member.value_start] + rendered + text[member.value_end :]
            break
        if plain[member.value_start] != "{":
            raise Damaged(f'"{key}" is not an object')
        start = member.value_start
    else:  # an empty path
        raise Damaged("nothing to put it under")
    if parse(changed, comments=comments) != _with(before, path, entry):
        raise Damaged("it is written in a way that cannot be added to safely")
    return changed


def _plain(text: str, *, comments: bool) -> str:
    if text.startswith("\ufeff"):
        raise Damaged("it begins with a byte order mark")
    if not comments:
        return text
    for pattern in (_COMMENT, _COMMA):
        text = pattern.sub(lambda found: found[0] if found["comment"] is None else _blank(found[0]), text)
    return text


def _blank(text: str) -> str:
    return re.sub(r"[^\r\n]", " ", text)


def _parse(plain: str) -> dict[str, object]:
    if not plain.strip():
        return {}
    try:
        value = json.loads(plain)
    except json.JSONDecodeError as error:
        found = _COMMENT.search(plain, max(0, error.pos - 1))
        if found is not None and found["comment"] is not None and found.start() <= error.pos + 1:
            raise Damaged(f"it has a comment in line {error.lineno}") from None
        raise Damaged(f"it is not valid JSON (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise Damaged("it is nested too deeply") from None
    if not isinstance(value, dict):
        raise Damaged("it does not hold an object")
    return value


def _members(plain: str, start: int) -> list[_Member]:
    """Of the object that begins at `start`, in a text that was parsed before."""
    found = []
    place = _skip(plain, start + 1)
    while plain[place] != "}":
        key_start = place
        key, place = _DECODER.raw_decode(plain, place)
        value_start = _skip(plain, _skip(plain, place) + 1)
        _, value_end = _DECODER.raw_decode(plain, value_start)
        found.append(_Member(key, key_start, value_start, value_end))
        place = _skip(plain, value_end)
        if plain[place] == ",":
            place = _skip(plain, place + 1)
    return found


def _skip(text: str, place: int) -> int:
    return _SPACE.match(text, place).end()  # type: ignore[union-attr]


def _inserted(
    text: str, plain: str, start: int, members: list[_Member], key: str, value: object, unit: str, newline: str
) -> str:
    name = json.dumps(key, ensure_ascii=False)
    if "\n" not in plain.strip():  # written on one line: so is what comes in
        if not members:
            return text[: start + 1] + f"{name}: {_compact(value)}" + text[start + 1 :]
        end = members[-1].value_end
        return text[:end] + f", {name}: {_compact(value)}" + text[end:]
    if not members:
        outer = _indent_at(plain, start)
        indent = outer + unit
        rest = text[start + 1 :]
        # A comment may stand in the otherwise empty object: it stays, behind the new member.
        closing = "" if re.match(r"[ \t]*\r?\n", rest) else newline + outer
        return text[: start + 1] + f"{newline}{indent}{name}: {_rendered(value, indent, unit, newline)}{closing}" + rest
    last = members[-1]
    indent = _indent_at(plain, last.key_start)
    added = f",{newline}{indent}{name}: {_rendered(value, indent, unit, newline)}"
    return text[: last.value_end] + added + text[last.value_end :]


def _indent_at(plain: str, place: int) -> str:
    """The white space that the line begins with."""
    line = plain[plain.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _unit(plain: str) -> str:
    """How the file indents: by its first indented member."""
    found = re.search(r'\n([ \t]+)"', plain)
    return found[1] if found is not None else "  "


def _rendered(value: object, indent: str, unit: str, newline: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", newline + indent)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _nested(path: tuple[str, ...], entry: object) -> object:
    for key in reversed(path):
        entry = {key: entry}
    return entry


def _with(before: dict[str, object], path: tuple[str, ...], entry: object) -> dict[str, object]:
    """A copy of `before` with `entry` at `path`."""
    key, rest = path[0], path[1:]
    if not rest:
        return {**before, key: entry}
    inner = before.get(key, {})
    return {**before, key: _with(inner if isinstance(inner, dict) else {}, rest, entry)}
