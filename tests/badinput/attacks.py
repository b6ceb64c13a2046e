"""The cases: for each number one bad message, from one side over one transport. The same seed and number give the same case."""

from __future__ import annotations

import json
from dataclasses import dataclass
from random import Random
from typing import Literal

from . import oracle
from .mutation import mutate
from .oracle import Due

Side = Literal["client-http", "client-stdio", "server-http", "server-stdio"]
SIDES: tuple[Side, ...] = ("client-http", "client-stdio", "server-http", "server-stdio")
WEIGHTS = (32, 26, 21, 21)
HUGE_EVERY = 10_000
OVERSIZED_REQUEST = 16 * 1024 * 1024 + 100
OVERSIZED_ANSWER = 64 * 1024 * 1024 + 100
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "b", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True, slots=True)
class Case:
    """`parts` are written one after the other, so that what is read may end anywhere."""

    number: int
    side: Side
    kind: str
    parts: list[bytes]
    due: Due = Due.EITHER
    id: int | str | None = None
    sound: bool | None = None
    """For servers: True where the client's call has to succeed, False where it has to fail, None where either is right."""
    modern: bool = True
    """For clients over HTTP: which headers it comes with. For servers: which of the two bad ones says it."""

    @property
    def data(self) -> bytes:
        return b"".join(self.parts)


def sides(seed: int, count: int) -> list[Side]:
    """The side of each case. Huge ones come for each side in turn (see `case`)."""
    chosen = Random(f"{seed}:sides").choices(SIDES, WEIGHTS, k=count)
    return [SIDES[number % HUGE_EVERY] if number % HUGE_EVERY < len(SIDES) else side for number, side in enumerate(chosen)]


def cut(random: Random, data: bytes) -> list[bytes]:
    """In pieces, most of the time in one."""
    if random.random() < 0.8 or len(data) < 2:
        return [data]
    places = sorted(random.randint(0, len(data)) for _ in range(random.randint(1, 4)))
    return [data[start:end] for start, end in zip([0, *places], [*places, len(data)], strict=True)]


