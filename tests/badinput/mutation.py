"""Making bad messages out of good ones: bytes changed, cut, doubled and nested. Everything follows from the generator's seed."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from random import Random

Mutation = Callable[[Random, bytes], bytes]

ODD = [
    "null", "true", "false", "0", "-0", "-1", "1.5", "1e999", "-1e-999", "9" * 30, "9" * 5000, '""', '"\\ud800"', '"\\udc00\\ud800"',
    '"\\u0000"', "[]", "{}", "[[]]", '{"":{}}', "NaN", "Infinity", "-Infinity", "01", "+1", ".5", "1.", "0x1", "undefined", "'x'",
    '"\\x"',
    '"\n"', '"\t"', '"\\', '"', "{", "}", "[", "]", ",", ":", "//", "/**/", "\\", '"\\u12"', '{"a":1,"a":2}', '{"a"}', "[1,]",
    '{"a":1,}',
]  # fmt: skip
VALUES: list[object] = [
    None, True, 0, -1, 1.0, 1.5, 2**53 + 1, 10**40, "", "x", "é\u2028\u0000", "\x1b[31m", "x" * 300, "../../etc/passwd", [], [[]], {},
    {"": {}}, {"__proto__": 1}, ["\ud800"], {"\udfff": "\ud800"}, [None] * 50,
]  # fmt: skip


def flip(random: Random, data: bytes) -> bytes:
    """A few bytes become others."""
    made = bytearray(data)
    for _ in range(random.randint(1, 6)):
        if made:
            made[random.randrange(len(made))] = random.randrange(256)
    return bytes(made)


def insert(random: Random, data: bytes) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + random.randbytes(random.randint(1, 20)) + data[at:]


def delete(random: Random, data: bytes) -> bytes:
    start = random.randint(0, len(data))
    return data[:start] + data[start + random.randint(1, 30) :]


def truncate(random: Random, data: bytes) -> bytes:
    return data[: random.randint(0, max(len(data) - 1, 0))]


def double(random: Random, data: bytes) -> bytes:
    """A stretch comes twice."""
    start, end = sorted((random.randint(0, len(data)), random.randint(0, len(data))))
    return data[:end] + data[start:end] + data[end:]


def swap(random: Random, data: bytes) -> bytes:
    one, two = sorted((random.randint(0, len(data)), random.randint(0, len(data))))
    return data[two:] + data[one:two] + data[:one]


def odd_token(random: Random, data: bytes) -> bytes:
    """A value becomes something that is no JSON, or hardly."""
    places = [at for at in range(len(data)) if data[at : at + 1] in (b":", b",", b"[")]
    if not places:
        return data
    at = random.choice(places) + 1
    end = at
    while end < len(data) and data[end : end + 1] not in (b",", b"}", b"]"):
        end += 1
    return data[:at] + random.choice(ODD).encode() + data[end:]


def odd_value(random: Random, data: bytes) -> bytes:
    """A member somewhere inside becomes a value of another kind, or goes, or gets another name."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return flip(random, data)
    nodes: list[dict[str, object] | list[object]] = []

    def walk(value: object) -> None:
        if isinstance(value, dict):
            nodes.append(value)
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            nodes.append(value)
            for each in value:
                walk(each)

    try:
        walk(message)
    except RecursionError:
        return flip(random, data)
    for _ in range(random.randint(1, 3)):
        node = random.choice(nodes) if nodes else None
        if isinstance(node, dict) and node:
            key = random.choice(sorted(node))
            act = random.randrange(4)
            if act == 0:
                del node[key]
            elif act == 1:
                node[
                    random.choice(["", "id", "method", "params", "result", "error", "_meta", "name", "uri", "x" * 300])
                ] = node[key]
            else:
                node[key] = random.choice(VALUES)
        elif isinstance(node, list):
            node.append(random.choice(VALUES))
    return json.dumps(message, separators=random.choice([(",", ":"), (", ", ": "), (" ,\n", " :\t")])).encode()


def repeat_member(random: Random, data: bytes) -> bytes:
    """A member of the envelope comes once more, with another value."""
    name = random.choice(["jsonrpc", "id", "method", "params", "result", "error", "_meta"])
    value = random.choice([*ODD[:20], '"2.0"', "1", '"tools/list"', "{}"])
    more = f'"{name}":{value}'.encode()
    return data[:1] + more + b"," + data[1:] if random.random() < 0.5 else data[:-1] + b"," + more + data[-1:]


