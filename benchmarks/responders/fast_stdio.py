"""A newline-delimited JSON echo server on stdin and stdout: the stdio upstream of every speed measurement.

Reads as many bytes as the pipe holds, answers all whole lines of them, and writes the answers in one go. Both eras.

    python benchmarks/responders/fast_stdio.py
"""

from __future__ import annotations

import os

import msgspec
from echo_answers import answer, decode

_CHUNK = 1 << 18


def main() -> None:
    rest = b""
    while True:
        data = os.read(0, _CHUNK)
        if not data:
            return
        lines = (rest + data).split(b"\n")
        rest = lines.pop()
        out: list[bytes] = []
        for line in lines:
            if not line:
                continue
            try:
                request = decode(line)
            except msgspec.MsgspecError:
                continue  # junk gets no answer: the load generators check every answer that they expect
            if bytes(request.id):
                out.append(answer(request))
        if out:
            out.append(b"")
            _write_all(b"\n".join(out))


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()