def compact(message: dict[str, object]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def good_request(random: Random, id: int | str, modern: bool) -> dict[str, object]:
    """A request or notification as a client in order sends it."""
    kind = random.randrange(12)
    params: dict[str, object]
    if kind < 4:
        method, params = "tools/call", {"name": "good__echo", "arguments": {"text": "é\"\\", "n": [1, 2.5, {"a": None}]}}
    elif kind == 4:
        method, params = random.choice(["tools/list", "prompts/list", "resources/list", "resources/templates/list"]), {}
    elif kind == 5:
        method, params = "resources/read", {"uri": "good+file:///x"}
    elif kind == 6:
        method, params = "prompts/get", {"name": "good__ask", "arguments": {"a": "b"}}
    elif kind == 7:
        method, params = "completion/complete", {"ref": {"type": "ref/prompt", "name": "good__ask"}, "argument": {"name": "a", "value": ""}}
    elif kind == 8:
        method, params = ("server/discover", {}) if modern else ("logging/setLevel", {"level": "info"})
    elif kind == 9:
        method, params = "com.example/odd", {"x": 1}
    elif kind == 10:
        method, params = "notifications/cancelled", {"requestId": random.choice([id, 1, "x"]), "reason": "r"}
    else:
        # An answer to nothing that was asked.
        body = {"result": {"action": "accept"}} if random.random() < 0.5 else {"error": {"code": -1, "message": "no"}}
        return {"jsonrpc": "2.0", "id": random.choice([1, 2, "x"]), **body}
    if modern:
        params = {**params, "_meta": META}
    message: dict[str, object] = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    if method.startswith("notifications/"):
        del message["id"]
    return message


def client_http(number: int, random: Random) -> Case:
    modern = random.random() < 0.5
    message = good_request(random, number, modern)
    if random.random() < 0.12:
        return raw_http(number, random, compact(message), modern)
    kind, body = mutate(random, compact(message))
    due, id = oracle.due(body)
    params = message.get("params")
    name = None
    if isinstance(params, dict):
        found = params.get("name", params.get("uri"))
        name = found if isinstance(found, str) else None
    made = head_of(body, modern, str(message.get("method", "")), name, odd=random if random.random() < 0.2 else None)
    return Case(number, "client-http", kind, cut(random, made + body), due, id, modern=modern)


def head_of(body: bytes, modern: bool, method: str, name: str | None, odd: Random | None = None) -> bytes:
    """The request line and headers. The session of a legacy client is filled in for `$SESSION`."""
    lines = ["POST /mcp HTTP/1.1", "Host: 127.0.0.1", "Content-Type: application/json", "Accept: application/json, text/event-stream"]
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
            lines[at] = lines[at].partition(":")[0] + ": " + odd.choice(["", " ", "x", "é", "=?base64?%?=", "2026-07-28", "a" * 5000])
        else:
            lines.append(odd.choice(["X-Odd: 1", "Origin: http://evil.example", "Origin: null", "Cookie: a=b", "Expect: 100-continue"]))
    return ("\r\n".join(lines) + f"\r\nContent-Length: {len(body)}\r\n\r\n").encode("latin-1")


def raw_http(number: int, random: Random, body: bytes, modern: bool) -> Case:
    """Faults of HTTP itself. Any answer is right, or that the gateway hangs up; what is unfinished is ended by the client."""
    good = head_of(body, modern, "tools/list", None)
    made = random.choice(
        [
            good.replace(b"POST", b"P\x00ST"), good.replace(b"HTTP/1.1", b"HTTP/9.9"), good.replace(b"HTTP/1.1", b"HTTP/1.0") + body,
            good.replace(b"\r\n", b"\n") + body, b"\r\n\r\n" + good + body, good.replace(b"Content-Length: ", b"Content-Length: -"),
            good.replace(b"Content-Length: ", b"Content-Length: 9" * 30), good.replace(b"\r\n\r\n", b"\r\nContent-Length: 3\r\n\r\n") + body,
            good.replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n") + b"5\r\nhello\r\n0\r\n\r\n",
            good.replace(b"Content-Length", b"Transfer-Encoding: chunked\r\nX") + b"zz\r\n", good.replace(b"/mcp", b"/" + b"a" * 9000) + body,
            good.replace(b"\r\n\r\n", b"\r\nX: " + b"a" * 70_000 + b"\r\n\r\n") + body,
            good.replace(b"\r\n\r\n", b"\r\nx: y" * 400 + b"\r\n\r\n") + body, good.replace(b"Host: 127.0.0.1", b"Host: evil.example") + body,
            good.replace(b"Host: 127.0.0.1", b"Host: a\r\nHost: b") + body, good.replace(b"Accept", b"Acc ept") + body,
            good.replace(b"Accept", b"\x01Accept") + body, good[: random.randint(0, len(good))], good + body[: random.randint(0, len(body))],
            good + body + random.randbytes(30), good + body + good, good + body + good + body, random.randbytes(random.randint(1, 500)),
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + random.randbytes(200), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n", b"DELETE /mcp HTTP/1.1\r\nHost: localhost\r\nMcp-Session-Id: x\r\n\r\n",
            b"GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\nMcp-Session-Id: \xff\r\nLast-Event-ID: 9.9\r\n\r\n",
            b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET http://localhost/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", b"GET /healthz?" + b"x" * 100 + b" HTTP/1.1\r\n\r\n",
        ]
    )  # fmt: skip
    return Case(number, "client-http", "http", cut(random, made), Due.NOTHING, modern=modern)


def client_stdio(number: int, random: Random) -> Case:
    modern = random.random() < 0.3
    message = compact(good_request(random, number, modern))
    kind, line = mutate(random, message)
    lines = line.split(b"\n")
    dues = [oracle.due(each.removesuffix(b"\r")) for each in lines if each.removesuffix(b"\r")]
    # Of several lines only the first is judged; the others have to do no harm.
    due, id = dues[0] if dues else (Due.NOTHING, None)
    return Case(number, "client-stdio", kind, cut(random, line + b"\n"), due, id)


def answer_text(number: int) -> str:
    return f"answer {number} é"


def good_answer(number: int, id: int, modern: bool) -> bytes:
    result: dict[str, object] = {"content": [{"type": "text", "text": answer_text(number)}], "structuredContent": {"n": number}}
    if modern:
        result["resultType"] = "complete"
    return compact({"jsonrpc": "2.0", "id": id, "result": result})


NOTES = [
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$ID,"progress":1}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"x","progress":"y"}}',
    b'{"jsonrpc":"2.0","method":"notifications/progress"}',
    b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":7,"data":{"a":[]}}}',
    b'{"jsonrpc":"2.0","method":"notifications/message","params":[]}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":$ID}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
    b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":5}}',
    b'{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///x","_meta":7}}',
    b'{"jsonrpc":"2.0","method":"notifications/com.example/odd","params":{"_meta":null}}',
    b'{"jsonrpc":"2.0","method":""}',
    b'{"jsonrpc":"2.0","id":"q","method":"ping"}',
    b'{"jsonrpc":"2.0","id":"q","method":"ping","params":[]}',
    b'{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":7}',
    b'{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage"}',
    b'{"jsonrpc":"2.0","id":null,"method":"roots/list"}',
    b'{"jsonrpc":"2.0","id":"q","method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":999999999,"result":{}}',
    b'{"jsonrpc":"2.0","id":"999999999","error":{"code":1,"message":"x"}}',
    b'{"jsonrpc":"2.0","id":-1,"error":{}}',
]


