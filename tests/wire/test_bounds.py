"""The bounds fit each other, and what the specification allows fits into them."""

from __future__ import annotations

from interlock.wire import bounds
from interlock.wire.messages import Kind, parse


def test_how_the_bounds_relate() -> None:
    assert bounds.MAX_REQUEST_BYTES <= bounds.MAX_MESSAGE_BYTES
    assert bounds.MAX_MESSAGE_BYTES >= 5 * 1024 * 1024 * 4 // 3, "a 5 MB binary in base64 has to fit"
    assert bounds.MAX_HEADER_BYTES > 4 * bounds.MAX_EVENT_ID_BYTES
    assert bounds.MAX_DEPTH < 900, "the JSON reader gives up near 1,000, less the depth of its callers"
    assert bounds.MAX_TOKEN_BYTES > bounds.MAX_ID_LENGTH


def test_a_large_ordinary_answer_passes() -> None:
    rows = b",".join(b'{"id":%d,"name":"row","ok":true,"score":0.5}' % number for number in range(100_000))
    message = parse(b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"rows":[' + rows + b"]}}}")
    assert message.kind is Kind.RESULT
    assert len(bytes(message.body)) > 4_000_000
