"""What bad servers answer a call with: lines on stdio, or whole HTTP responses.

`$ID` stands for the request's id, `$ANSWER` for a sound answer, `$MUTATED` for one that was made bad, `$LENGTH` for the
length of the body, `$HUGE` for more bytes than are allowed. They are filled in when the call comes.
"""

from __future__ import annotations

from random import Random

from .cases import Case, Side, compact, cut
from .mutation import mutate

OVERSIZED = 64 * 1024 * 1024 + 100


def answer_text(number: int) -> str:
    return f"answer {number} é"


def good_answer(number: int, id: int, modern: bool) -> bytes:
    result: dict[str, object] = {
        "content": [{"type": "text", "text": answer_text(number)}],
        "structuredContent": {"n": number},
    }
    if modern:
        result["resultType"] = "complete"
    return compact({"jsonrpc": "2.0", "id": id, "result": result})


def mutated_answer(seed: int, number: int, id: int, modern: bool) -> bytes:
    """The bad form of the answer to a call."""
    _, made = mutate(Random(f"{seed}:{number}:answer"), good_answer(number, id, modern))
    return made


_V = b'{"jsonrpc":"2.0",'
NOTES = [
    _V + b'"method":"notifications/progress","params":{"progressToken":$ID,"progress":1}}',
    _V + b'"method":"notifications/progress","params":{"progressToken":"x","progress":"y"}}',
    _V + b'"method":"notifications/progress"}',
    _V + b'"method":"notifications/message","params":{"level":7,"data":{"a":[]}}}',
    _V + b'"method":"notifications/message","params":[]}',
    _V + b'"method":"notifications/cancelled","params":{"requestId":$ID}}',
    _V + b'"method":"notifications/cancelled","params":{"requestId":{}}}',
    _V + b'"method":"notifications/resources/updated","params":{"uri":5}}',
    _V + b'"method":"notifications/resources/updated","params":{"uri":"file:///x","_meta":7}}',
    _V + b'"method":"notifications/com.example/odd","params":{"_meta":null}}',
    _V + b'"method":""}',
    _V + b'"id":"q","method":"ping"}',
    _V + b'"id":"q","method":"ping","params":[]}',
    _V + b'"id":"q","method":"elicitation/create","params":7}',
    _V + b'"id":"q","method":"sampling/createMessage"}',
    _V + b'"id":null,"method":"roots/list"}',
    _V + b'"id":"q","method":"tools/list"}',
    _V + b'"id":999999999,"result":{}}',
    _V + b'"id":"999999999","error":{"code":1,"message":"x"}}',
    _V + b'"id":-1,"error":{}}',
]
"""What may be said beside an answer, most of it wrong. None of it may cost the answer."""
JUNK = [b"Server started", b"", b"\r", b"\xff\xfe", b"[INFO] x", b"{", b"}", b"[1]", b"{}", b"null"]
AGAIN = [b"$ANSWER", _V + b'"id":$ID,"error":{"code":1,"message":"x"}}', _V + b'"id":$ID}']


def notes(random: Random) -> list[bytes]:
    return [random.choice(NOTES) for _ in range(random.choice([1, 3, 30]))]


def over_stdio(number: int, random: Random) -> Case:
    modern = random.random() < 0.5
    sound: bool | None = True
    kind = random.randrange(20)
    if kind < 3:
        name, made = "notes", b"\n".join([*notes(random), b"$ANSWER", b""])
    elif kind == 3:
        name, made = "junk", b"\n".join([*(random.choice(JUNK) for _ in range(4)), b"$ANSWER", b""])
    elif kind == 4:
        name, made = "doubled", b"$ANSWER\n" + random.choice(AGAIN) + b"\n"
    elif kind == 5:
        name, made = "endings", b" \t$ANSWER" + random.choice([b"\r\n", b" \n", b"\n\n", b"\n"])
    elif kind == 6 and random.random() < 0.1:
        name, made, sound = "silence", b"", False
    else:
        name, made, sound = "mutated", b"$MUTATED\n", None
    return Case(number, "server-stdio", name, cut(random, made) if sound else [made], sound=sound, modern=modern)


_JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
_JSON_BODY = _JSON + b"connection: close\r\ncontent-length: $LENGTH\r\n\r\n"
_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
ODD_EVENTS = [
    b": comment\n", b"\n\n", b"retry: 5\n", b"retry: x\n", b"id: 1\n", b"id\n", b"event: x\ndata: {\n\n", b"data: junk\n\n", b"x: y\n",
    b"data\n\n", b"event: message\n", b"\r", b"\r\n", b"data: {}\n\n", b"data: [1]\n\n", b"id: a\x00b\n", b"\xff\xfe\n",
]  # fmt: skip
NO_ANSWER = [b"data: $ANSWER", b"data: {}\n\n", b"", b"data: \n\n", b"data: $ANSWER\n", b"event: x\ndata: $ANSWER\n\n"]
STATUSES = [
    b"204 No", b"301 Moved", b"302 Found", b"400 Bad", b"404 No", b"405 No", b"406 No", b"415 No", b"429 Slow", b"500 Oops", b"502 Bad",
    b"503 No", b"999 What", b"101 Switch", b"418 Pot",
]  # fmt: skip
BODIES = [b"", b"<html>", b"{}", b'{"jsonrpc":"2.0"}', b"null", b'{"error":"x"}', b"\xff"]
BAD_HTTP = [
    b"",
    b"HTTP/1.1 200 OK\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/9.9 200 OK\r\n\r\n",
    b"garbage\r\n\r\n",
    b"\x00\x01\x02",
    _JSON + b"content-length: 99999\r\n\r\n$ANSWER",
    _JSON + b"connection: close\r\ncontent-length: 5\r\n\r\n$ANSWER",
    _JSON + b"content-length: -5\r\n\r\n$ANSWER",
    _JSON + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
    _JSON + b'transfer-encoding: chunked\r\n\r\n5\r\n{"a"',
    b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000 + b"\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
    b"HTTP/1.1 abc OK\r\n\r\n",
    _JSON + b"connection: close\r\ncontent-length: 0\r\n\r\n",
    _JSON + b"content-encoding: gzip\r\nconnection: close\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00",
]


def over_http(number: int, random: Random) -> Case:
    modern = random.random() < 0.5
    sound: bool | None = True
    kind = random.randrange(24)
    if kind < 3:
        events = b"".join(b"data: " + note + b"\n\n" for note in notes(random))
        name, made = "notes", _STREAM + events + b"data: $ANSWER\n\n"
    elif kind < 6:
        events = b"".join(random.choice(ODD_EVENTS) for _ in range(random.randint(1, 10)))
        name, made = "events", _STREAM + events + b"\n\nevent: message\ndata: $ANSWER\n\n"
    elif kind == 6:
        name, made = "line ends", _STREAM + b"data: $ANSWER" + 2 * random.choice([b"\r\n", b"\r", b"\n"])
    elif kind == 7:
        name, made, sound = "stream without an answer", _STREAM + random.choice(NO_ANSWER), False
    elif kind < 11:
        body = random.choice(BODIES)
        head = (
            b"content-type: text/html\r\nlocation: /x\r\nretry-after: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
            % len(body)
        )
        # A 404 says that the session is gone: then the call is made once more on a new one, and answered the same way.
        name, made, sound = "status", b"HTTP/1.1 " + random.choice(STATUSES) + b"\r\n" + head + body, False
    elif kind < 14:
        name, made, sound = "http", random.choice(BAD_HTTP), False
    elif kind == 14:
        name, made = "interim", b"HTTP/1.1 100 Continue\r\n\r\n" * random.choice([1, 20]) + _JSON_BODY + b"$ANSWER"
    elif kind == 15 and random.random() < 0.1:
        name, made, sound = "silence", b"$SILENCE", False
    else:
        name, made, sound = "mutated", random.choice([_STREAM + b"data: $MUTATED\n\n", _JSON_BODY + b"$MUTATED"]), None
    return Case(
        number,
        "server-http",
        name,
        [made] if b"$" in made and sound is None else cut(random, made),
        sound=sound,
        modern=modern,
    )


def huge(number: int, side: Side, modern: bool) -> Case:
    head = _JSON_BODY if side == "server-http" else b""
    return Case(
        number,
        side,
        "oversized",
        [head + b'{"jsonrpc":"2.0","id":$ID,"result":{"a":"$HUGE"}}\n'],
        sound=False,
        modern=modern,
    )
