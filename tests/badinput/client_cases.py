"""What bad clients send: mutated messages in HTTP that is in order, HTTP that is not, and lines on stdio."""

from __future__ import annotations

from random import Random

from . import oracle
from .cases import Case, Side, compact, cut
from .mutation import mutate
from .oracle import Due

OVERSIZED = 16 * 1024 * 1024 + 100
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "b", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
CALL = ("tools/call", {"name": "good__echo", "arguments": {"text": 'é"\\', "n": [1, 2.5, {"a": None}]}})
REQUESTS: list[tuple[str, dict[str, object]]] = [
    *([CALL] * 4),
    ("tools/list", {}),
    ("prompts/list", {}),
    ("resources/list", {}),
    ("resources/read", {"uri": "good+file:///x"}),
    ("prompts/get", {"name": "good__ask", "arguments": {"a": "b"}}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "good__ask"}, "argument": {"name": "a", "value": ""}},
    ),
    ("server/discover", {}),
    ("logging/setLevel", {"level": "info"}),
    ("com.example/odd", {"x": 1}),
]


def good_message(random: Random, id: int, modern: bool) -> dict[str, object]:
    """A request, a notification or a response as a client in order sends it."""
    kind = random.randrange(14)
    if kind == 0:  # an answer to nothing that was asked
        body = {"result": {"action": "accept"}} if random.random() < 0.5 else {"error": {"code": -1, "message": "no"}}
        return {"jsonrpc": "2.0", "id": random.choice([1, 2, "x"]), **body}
    message: dict[str, object] = {"jsonrpc": "2.0", "id": id}
    if kind == 1:
        del message["id"]
        method, params = "notifications/cancelled", {"requestId": random.choice([id, 1, "x"]), "reason": "r"}
    else:
        method, params = random.choice(REQUESTS)
    return {**message, "method": method, "params": {**params, "_meta": META} if modern else params}


def head(body: bytes, modern: bool, method: str, name: str | None, odd: Random | None = None) -> bytes:
    """The request line and headers; with `odd` one of them is not as it should be. `$SESSION` stands for a legacy session."""
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    ]
    if modern:
        lines += ["MCP-Protocol-Version: 2026-07-28", f"Mcp-Method: {method}"]
        if name is not None:
            lines.append(f"Mcp-Name: {name}")
    else:
        lines += ["Mcp-Session-Id: $SESSION", "MCP-Protocol-Version: 2025-11-25"]
    if odd is not None:
        act = odd.randrange(4)
        at = odd.randrange(3, len(lines))
        if act == 0:
            del lines[at]
        elif act == 1:
            lines.append(lines[at])
        elif act == 2:
            lines[at] = (
                lines[at].partition(":")[0]
                + ": "
                + odd.choice(["", " ", "x", "é", "=?base64?%?=", "2026-07-28", "a" * 5000])
            )
        else:
            lines.append(
                odd.choice(
                    ["X-Odd: 1", "Origin: http://evil.example", "Origin: null", "Cookie: a=b", "Expect: 100-continue"]
                )
            )
    return ("\r\n".join(lines) + f"\r\nContent-Length: {len(body)}\r\n\r\n").encode("latin-1")


def over_http(number: int, random: Random) -> Case:
    modern = random.random() < 0.5
    message = good_message(random, number, modern)
    if random.random() < 0.12:
        made = bad_http(random, compact(message), modern)
        return Case(number, "client-http", "http", cut(random, made), Due.NOTHING, modern=modern)
    kind, body = mutate(random, compact(message))
    due, id = oracle.due(body)
    params = message.get("params")
    name = params.get("name", params.get("uri")) if isinstance(params, dict) else None
    odd = random if random.random() < 0.2 else None
    made = head(body, modern, str(message.get("method", "")), name, odd) + body
    return Case(number, "client-http", kind, cut(random, made), due, id, modern=modern)


def bad_http(random: Random, body: bytes, modern: bool) -> bytes:
    """Faults of HTTP itself. Any answer is right, or that the gateway hangs up; what is unfinished is ended by the client."""
    good = head(body, modern, "tools/list", None)
    end = b"\r\n\r\n"
    kinds = [
        good.replace(b"POST", b"P\x00ST"),
        good.replace(b"HTTP/1.1", b"HTTP/9.9"),
        good.replace(b"HTTP/1.1", b"HTTP/1.0") + body,
        good.replace(b"\r\n", b"\n") + body,
        b"\r\n\r\n" + good + body,
        good.replace(b"Content-Length: ", b"Content-Length: -"),
        good.replace(b"Content-Length: ", b"Content-Length: 9" * 30),
        good.replace(end, b"\r\nContent-Length: 3" + end) + body,
        good.replace(end, b"\r\nTransfer-Encoding: chunked" + end) + b"5\r\nhello\r\n0\r\n\r\n",
        good.replace(b"Content-Length", b"Transfer-Encoding: chunked\r\nX") + b"zz\r\n",
        good.replace(b"/mcp", b"/" + b"a" * 9000) + body,
        good.replace(end, b"\r\nX: " + b"a" * 70_000 + end) + body,
        good.replace(end, b"\r\nx: y" * 400 + end) + body,
        good.replace(b"Host: 127.0.0.1", b"Host: evil.example") + body,
        good.replace(b"Host: 127.0.0.1", b"Host: a\r\nHost: b") + body,
        good.replace(b"Accept", b"Acc ept") + body,
        good.replace(b"Accept", b"\x01Accept") + body,
        good[: random.randint(0, len(good))],
        good + body[: random.randint(0, len(body))],
        good + body + random.randbytes(30),
        good + body + good,
        good + body + good + body,
        random.randbytes(random.randint(1, 500)),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + random.randbytes(200),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: x\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: \xff\r\nLast-Event-ID: 9.9\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /healthz?" + b"x" * 100 + b" HTTP/1.1\r\n\r\n",
    ]
    return random.choice(kinds)


def over_stdio(number: int, random: Random) -> Case:
    modern = random.random() < 0.3
    kind, line = mutate(random, compact(good_message(random, number, modern)))
    lines = [each.removesuffix(b"\r") for each in line.split(b"\n")]
    dues = [oracle.due(each) for each in lines if each]
    # Of several lines only the first is judged; the others have to do no harm.
    due, id = dues[0] if dues else (Due.NOTHING, None)
    return Case(number, "client-stdio", kind, cut(random, line + b"\n"), due, id)


def huge(number: int, side: Side, modern: bool) -> Case:
    body = b'{"jsonrpc":"2.0","id":%d,"method":"x","params":{"a":"' % number + b"x" * OVERSIZED + b'"}}'
    made = body + b"\n" if side == "client-stdio" else head(body, modern, "x", None) + body
    return Case(number, side, "oversized", [made], Due.ERROR, modern=modern)
