"""One table of a TOML file added or changed as text: comments, order and everything else in the file stay as they were.

What was done is checked by parsing: the file must then say exactly what it said before, and the entry.
"""

from __future__ import annotations

import json
import re
import tomllib

from interlock.install.jsontext import Damaged

_BARE = re.compile(r"[A-Za-z0-9_-]+\Z")
_HEADER = re.compile(r"\s*\[")


def parse(text: str) -> dict[str, object]:
    """Raises Damaged."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"\(at (line \d+, column \d+|end of document)\)", str(error))
        raise Damaged(f"it is not valid TOML{f' ({place[1]})' if place is not None else ''}") from None


def put(text: str, path: tuple[str, str], entry: dict[str, object]) -> str:
    """The text with the members of `entry` in the table `[path[0].path[1]]`, whose other members stay. Raises Damaged."""
    before = parse(text)
    group = before.get(path[0], {})
    if not isinstance(group, dict):
        raise Damaged(f"{path[0]} is not a table")
    old = group.get(path[1], {})
    if not isinstance(old, dict):
        raise Damaged(f"{path[0]}.{path[1]} is not a table")
    newline = "\r\n" if "\r\n" in text else "\n"
    header = f"[{path[0]}.{path[1] if _BARE.match(path[1]) else json.dumps(path[1], ensure_ascii=False)}]"
    lines = [f"{key} = {_value(value)}" for key, value in entry.items()]
    if path[1] not in group:
        gap = "" if not text.strip() else newline if text.endswith("\n") else newline * 2
        changed = text + gap + newline.join([header, *lines]) + newline
    else:
        changed = _changed(text, path, dict(zip(entry, lines, strict=True)), newline)
    wanted = {**before, path[0]: {**group, path[1]: {**old, **entry}}}
    try:
        right = parse(changed) == wanted
    except Damaged:
        right = False
    if not right:
        raise Damaged("it is written in a way that cannot be added to safely")
    return changed


def _changed(text: str, path: tuple[str, str], lines: dict[str, str], newline: str) -> str:
    """Each member's line is replaced where the table has one, else it follows the header."""
    table = re.compile(
        rf"\s*\[\s*{re.escape(path[0])}\s*\.\s*(?:{re.escape(path[1])}|\"{re.escape(path[1])}\"|'{re.escape(path[1])}')\s*\]"
    )
    given = text.split(newline)
    heads = [number for number, line in enumerate(given) if table.match(line)]
    if len(heads) != 1:
        raise Damaged(f"the table {path[0]}.{path[1]} is not written as one")
    end = next((n for n in range(heads[0] + 1, len(given)) if _HEADER.match(given[n])), len(given))
    missing = []
    for key, line in lines.items():
        member = re.compile(rf"\s*(?:{re.escape(key)}|\"{re.escape(key)}\")\s*=")
        places = [n for n in range(heads[0] + 1, end) if member.match(given[n])]
        if places:
            given[places[0]] = line
        else:
            missing.append(line)
    given[heads[0] + 1 : heads[0] + 1] = missing
    return newline.join(given)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, list):
        return "[" + ", ".join(_value(part) for part in value) + "]"
    # JSON's escapes are a subset of TOML's but for DEL, which TOML wants escaped (toml.io/en/v1.0.0#string).
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
