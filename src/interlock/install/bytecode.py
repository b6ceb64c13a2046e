"""Bytecode of a copy: made once when it is laid, so that every start is fast and none ever writes into the copy."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess

_HEADER = 16
"""Magic number, flags, source time, source size, four bytes each (PEP 552)."""
_COMPILE_SECONDS = 300.0


def take_along(source: str, target: str) -> None:
    """Copy the bytecode that lies beside `source`, where it is of this interpreter and of exactly this source."""
    try:
        cached = importlib.util.cache_from_source(source)
        with open(cached, "rb") as file:
            header = file.read(_HEADER)
        seen = os.stat(source)
    except (OSError, NotImplementedError):
        return
    fresh = (
        len(header) == _HEADER
        and header[:4] == importlib.util.MAGIC_NUMBER
        and header[4:8] == b"\0\0\0\0"  # checked by time and size, not by hash
        and header[8:12] == (int(seen.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little")
        and header[12:16] == (seen.st_size & 0xFFFFFFFF).to_bytes(4, "little")
    )
    if fresh:
        place = importlib.util.cache_from_source(target)
        os.makedirs(os.path.dirname(place), mode=0o700, exist_ok=True)
        shutil.copyfile(cached, place)


def complete(lib: str, python: str) -> None:
    """Compile what has no bytecode yet. A file that does not compile (a template, a later syntax) is left as it is."""
    subprocess.run(
        [python, "-I", "-S", "-m", "compileall", "-q", "-q", lib],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_COMPILE_SECONDS,
        check=False,
    )
