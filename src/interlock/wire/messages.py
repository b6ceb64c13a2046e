"""JSON-RPC 2.0 messages as MCP restricts them: read the envelope once, keep the rest as the bytes that came.

Values that no gate has to look into stay `msgspec.Raw`: unknown fields, key order, big integers and number spelling
survive because they are never decoded. Members of the envelope that JSON-RPC does not define are dropped: the envelope
belongs to one hop, and strict peers refuse what they do not know there.

What `parse` returns is valid JSON and UTF-8, holds no line break (so it may travel on one line) and no unpaired
surrogate, and is bounded in depth and in the number of its values.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from interlock.wire import bounds, codes, mending, shape

Id = int | str
Raw = msgspec.Raw
RawMap = dict[str, Raw]

NULL: Final = Raw(b"null")
EMPTY_OBJECT: Final = Raw(b"{}")

too_deep = shape.too_deep
guess_ids = mending.guess_ids
_MAX_ID: Final = 10**bounds.MAX_ID_LENGTH
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class WireError(Exception):
    """A message that breaks the protocol. `code` is a JSON-RPC code.

    `id` is the broken request's, `response_id` the one that a broken response names, where they could be read. At most
    one is set, so that an error is never sent as the answer to a response, and no request is taken for an answer.
    """

    slug = "protocol"
    """The entry in docs/errors.md."""

    def __init__(
        self, code: int, message: str, id: Id | None = None, response_id: Id | None = None, slug: str | None = None
    ) -> None:
        super().__init__(message)
        if slug is not None:
            self.slug = slug
        self.code = code
        self.message = message
        self.id = id
        self.response_id = response_id


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


class _AnyNumber(_Envelope):
    """Some languages have one kind of number only, and write the id 1 as `1.0`."""

    id: int | str | float | msgspec.UnsetType | None = msgspec.UNSET  # type: ignore[assignment]


class Message(msgspec.Struct):
    """One message. Only the fields of its kind are set; `params`, `result` and `error` are untouched bytes."""

    kind: Kind
    id: Id | None = None
    method: str = ""
    params: Raw | None = None
    body: Raw = NULL
    """The result or the error object."""


_envelope = msgspec.json.Decoder(_Envelope)
_any_number = msgspec.json.Decoder(_AnyNumber)
_map = msgspec.json.Decoder(dict[str, msgspec.Raw])
_list = msgspec.json.Decoder(list[msgspec.Raw])
_str = msgspec.json.Decoder(str)
encode = msgspec.json.encode


def parse(data: bytes, *, strict: bool = False) -> Message:
    """Read one message. Raises WireError with the code that JSON-RPC gives to the fault, and nothing else.

    `strict` refuses bytes that are not UTF-8, as is due to a request that may change something; otherwise they become
    U+FFFD, so that one bad byte does not lose a whole answer. Unpaired surrogates become U+FFFD either way.
    """
    try:
        envelope = _envelope.decode(data)
        if not data.isascii():
            data.decode()  # the reader skips strings without looking at their bytes (RFC 8259, 8.1: they are UTF-8)
    except _UNREADABLE as error:
        data, envelope = _read_again(data, error, strict)
    # White space after the envelope's last member is not part of any; most senders end with one line break or none.
    last = len(data) - 2
    if -1 < data.find(10) < last or -1 < data.find(13) < last:
        data = mending.one_line(data)
        envelope = _any_number.decode(data)
    if last > shape.ALWAYS_FLAT:
        _check_shape(data)
    id: Id | msgspec.UnsetType | None = envelope.id
    if isinstance(id, int):
        if not -_MAX_ID < id < _MAX_ID:
            raise WireError(codes.INVALID_REQUEST, f"the id is longer than {bounds.MAX_ID_LENGTH} digits")
    elif isinstance(id, str):
        if len(id) > bounds.MAX_ID_LENGTH:
            raise WireError(codes.INVALID_REQUEST, f"the id is longer than {bounds.MAX_ID_LENGTH} characters")
    elif isinstance(id, float):
        id = _whole(id)
    method = envelope.method
    if envelope.jsonrpc != "2.0":
        answers = method is msgspec.UNSET and (
            envelope.result is not msgspec.UNSET or envelope.error is not msgspec.UNSET
        )
        raise _refusal('the member "jsonrpc" must be "2.0"', id, not answers)
    if method is not msgspec.UNSET:
        if len(method) > bounds.MAX_METHOD_LENGTH:
            raise _refusal("the method's name is too long", id, True)
        if not method.isprintable():
            # It is mirrored into an HTTP header (2026-07-28, Streamable HTTP), where a line break would start another.
            raise _refusal("the method's name has characters that a name may not hold", id, True)
        if envelope.result is not msgspec.UNSET or envelope.error is not msgspec.UNSET:
            raise _refusal("a message with a method has no result or error", id, True)
        params = None if envelope.params is msgspec.UNSET else envelope.params
        if id is msgspec.UNSET:
            return Message(Kind.NOTIFICATION, method=method, params=params)
        if id is None:
            raise WireError(codes.INVALID_REQUEST, "a request's id must not be null")
        return Message(Kind.REQUEST, id=id, method=method, params=params)
    answer, failure = envelope.result, envelope.error
    if answer is not msgspec.UNSET and failure is not msgspec.UNSET:
        # Some libraries write both, one of them null.
        if failure == NULL:
            failure = msgspec.UNSET
        elif answer == NULL:
            answer = msgspec.UNSET
    if answer is not msgspec.UNSET and failure is msgspec.UNSET:
        if id is msgspec.UNSET or id is None:
            raise WireError(codes.INVALID_REQUEST, "a result needs the id of its request")
        return Message(Kind.RESULT, id=id, body=answer)
    if failure is not msgspec.UNSET and answer is msgspec.UNSET:
        return Message(Kind.ERROR, id=None if id is msgspec.UNSET else id, body=failure)
    raise _refusal("the message is neither a request, a notification nor a response", id, answer is msgspec.UNSET)


def _read_again(data: bytes, error: Exception, strict: bool) -> tuple[bytes, _Envelope]:
    """The second look at a message that the fast reader refused: mend what can be mended, else say what is wrong."""
    if isinstance(error, RecursionError):
        raise WireError(codes.INVALID_REQUEST, _TOO_DEEP, *mending.guess_ids(data)) from None
    mended = mending.mend(data, utf8=not strict)
    try:
        envelope = _any_number.decode(mended)
        if not mended.isascii():
            mended.decode()
    except msgspec.ValidationError as still:
        raise WireError(codes.INVALID_REQUEST, f"not a JSON-RPC message: {still}", *mending.ids_of(mended)) from None
    except RecursionError:
        raise WireError(codes.INVALID_REQUEST, _TOO_DEEP, *mending.guess_ids(data)) from None
    except UnicodeDecodeError:
        raise WireError(codes.PARSE_ERROR, "not valid JSON: the bytes are not UTF-8", *mending.ids_of(mended)) from None
    except msgspec.DecodeError:
        raise WireError(codes.PARSE_ERROR, f"not valid JSON: {error}", *mending.guess_ids(data)) from None
    return mended, envelope


def _check_shape(data: bytes) -> None:
    """`data` is valid JSON. Raises WireError where it is nested too deeply or holds too many values."""
    if shape.too_deep(data):
        raise WireError(codes.INVALID_REQUEST, _TOO_DEEP, *mending.ids_of(data))
    if len(data) > bounds.MAX_VALUES and shape.too_many(data):
        text = f"the message holds more than {bounds.MAX_VALUES} values"
        raise WireError(codes.INVALID_REQUEST, text, *mending.ids_of(data))


def _whole(id: float) -> Id:
    """A float as the integer that it stands for. Raises WireError where it stands for none or is too long."""
    if not id.is_integer() or abs(id) >= _MAX_ID:
        raise WireError(codes.INVALID_REQUEST, "the id must be a string or an integer")
    return int(id)


def _refusal(text: str, id: Id | msgspec.UnsetType | None, is_request: bool) -> WireError:
    known = id if isinstance(id, int | str) else None
    if is_request:
        return WireError(codes.INVALID_REQUEST, text, known)
    return WireError(codes.INVALID_REQUEST, text, None, known)


_TOO_DEEP: Final = "the message is nested too deeply"


def own_id(id: Id | None) -> int | None:
    """The number that we gave a request, as it comes back in a response: some peers give every id back as text.

    None where it is none of ours.
    """
    if isinstance(id, str):
        return int(id) if id.isascii() and id.isdigit() and len(id) < 16 else None
    return id


def is_batch(data: bytes) -> bool:
    """True where the message is a JSON array (batches exist in revision 2025-03-26 only)."""
    return data.lstrip()[:1] == b"["


class _Member(msgspec.Struct, gc=False):
    jsonrpc: str


_members = msgspec.json.Decoder(list[_Member])


def split_batch(data: bytes) -> list[bytes]:
    """The members of a batch. Raises WireError where it is empty, too long, unreadable, or holds no messages."""
    if data.count(b'"jsonrpc"') > bounds.MAX_BATCH:
        raise WireError(codes.INVALID_REQUEST, f"a batch of more than {bounds.MAX_BATCH} messages")
    try:
        _members.decode(data)  # ends at the first member that is no message, so the list below cannot grow without end
        items = _list.decode(data)
    except msgspec.ValidationError:
        raise WireError(codes.INVALID_REQUEST, "a batch may hold JSON-RPC messages only") from None
    except _UNREADABLE as error:
        raise WireError(codes.PARSE_ERROR, f"not valid JSON: {error}") from None
    if not items:
        raise WireError(codes.INVALID_REQUEST, "an empty batch")
    return [bytes(item) for item in items]


def read_map(raw: Raw | bytes | None) -> RawMap:
    """The members of a JSON object, values untouched. Raises WireError (-32602) for anything else.

    `None` reads as empty, and so does JSON's `null`, which some clients write for what they leave out.
    """
    if raw is None:
        return {}
    try:
        return _map.decode(raw)
    except _UNREADABLE:
        if bytes(raw).strip() == b"null":
            return {}
        raise WireError(codes.INVALID_PARAMS, "an object was expected here") from None


def try_map(raw: Raw | bytes | None) -> RawMap | None:
    """Like `read_map`, but None for anything that is not an object."""
    if raw is None:
        return None
    try:
        return _map.decode(raw)
    except _UNREADABLE:
        return None


def try_list(raw: Raw | bytes | None) -> list[Raw] | None:
    """The items of a JSON array, untouched, or None for anything else."""
    if raw is None:
        return None
    try:
        return _list.decode(raw)
    except _UNREADABLE:
        return None


def try_str(raw: Raw | bytes | None) -> str | None:
    """A JSON string's value, or None for anything else."""
    if raw is None:
        return None
    try:
        return _str.decode(raw)
    except _UNREADABLE:
        return None


def try_json(raw: Raw | bytes | None) -> object:
    """Any JSON value decoded, or None where it cannot be."""
    if raw is None:
        return None
    try:
        return msgspec.json.decode(raw)
    except _UNREADABLE:
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
    try:
        return encode(members)
    except UnicodeEncodeError:
        # A path or a name of the operating system that is no Unicode: an error about it must still get out.
        members["message"] = mending.clean(message)
        members.pop("data", None)
        return encode(members)
