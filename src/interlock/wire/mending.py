"""Messages that the JSON reader refuses though their meaning is clear, and whose request they were about.

JavaScript cuts strings between the halves of a surrogate pair, old encodings slip into the text of tools, some writers
begin with a byte order mark. One bad character must not cost a whole answer. None of this is on the way of a message in
order.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from interlock.wire import bounds

_BOM: Final = b"\xef\xbb\xbf"
_SPACES: Final = bytes.maketrans(b"\r\n", b"  ")
_HIGH: Final = rb"\\u[dD][89abAB][0-9a-fA-F]{2}"
_LOW: Final = rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
# It begins with plain characters, which are found much faster than a choice.
_UNPAIRED: Final = re.compile(
    rb"\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?!" + _LOW + rb")|(?<!" + _HIGH + rb"\\u[dD])[c-fC-F][0-9a-fA-F]{2})"
)

_ID: Final = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4}){0,256}")'
_VERSION: Final = rb'"jsonrpc"\s*:\s*"2\.0"'
_HEAD: Final = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*)?" + _ID + rb'\s*,\s*"(method|result|error)"\s*:')
_FIRST: Final = re.compile(rb'\s*\{\s*"(method|result|error)"\s*:')
_TAIL: Final = re.compile(_VERSION + rb"\s*,\s*" + _ID + rb"\s*\}\s*\Z")
_TAIL_BYTES: Final = 6 * bounds.MAX_ID_LENGTH + 100

Ids = tuple[int | str | None, int | str | None]
"""The id of a request, or the one that a response names: at most one of the two."""


class _Marks(msgspec.Struct):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    method: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_marks = msgspec.json.Decoder(_Marks)


def mend(data: bytes, *, utf8: bool) -> bytes:
    """`data` with unpaired surrogates replaced by U+FFFD and without a byte order mark.

    With `utf8`, what is not UTF-8 is replaced too. Whether it can be read afterwards is for the reader to say.
    """
    if data.startswith(_BOM):
        data = data[3:]
    if utf8 and not data.isascii():
        data = data.decode("utf-8", "replace").encode()
    # An escaped backslash may stand before a `u`. NUL is in no valid message, so two of it can stand in for one.
    if (b"\\ud" in data or b"\\uD" in data) and b"\0" not in data:
        plain = data.replace(b"\\\\", b"\0\0")
        data = _UNPAIRED.sub(rb"\\ufffd", plain).replace(b"\0\0", b"\\\\")
    return data


def one_line(data: bytes) -> bytes:
    """Valid JSON without line breaks. They can only be white space between its parts: inside strings they are escaped.

    Peers that take a message a line would otherwise read the parts of a pretty-printed one as messages of their own.
    """
    return data.translate(_SPACES)


def ids_of(data: bytes) -> Ids:
    """What a message is about that is valid JSON, but no message."""
    try:
        marks = _marks.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return guess_ids(data)
    if marks.id is msgspec.UNSET:
        return None, None
    id = _id(bytes(marks.id))
    if marks.method is not msgspec.UNSET:
        return id, None
    answers = marks.result is not msgspec.UNSET or marks.error is not msgspec.UNSET
    return (None, id) if answers else (id, None)


def guess_ids(data: bytes) -> Ids:
    """What a message is about that is not even JSON: senders put the id right at the start or right at the end."""
    found = _HEAD.match(data)
    if found is not None:
        id, mark = _id(found[1]), found[2]
    else:
        first = _FIRST.match(data)
        end = _TAIL.search(data[-_TAIL_BYTES:])
        if first is None or end is None:
            return None, None
        id, mark = _id(end[1]), first[1]
    return (id, None) if mark == b"method" else (None, id)


def _id(raw: bytes) -> int | str | None:
    try:
        id: object = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(id, float) and id.is_integer():
        id = int(id)
    if isinstance(id, bool) or not isinstance(id, int | str):
        return None
    short = len(id) <= bounds.MAX_ID_LENGTH if isinstance(id, str) else abs(id) < 10**bounds.MAX_ID_LENGTH
    return id if short else None


def clean(text: str) -> str:
    """`text` with what no Unicode encoding can carry (unpaired surrogates) replaced by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
