"""TOML: the standard library reads the value, and a scan of the text finds where everything stands."""

from __future__ import annotations

import re
import tomllib

from interlock.hosts.text.decoding import CONFLICT, Lines, conflict, decoded, place
from interlock.hosts.text.document import At, Damaged, Document, Step
from interlock.hosts.text.toml_statements import places, statements

_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)")
_QUOTED = re.compile(r"\"[^\"]*\"|'[^']{2,}'|\([^)]*\)")


def parse(content: bytes) -> Document:
    """Raises Damaged."""
    text, bom = decoded(content)
    value = loaded(text)
    lines = Lines(text)
    spots: dict[tuple[Step, ...], At] = {}
    for path, offset in places(statements(text)):
        if path not in spots:
            spots[path] = lines.at(offset)
    return Document(value, spots, bom=bom)


def loaded(text: str) -> dict[str, object]:
    """The value of a text without byte order mark, with any line endings. Raises Damaged."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _explained(text, error) from None
    except RecursionError:
        raise Damaged("it is nested too deeply") from None
    except ValueError:
        raise Damaged("it holds a number or a date that does not exist") from None


def _explained(text: str, error: tomllib.TOMLDecodeError) -> Damaged:
    marker = conflict(text)
    if marker is not None:
        return Damaged(CONFLICT, marker)
    said = str(error)
    found = _AT.search(said)
    offset = len(text)
    if found is not None and found[1]:
        at = int(found[1]), int(found[2])
        offset = _offset(text.replace("\r\n", "\n"), at)
        text = text.replace("\r\n", "\n")
    else:
        at = place(text, len(text.rstrip()))
    return Damaged(_cause(text, offset, said[: found.start()] if found is not None else said), at)


def _offset(text: str, at: At) -> int:
    start = 0
    for _ in range(at[0] - 1):
        start = text.find("\n", start) + 1
    return start + at[1] - 1


def _cause(text: str, offset: int, said: str) -> str:
    """In words for people, without anything that stands in the file: the parser's own words may quote keys."""
    start = text.rfind("\n", 0, offset) + 1
    line = text[start:].lstrip()[:2]
    letter = text[offset : offset + 1]
    if letter in "\u201c\u201d\u2018\u2019" and letter:
        return f'a typographic quotation mark (`{letter}`); write `"`'
    if said.startswith(("Cannot declare", "Cannot overwrite", "Cannot mutate", "Cannot redefine")):
        return "this key or table stands here a second time"
    if said.startswith(("Unescaped '\\'", "Invalid hex value", "Escaped character is not")):
        return (
            "a backslash inside of a text in double quotes begins an escape that TOML does not have; "
            "write the text in single quotes, or `\\\\` for a backslash"
        )
    if line == "//":
        return "a comment with `//`; TOML wants `#`"
    if said.startswith(("Invalid statement", "Invalid initial character for a key part")):
        return "here a key should stand" + ("; TOML has no braces around the whole file" if letter == "{" else "")
    if said.startswith("Expected '=' after a key"):
        if letter == ":":
            return "a colon after a key; TOML wants `=`"
        return "after the key a `=` is missing"
    if said.startswith("Invalid value"):
        if not letter or letter in "\r\n":
            return "a value is missing after the `=`"
        return "this is no TOML value; a text needs quotation marks, and `true` and `false` are written small"
    if said.startswith("Expected newline or end of document"):
        return "something stands after the end of the value or the table's name, where the line should end"
    if said.startswith(("Unterminated", "Illegal character")):
        return "a text is not closed: a quotation mark is missing, or a control character stands in it"
    if said.startswith("Unclosed"):
        return "a list or an inline table is not closed, or a comma in it is missing"
    if said.startswith("Expected ']'"):
        return "the table's name is not closed: a `]` is missing"
    return " ".join(_QUOTED.sub("", said).split()) or "it is not valid TOML"
