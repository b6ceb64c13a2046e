"""What is due for a message: judged with the standard library alone, so that it is a second opinion on `interlock.wire`."""

from __future__ import annotations

import json
import re
import sys
from enum import Enum

_RESPONSE = re.compile(rb'\s*\{\s*("jsonrpc"\s*:\s*"2.0"\s*,\s*)?"(id"\s*:\s*[^,]*,\s*"(result|error)|result|error)"')
_SURROGATES = re.compile("[\ud800-\udfff]")
sys.set_int_max_str_digits(0)  # JSON numbers have no limit; what the gateway makes of long ones is under test
MAX_DEPTH = 200
MAX_VALUES = 1_000_000


class Due(Enum):
    ERROR = "error"
    """It is no message, so an error has to come."""
    ANSWER = "answer"
    """It is a request: a result or an error with its id has to come."""
    NOTHING = "nothing"
    """A notification or a response: nothing has to come."""
    EITHER = "either"
    """Peers may disagree about it; only silence or a crash would be wrong."""


class NotJson(Exception):
    pass


def _refuse(text: str) -> object:
    raise NotJson(text)


def read(data: bytes) -> object:
    """Strict JSON in UTF-8. Raises NotJson; a byte order mark is ignored, as RFC 8259 allows."""
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from None


def _is_response(data: bytes) -> bool:
    """True for a response that only its encoding makes unreadable."""
    try:
        message = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return False
    return isinstance(message, dict) and "method" not in message and ("result" in message or "error" in message)


def repeats(data: bytes) -> bool:
    """True where the outermost object names a member twice: readers do not agree on what that means."""
    counts: list[bool] = []

    def hook(pairs: list[tuple[str, object]]) -> dict[str, object]:
        counts.append(len(dict(pairs)) != len(pairs))
        return dict(pairs)

    json.loads(data.removeprefix(b"\xef\xbb\xbf").decode(), object_pairs_hook=hook)
    return bool(counts) and counts[-1]


def bounded(data: bytes) -> bool:
    """False where the message is near or over the limits on depth and size: then an error may be due."""
    outside = re.sub(rb'"(?:[^"\\]|\\.)*"?', b"", data)
    depth = deepest = 0
    for byte in outside:
        if byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    return deepest < MAX_DEPTH and outside.count(b",") < MAX_VALUES


def due(data: bytes) -> tuple[Due, int | str | None]:
    """What has to come back for one message of a client, and for which id."""
    if data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[":
        return Due.EITHER, None  # a batch: some revisions have them
    try:
        message = read(data)
    except NotJson:
        # What looks like a response is answered to nobody: it would be taken for an answer to something else.
        return (Due.EITHER if _RESPONSE.match(data) or _is_response(data) else Due.ERROR), None
    if not isinstance(message, dict):
        return Due.ERROR, None
    if repeats(data):
        return Due.EITHER, None
    if message.get("jsonrpc") != "2.0":
        return (Due.EITHER if "result" in message or "error" in message else Due.ERROR), None
    # Half a surrogate pair is no character: U+FFFD comes in its place.
    method, id = (
        _SURROGATES.sub("\ufffd", each) if isinstance(each, str) else each
        for each in map(message.get, ("method", "id"))
    )
    if isinstance(id, float) and id.is_integer() and abs(id) < 1e200:
        id = int(id)
    plain_id = (isinstance(id, int) and not isinstance(id, bool)) or isinstance(id, str)
    if "id" in message and (not plain_id or len(str(id)) > 256):
        return (
            (Due.ERROR, None)
            if "method" in message or "error" not in message or id is not None
            else (Due.NOTHING, None)
        )
    if "method" in message:
        if not isinstance(method, str) or len(method) > 256 or not method.isprintable():
            return Due.ERROR, None
        if "result" in message or "error" in message:
            return Due.ERROR, None
        if not bounded(data):
            return Due.EITHER, None
        assert isinstance(id, int | str) or id is None
        return (Due.ANSWER, id) if "id" in message else (Due.NOTHING, None)
    if "result" in message or "error" in message:
        # A response, good or bad: whoever gets it has nobody to answer, though a host may be told that it is broken.
        return Due.EITHER, None
    return Due.ERROR, None


def answers(data: bytes, id: int) -> bool | None:
    """True where a server's message is a sound answer to our request `id`, False where it is none, None where it is arguable."""
    text = data.decode("utf-8", "replace").encode()
    if text.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"[":
        return None
    try:
        message = read(text)
    except NotJson:
        return False
    if isinstance(message, dict) and repeats(text):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or "method" in message:
        return False
    found = message.get("id")
    if isinstance(found, bool) or found != id:
        return False if not isinstance(found, str) else None
    if not bounded(text):
        return None
    has_result, has_error = message.get("result") is not None, message.get("error") is not None
    if has_result and has_error:
        return False
    if has_result:
        return isinstance(message["result"], dict)
    error = message.get("error")
    if not isinstance(error, dict):
        return False
    code = error.get("code")
    return isinstance(code, int) and not isinstance(code, bool) and isinstance(error.get("message"), str)
