"""JSON as hosts take it: comments, commas after the last member and a byte order mark are read, and told.

Comments and those commas are blanked out with spaces, so that the fast parser reads the rest and every place that it
names is the place in the file. Where members stand is found only when somebody asks (json_places.py).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from interlock.hosts.text.decoding import decoded, place
from interlock.hosts.text.document import At, Damaged, Document
from interlock.hosts.text.json_faults import explained
from interlock.hosts.text.json_places import Places, deeper_than

_NO_COMMENT = re.compile(r'[^"/]*+(?:"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"[^"/]*+)*+', re.DOTALL)
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*+"|(?P<liberty>//[^\r\n]*+|/\*.*?\*/)', re.DOTALL)
_COMMA = re.compile(r'"(?:[^"\\\n]|\\.)*+"|[\[{,:][ \t\r\n]*+,|(?P<liberty>,)(?=[ \t\r\n]*+[}\]])', re.DOTALL)
_LETTER = re.compile(r"[^\r\n]")
_SPACE = " \t\r\n"
_MAX_DEPTH = 400


@dataclass(frozen=True, slots=True)
class Plain:
    """A file's text (without byte order mark), and the same with blanks for everything that strict JSON has not."""

    text: str
    plain: str
    bom: bool
    comment: int | None = None
    """Offset of the first one."""
    trailing_comma: int | None = None


def parse(content: bytes) -> Document:
    """An empty file is an empty object. Raises Damaged."""
    read = plain(content)
    value, doubled = loaded(read)
    places = Places(read.plain)
    return Document(
        value,
        places,
        bom=read.bom,
        comment=_at(read.text, read.comment),
        trailing_comma=_at(read.text, read.trailing_comma),
        duplicates=places.duplicates() if doubled else (),
        scan=places.below,
    )


def plain(content: bytes) -> Plain:
    """Raises Damaged for the encoding only."""
    text, bom = decoded(content)
    stripped, comment = text, None
    if _NO_COMMENT.match(text).end() < len(text):  # type: ignore[union-attr]
        stripped, comment = _blanked(text, _COMMENT)
    stripped, comma = _blanked(stripped, _COMMA) if _may_trail(stripped) else (stripped, None)
    return Plain(text, stripped, bom, comment, comma)


def loaded(read: Plain) -> tuple[object, bool]:
    """The value, and whether any object has a key twice. Raises Damaged."""
    if not read.plain.strip(_SPACE):
        return {}, False
    doubled = False

    def made(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal doubled
        members = dict(pairs)
        doubled = doubled or len(members) != len(pairs)
        return members

    try:
        value = json.loads(read.plain, object_pairs_hook=made, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise explained(read.text, read.plain, error) from None
    except RecursionError:
        raise Damaged("it is nested too deeply") from None
    except ValueError as error:
        raise Damaged(str(error) if isinstance(error, _Constant) else "it holds a number that is too long") from None
    # Whoever goes through the value by recursion may rely on it.
    if read.plain.count("[") + read.plain.count("{") > _MAX_DEPTH and deeper_than(read.plain, _MAX_DEPTH):
        raise Damaged("it is nested too deeply")
    return value, doubled


class _Constant(ValueError):
    pass


def _no_constant(name: str) -> object:
    raise _Constant(f"it holds {name}, which JSON does not have")


def _blanked(text: str, pattern: re.Pattern[str]) -> tuple[str, int | None]:
    """The text with every `liberty` blanked out, and the offset of the first."""
    pieces, end, first = [], 0, None
    for found in pattern.finditer(text):
        if found["liberty"] is not None:
            first = found.start() if first is None else first
            pieces += [text[end : found.start()], _LETTER.sub(" ", found[0])]
            end = found.end()
    return ("".join([*pieces, text[end:]]), first) if pieces else (text, None)


_TRAILS = re.compile(r",[ \t\r\n]*+[}\]]")


def _may_trail(text: str) -> bool:
    """Cheap: inside of a text it may be a false alarm, which the thorough search settles."""
    return _TRAILS.search(text) is not None


def _at(text: str, offset: int | None) -> At | None:
    return None if offset is None else place(text, offset)