def nest(random: Random, data: bytes) -> bytes:
    """A value becomes very deep."""
    depth = random.choice([90, 190, 201, 250, 500, 999, 1001, 3000, 20_000, 100_000])
    opened, closed = random.choice([(b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]"), (b"[[],", b"]")])
    levels = depth // (2 if len(closed) == 2 else 1)
    deep = opened * levels + b"1" + (closed * levels if random.random() < 0.8 else closed * random.randrange(levels))
    places = [at for at in range(len(data)) if data[at : at + 1] == b":"]
    at = random.choice(places) + 1 if places else len(data)
    end = at
    while end < len(data) and data[end : end + 1] not in (b",", b"}", b"]"):
        end += 1
    return data[:at] + deep + data[end:]


def widen(random: Random, data: bytes) -> bytes:
    """Many members or items, or long ones."""
    kind = random.randrange(5)
    if kind == 0:
        wide = b"[" + b"0," * random.choice([100, 10_000, 200_000]) + b"0]"
    elif kind == 1:
        wide = b"{" + b",".join(b'"%x":0' % number for number in range(random.choice([100, 3000, 50_000]))) + b"}"
    elif kind == 2:
        wide = b'"' + b"x" * random.choice([1000, 100_000, 1_000_000]) + b'"'
    elif kind == 3:
        wide = b'"' + b"\\ud83d" * random.choice([10, 10_000, 100_000]) + b'"'
    else:
        wide = b" " * random.choice([1000, 100_000]) + b"1"
    at = data.find(b":", random.randint(0, len(data)))
    return (
        data[: at + 1] + wide + b"," + data[at + 1 :]
        if random.random() < 0.2
        else data[:-1] + b',"x":' + wide + data[-1:]
    )


def encoding(random: Random, data: bytes) -> bytes:
    """Bytes that are not the UTF-8 that they should be."""
    kind = random.randrange(7)
    if kind == 0:
        return b"\xef\xbb\xbf" + data
    if kind == 1:
        return data.decode("utf-8", "replace").encode("utf-16")
    if kind == 2:
        return data.decode("utf-8", "replace").encode("utf-32")
    if kind == 3:
        return gzip.compress(data, mtime=0)
    bad = [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xe2\x82", b"\x80"]
    at = data.find(b'"', random.randint(0, len(data)))
    return data[: at + 1] + random.choice(bad) + data[at + 1 :]


def spaced(random: Random, data: bytes) -> bytes:
    """White space and line breaks between tokens."""
    space = random.choice([b" ", b"\n", b"\r\n", b"\t", b"\r", b"\x0b", b"\x00", b"\xc2\xa0"])
    return data.replace(b",", space + b"," + space).replace(b":", b":" + space, random.randint(0, 5))


def joined(random: Random, data: bytes) -> bytes:
    """More than one message where one is due."""
    between = random.choice([b"", b" ", b",", b"\r", b"\x00", b"\x1e"])
    return data + between + (data if random.random() < 0.5 else data[: random.randint(0, len(data))])


def batch(random: Random, data: bytes) -> bytes:
    kind = random.randrange(6)
    if kind == 0:
        return b"[]"
    if kind == 1:
        return b"[" + data + b"]"
    if kind == 2:
        return b"[" + b",".join([data] * random.choice([2, 50, 1001])) + b"]"
    if kind == 3:
        return b"[[" + data + b"]]"
    if kind == 4:
        return b"[" + data + b",1," + data + b"]"
    return b"[" + b"1," * random.choice([10, 100_000]) + b"1]"


def noise(random: Random, data: bytes) -> bytes:
    """Nothing of the message is left."""
    kind = random.randrange(4)
    if kind == 0:
        return random.randbytes(random.randint(0, 200))
    if kind == 1:
        return "".join(
            random.choice('{}[]",:\\0123456789.eE+-truefalsn \n') for _ in range(random.randint(0, 200))
        ).encode()
    if kind == 2:
        return random.choice([b"", b" ", b"{", b"}", b"null", b"1", b'"x"', b"true", b"[", b"{}", b"\x00", b"\xff"])
    return random.choice(
        [b"Server started", b"GET / HTTP/1.1", b"Content-Length: 20", b"data: {}", b"<html>", b"%PDF-1.4", b"\x7fELF"]
    )


MUTATIONS: tuple[Mutation, ...] = (
    flip, insert, delete, truncate, double, swap, odd_token, odd_token, odd_value, odd_value, odd_value, repeat_member, nest, encoding,
    spaced, joined, batch, noise,
)  # fmt: skip
RARE: tuple[Mutation, ...] = (widen,)


def mutate(random: Random, data: bytes) -> tuple[str, bytes]:
    """A bad form of a good message, and what was done to it."""
    if random.random() < 0.02:
        chosen = random.choice(RARE)
        return chosen.__name__, chosen(random, data)
    chosen = random.choice(MUTATIONS)
    made = chosen(random, data)
    if random.random() < 0.15:
        again = random.choice(MUTATIONS)
        return f"{chosen.__name__}+{again.__name__}", again(random, made)
    return chosen.__name__, made