def server_stdio(number: int, random: Random) -> Case:
    """Lines that a bad server answers a call with. `$ID` and `$ANSWER` are filled in when it is called."""
    modern = random.random() < 0.5
    kind = random.randrange(20)
    if kind < 3:
        notes = [random.choice(NOTES) for _ in range(random.choice([1, 3, 30]))]
        return Case(number, "server-stdio", "notes", cut(random, b"\n".join([*notes, b"$ANSWER", b""])), sound=True, modern=modern)
    if kind == 3:
        junk = [random.choice([b"Server started", b"", b"\r", b"\xff\xfe", b"[INFO] x", b"{", b"}", b"[1]", b"{}", b"null"]) for _ in range(4)]
        return Case(number, "server-stdio", "junk", cut(random, b"\n".join([*junk, b"$ANSWER", b""])), sound=True, modern=modern)
    if kind == 4:
        again = random.choice([b"$ANSWER", b'{"jsonrpc":"2.0","id":$ID,"error":{"code":1,"message":"x"}}', b'{"jsonrpc":"2.0","id":$ID}'])
        return Case(number, "server-stdio", "doubled", cut(random, b"$ANSWER\n" + again + b"\n"), sound=True, modern=modern)
    if kind == 5:
        ending = random.choice([b"\r\n", b" \n", b"\n\n", b"\r\r\n" if False else b"\n"])
        return Case(number, "server-stdio", "endings", cut(random, b" \t$ANSWER" + ending), sound=True, modern=modern)
    if kind == 6 and random.random() < 0.1:
        return Case(number, "server-stdio", "silence", [b""], sound=False, modern=modern)
    return Case(number, "server-stdio", "mutated", [b"$MUTATED\n"], sound=None, modern=modern)


