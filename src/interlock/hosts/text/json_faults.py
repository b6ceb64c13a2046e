"""What is wrong with a text that is no JSON, in words that name the usual cause, at the place where to look."""

from __future__ import annotations

import json
import re
import unicodedata

from interlock.hosts.text.decoding import CONFLICT, conflict, place
from interlock.hosts.text.document import Damaged

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"|[{}\[\]]', re.DOTALL)
_WORD = re.compile(r"[A-Za-z_$][\w$-]*")
_CLOSES = {"}": "{", "]": "["}


def explained(text: str, plain: str, error: json.JSONDecodeError) -> Damaged:
    """`plain` is what was parsed: the text with comments and last commas blanked out."""
    marker = conflict(text)
    if marker is not None:
        return Damaged(CONFLICT, marker)
    why, offset = _cause(plain, error)
    return Damaged(why, place(text, offset))


def _cause(plain: str, error: json.JSONDecodeError) -> tuple[str, int]:
    said, offset = error.msg, error.pos
    if said.startswith(("Invalid \\escape", "Invalid \\uXXXX")):
        return (
            "a backslash inside of a text begins an escape that JSON does not have; write `\\\\` for a backslash",
            offset,
        )
    if said.startswith("Unterminated string"):
        return "the text that begins here is not closed: a quotation mark is missing", offset
    if said.startswith("Invalid control character"):
        if plain[offset : offset + 1] in ("\n", "\r"):
            return "the text on this line is not closed: a quotation mark is missing before the line ends", offset
        return (
            "a control character (perhaps a tab) stands inside of a text; write it as an escape such as `\\t`",
            offset,
        )
    offset += len(plain[offset:]) - len(plain[offset:].lstrip(" \t\r\n"))
    letter = plain[offset : offset + 1]
    if letter == "":
        return _unclosed(plain)
    common = _by_letter(plain, offset, letter)
    if common is not None:
        return common, offset
    if said.startswith("Extra data"):
        if letter in "}]":
            return f"a `{letter}` too much: what it should close is closed already", offset
        return "the file goes on after its end: a second value begins here", offset
    if said.startswith("Expecting property name"):
        if _WORD.match(plain, offset):
            return "the key has no quotation marks", offset
        if letter == ",":
            return "a comma too much", offset
        if letter == "]":
            return "a `]` closes what `{` opened", offset
        return "here a key in quotation marks should stand", offset
    if said.startswith("Expecting ':'"):
        return "after the key a colon is missing", offset
    if said.startswith("Expecting ','"):
        if letter in "}]":
            opened = _open_at(plain, offset)
            if opened is not None and plain[opened] != _CLOSES[letter]:
                line = place(plain, opened)[0]
                return f"a `{letter}` stands where the `{plain[opened]}` of line {line} is still open", offset
        if letter == ":":
            return "a colon stands here: the object lacks its `{`, or a key stands in a list", offset
        return "a comma is missing before this", offset
    if letter in "}]:":
        return f"a value is missing before the `{letter}`", offset
    if letter == ",":
        return "a comma too much, or a value is missing before it", offset
    if _WORD.match(plain, offset):
        return "here stands a word without quotation marks", offset
    return "this is no JSON value", offset


def _by_letter(plain: str, offset: int, letter: str) -> str | None:
    """What gives itself away by its first character, wherever it stands."""
    if letter == "'":
        return "single quotes; JSON wants double ones"
    if letter in "\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb":
        return f'a typographic quotation mark (`{letter}`), as word processors and web pages make them; write `"`'
    if letter == "#":
        return "a comment with `#`, which JSON does not have"
    if plain.startswith("/*", offset):
        return "the comment that begins here is not closed"
    if letter in "\u00a0\ufeff" or unicodedata.category(letter) in ("Zs", "Cf", "Cc"):
        return f"an invisible character (U+{ord(letter):04X}) stands here; delete it"
    word = _WORD.match(plain, offset)
    if word is not None and word[0] in ("True", "False", "None", "undefined"):
        right = {"True": "true", "False": "false"}.get(word[0], "null")
        return f"`{word[0]}` is no JSON; write `{right}`"
    return None


def _unclosed(plain: str) -> tuple[str, int]:
    opened = _open_at(plain, len(plain))
    end = len(plain.rstrip(" \t\r\n"))
    if opened is None:
        return "the file ends where a value should stand", end
    line, column = place(plain, opened)
    return f"the file ends, and the `{plain[opened]}` of line {line}, column {column} is not closed", end


def _open_at(plain: str, offset: int) -> int | None:
    """The innermost bracket that is open at an offset."""
    stack: list[int] = []
    for found in _TOKEN.finditer(plain, 0, offset):
        if found[0] in ("{", "["):
            stack.append(found.start())
        elif found[0] in ("}", "]") and stack:
            stack.pop()
    return stack[-1] if stack else None
