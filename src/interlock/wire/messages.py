"""JSON-RPC 2.0 messages as MCP restricts them: read the envelope once, keep the rest as the bytes that came.

Values that no gate has to look into stay `msgspec.Raw`: unknown fields, key order, big integers and number spelling
survive because they are never decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from interlock.wire import bounds, codes

Id = int | str
Raw = msgspec.Raw
RawMap = dict[str, Raw]

NULL: Final = Raw(b"null")
EMPTY_OBJECT: Final = Raw(b"{}")


class WireError(Exception):
    """A message that breaks the protocol. `code` is a JSON-RPC code; `id` is the request's where it could be read."""

    def __init__(self, code: int, message: str, id: Id | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.id = id


class Kind(Enum):
    REQUEST = "request"
    NOTIFICATION = "notification"
    RESULT = "result"
    ERROR = "error"


class _Envelope(msgspec.Struct):
    jsonrpc: str | None = None
    id: int | str | msgspec.UnsetType | None = msgspec.UNSET
    method: str | msgspec.UnsetType = msgspec.UNSET
    params: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _IdOnly(msgspec.Struct):
    id: int | str | None = None


class Message(msgspec.Struct):
    """One message. Only the fields of its kind are set; `params`, `result` and `error` are untouched bytes."""

    kind: Kind
    id: Id | None = None
    method: str = ""
    params: Raw | None = None
    body: Raw = NULL
    """The result or the error object."""


_envelope = msgspec.json.Decoder(_Envelope)
_id_only = msgspec.json.Decoder(_IdOnly)
_map = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_str = msgspec.json.Decoder(str)
encode = msgspec.json.encode


def too_deep(data: bytes, limit: int = bounds.MAX_DEPTH) -> bool:
    """True where arrays and objects nest deeper than `limit`. Brackets inside strings count too: an upper bound first."""
    if data.count(b"{") + data.count(b"[") <= limit:
        return False
    depth = 0
    in_string = False
    escaped = False
    for byte in data:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in (0x7B, 0x5B):
            depth += 1
            if depth > limit:
                return True
        elif byte in (0x7D, 0x5D):
            depth -= 1
    return False


def parse(data: bytes) -> Message:
    """Read one message. Raises WireError with the code that JSON-RPC gives to the fault."""
    try:
        envelope = _envelope.decode(data)
    except (msgspec.ValidationError, UnicodeDecodeError) as error:
        raise WireError(codes.INVALID_REQUEST, f"not a JSON-RPC message: {error}", _try_id(data)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise WireError(codes.PARSE_ERROR, f"not valid JSON: {error}") from None
    id = envelope.id
    if id.__class__ is str and len(id) > bounds.MAX_ID_LENGTH:  # type: ignore[arg-type]
        raise WireError(codes.INVALID_REQUEST, f"the id is longer than {bounds.MAX_ID_LENGTH} characters")
    if envelope.jsonrpc != "2.0":
        raise WireError(codes.INVALID_REQUEST, 'the member "jsonrpc" must be "2.0"', _valid_id(id))
    method = envelope.method
    if method is not msgspec.UNSET:
        if len(method) > bounds.MAX_METHOD_LENGTH:
            raise WireError(codes.INVALID_REQUEST, "the method's name is too long", _valid_id(id))
        if envelope.result is not msgspec.UNSET or envelope.error is not msgspec.UNSET:
            raise WireError(codes.INVALID_REQUEST, "a message with a method has no result or error", _valid_id(id))
        params = None if envelope.params is msgspec.UNSET else envelope.params
        if id is msgspec.UNSET:
            return Message(Kind.NOTIFICATION, method=method, params=params)
        if id is None:
            raise WireError(codes.INVALID_REQUEST, "a request's id must not be null")
        return Message(Kind.REQUEST, id=id, method=method, params=params)
    if envelope.result is not msgspec.UNSET and envelope.error is msgspec.UNSET:
        if id is msgspec.UNSET or id is None:
            raise WireError(codes.INVALID_REQUEST, "a result needs the id of its request")
        return Message(Kind.RESULT, id=id, body=envelope.result)
    if envelope.error is not msgspec.UNSET and envelope.result is msgspec.UNSET:
        return Message(Kind.ERROR, id=None if id is msgspec.UNSET else id, body=envelope.error)
    raise WireError(
        codes.INVALID_REQUEST, "the message is neither a request, a notification nor a response", _valid_id(id)
    )


def _valid_id(id: Id | msgspec.UnsetType | None) -> Id | None:
    return None if id is msgspec.UNSET else id


def _try_id(data: bytes) -> Id | None:
    try:
        return _id_only.decode(data).id
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def is_batch(data: bytes) -> bool:
    """True where the message is a JSON array (batches exist in revision 2025-03-26 only)."""
    return data.lstrip()[:1] == b"["


def split_batch(data: bytes) -> list[bytes]:
    """The members of a batch. Raises WireError where it is empty or not readable."""
    try:
        items = _list.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise WireError(codes.PARSE_ERROR, f"not valid JSON: {error}") from None
    if not items:
        raise WireError(codes.INVALID_REQUEST, "an empty batch")
    return [bytes(item) for item in items]


def read_map(raw: Raw | bytes | None) -> RawMap:
    """The members of a JSON object, values untouched. `None` reads as empty. Raises WireError (-32602) for anything else."""
    if raw is None:
        return {}
    try:
        return _map.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise WireError(codes.INVALID_PARAMS, "an object was expected here") from None


def try_map(raw: Raw | bytes | None) -> RawMap | None:
    """Like `read_map`, but None for anything that is not an object."""
    if raw is None:
        return None
    try:
        return _map.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def try_list(raw: Raw | bytes | None) -> list[Raw] | None:
    """The items of a JSON array, untouched, or None for anything else."""
    if raw is None:
        return None
    try:
        return _list.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def try_str(raw: Raw | bytes | None) -> str | None:
    """A JSON string's value, or None for anything else."""
    if raw is None:
        return None
    try:
        return _str.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def try_json(raw: Raw | bytes | None) -> object:
    """Any JSON value decoded, or None where it cannot be."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def raw(value: object) -> Raw:
    """A value as the bytes that it will be sent as."""
    return Raw(encode(value))


def write_map(members: Mapping[str, Raw]) -> bytes:
    return encode(members)


def id_bytes(id: Id | None) -> bytes:
    return b"%d" % id if id.__class__ is int else encode(id)


def request(id: Id, method: str, params: bytes | Raw | None) -> bytes:
    """One request line, without a newline."""
    head = b'{"jsonrpc":"2.0","id":' + id_bytes(id) + b',"method":' + encode(method)
    return head + b"}" if params is None else head + b',"params":' + bytes(params) + b"}"


def notification(method: str, params: bytes | Raw | None) -> bytes:
    head = b'{"jsonrpc":"2.0","method":' + encode(method)
    return head + b"}" if params is None else head + b',"params":' + bytes(params) + b"}"


def result(id: Id, body: bytes | Raw) -> bytes:
    return b'{"jsonrpc":"2.0","id":' + id_bytes(id) + b',"result":' + bytes(body) + b"}"


def error(id: Id | None, body: bytes | Raw) -> bytes:
    """An error response around a whole error object, unknown members included. No id where it could not be read."""
    if id is None:
        return b'{"jsonrpc":"2.0","error":' + bytes(body) + b"}"
    return b'{"jsonrpc":"2.0","id":' + id_bytes(id) + b',"error":' + bytes(body) + b"}"


def error_body(code: int, message: str, data: object = None) -> bytes:
    members: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        members["data"] = data
    return encode(members)