def server_http(number: int, random: Random) -> Case:
    """A whole HTTP response of a bad server. `$ID` and `$ANSWER` are filled in when it is called."""
    modern = random.random() < 0.5
    kind = random.randrange(24)
    json_head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: $LENGTH\r\n\r\n"
    stream = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
    if kind < 3:
        notes = [random.choice(NOTES) for _ in range(random.choice([1, 3, 30]))]
        events = b"".join(b"data: " + note + b"\n\n" for note in notes)
        return Case(number, "server-http", "notes", [stream + events + b"data: $ANSWER\n\n"], sound=True, modern=modern)
    if kind < 6:
        odd = b"".join(
            random.choice(
                [b": comment\n", b"\n\n", b"retry: 5\n", b"retry: x\n", b"id: 1\n", b"id\n", b"event: x\ndata: {\n\n", b"data: junk\n\n", b"x: y\n"]
                + [b"data\n\n", b"event: message\n", b"\r", b"\r\n", b"data: {}\n\n", b"data: [1]\n\n", b"id: a\x00b\n", b"\xff\xfe\n"]
            )
            for _ in range(random.randint(1, 10))
        )  # fmt: skip
        made = stream + odd + b"\n\nevent: message\ndata: $ANSWER\n\n"
        return Case(number, "server-http", "events", cut(random, made), sound=True, modern=modern)
    if kind == 6:
        ending = random.choice([b"\r\n", b"\r", b"\n"])
        return Case(
            number, "server-http", "line ends", [stream + (b"data: $ANSWER" + ending + ending)], sound=True, modern=modern
        )  # fmt: skip
    if kind == 7:
        made = stream + random.choice([b"data: $ANSWER", b"data: {}\n\n", b"", b"data: \n\n", b"data: $ANSWER\n", b"event: x\ndata: $ANSWER\n\n"])
        return Case(number, "server-http", "stream without an answer", [made], sound=False, modern=modern)
    if kind < 11:
        statuses = [b"204 No", b"301 Moved", b"302 Found", b"400 Bad", b"404 No", b"405 No", b"406 No", b"415 No", b"429 Slow", b"500 Oops"]
        status = random.choice([*statuses, b"502 Bad", b"503 No", b"999 What", b"101 Switch", b"418 Pot"])
        body = random.choice([b"", b"<html>", b"{}", b'{"jsonrpc":"2.0"}', b"null", b'{"error":"x"}', b"\xff"])
        made = b"HTTP/1.1 " + status + b"\r\ncontent-type: text/html\r\nlocation: /x\r\nretry-after: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body)
        # A 404 or a 400 that names the session says that it is gone: the call may be made once more on a new one.
        return Case(number, "server-http", "status", [made + body], sound=False, modern=modern)
    if kind < 14:
        made = random.choice(
            [
                b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/9.9 200 OK\r\n\r\n", b"garbage\r\n\r\n", b"\x00\x01\x02",
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999\r\n\r\n$ANSWER",
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 5\r\n\r\n$ANSWER",
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: -5\r\n\r\n$ANSWER",
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
                b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\"",
                b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
                b"HTTP/1.1 abc OK\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 0\r\n\r\n",
                b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-type: application/json\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00",
            ]
        )  # fmt: skip
        return Case(number, "server-http", "http", cut(random, made), sound=False, modern=modern)
    if kind == 14:
        made = b"HTTP/1.1 100 Continue\r\n\r\n" * random.choice([1, 20]) + json_head + b"$ANSWER"
        return Case(number, "server-http", "interim", cut(random, made), sound=True, modern=modern)
    if kind == 15 and random.random() < 0.1:
        return Case(number, "server-http", "silence", [b"$SILENCE"], sound=False, modern=modern)
    if kind < 19:
        return Case(number, "server-http", "mutated", [stream + b"data: $MUTATED\n\n"], sound=None, modern=modern)
    return Case(number, "server-http", "mutated", [json_head + b"$MUTATED"], sound=None, modern=modern)


MAKERS = {"client-http": client_http, "client-stdio": client_stdio, "server-http": server_http, "server-stdio": server_stdio}


def case(seed: int, number: int, side: Side) -> Case:
    random = Random(f"{seed}:{number}")
    if number % HUGE_EVERY < len(SIDES):
        return oversized(number, side, random.random() < 0.5)
    return MAKERS[side](number, random)


def oversized(number: int, side: Side, modern: bool) -> Case:
    if side.startswith("server"):
        head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: $LENGTH\r\n\r\n"
        made = (head if side == "server-http" else "").encode() + b'{"jsonrpc":"2.0","id":$ID,"result":{"a":"$HUGE"}}\n'
        return Case(number, side, "oversized", [made], sound=False, modern=modern)
    body = b'{"jsonrpc":"2.0","id":%d,"method":"x","params":{"a":"' % number + b"x" * OVERSIZED_REQUEST + b'"}}'
    made = body + b"\n" if side == "client-stdio" else head_of(body, modern, "x", None) + body
    return Case(number, side, "oversized", [made], Due.ERROR, modern=modern)


def mutated_answer(seed: int, number: int, id: int, modern: bool) -> bytes:
    """The bad form of the answer to a call, on one line."""
    _, made = mutate(Random(f"{seed}:{number}:answer"), good_answer(number, id, modern))
    return made
