"""Answering a host's first message before the rest of Interlock is even imported.

Hosts wait for `initialize` or `server/discover` before they do anything else, and importing everything takes several times
as long as answering. What is said is the same as later (wire/hello.py), with what was last known of the servers.
Anything unusual is left for the ordinary way.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from interlock.wire import hello, revisions

MAX_FIRST_LINE = 1024 * 1024
POLL_MS = 20
"""How long the first message may take to be there. It nearly always is: hosts write it while the interpreter starts."""


class Greeting:
    """What was read of standard input already. `greeted` is the first line where it was answered; `rest` what came after."""

    def __init__(self, greeted: bytes = b"", rest: bytes = b"") -> None:
        self.greeted = greeted
        self.rest = rest


def greet(arguments: Sequence[str]) -> Greeting:
    """Answer the first message if it is there and is a plain greeting. Never raises, never loses input."""
    if sys.platform == "win32" or any(flag in arguments for flag in ("-h", "--help")):
        return Greeting()
    try:
        import select

        poll = select.poll()
        poll.register(0, select.POLLIN)
        if not poll.poll(POLL_MS):
            return Greeting()
        data = b""
        while b"\n" not in data and len(data) < MAX_FIRST_LINE:
            chunk = os.read(0, 65536)
            if not chunk:
                return Greeting(rest=data)
            data += chunk
    except (OSError, ValueError):
        return Greeting()
    line, newline, rest = data.partition(b"\n")
    answer = _answer(line, arguments) if newline else None
    if answer is None:
        return Greeting(rest=data)
    try:
        view = memoryview(answer + b"\n")
        while view:
            view = view[os.write(1, view) :]
    except OSError:
        return Greeting(rest=data)
    return Greeting(line, rest)


def _answer(line: bytes, arguments: Sequence[str]) -> bytes | None:
    try:
        message = json.loads(line)
        id, method, params = message["id"], message["method"], message["params"]
        if message["jsonrpc"] != "2.0" or type(id) not in (int, str) or len(str(id)) > 256 or "result" in message:
            return None
        extra, instructions = _last_known(arguments)
        if method == "initialize":
            version, capabilities = params["protocolVersion"], params.get("capabilities", {})
            if (
                not isinstance(version, str)
                or not isinstance(capabilities, dict)
                or revisions.VERSION_KEY in params.get("_meta", {})
            ):
                return None
            result = hello.initialize_result(revisions.pick_legacy(version), extra, instructions)
        elif method == "server/discover":
            meta = params["_meta"]
            if meta[revisions.VERSION_KEY] not in revisions.MODERN_VERSIONS or not isinstance(
                meta[revisions.CAPABILITIES_KEY], dict
            ):
                return None
            result = hello.discover_result(extra, instructions)
        else:
            return None
        answer = {"jsonrpc": "2.0", "id": id, "result": result}
        return json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def cache_file(arguments: Sequence[str]) -> str:
    """Where what is last known of the servers stands, for this command line in this directory."""
    import binascii

    home = home_of(arguments)
    # A bridge serves the same wherever it is started; manifests depend on the directory.
    where = "" if arguments[:1] == ["bridge"] else os.getcwd()
    key = "\0".join((where, *arguments)).encode("utf-8", "surrogateescape")
    return os.path.join(home, "hello", f"{binascii.crc32(key):08x}-{len(key)}.json")


def home_of(arguments: Sequence[str]) -> str:
    """Interlock's home for this command line, as cli/common.py works it out with more imports."""
    home = _option(arguments, "--home") or os.environ.get("INTERLOCK_HOME") or os.path.join("~", ".interlock")
    return os.path.abspath(os.path.expanduser(home))


def _option(arguments: Sequence[str], name: str) -> str | None:
    for place, argument in enumerate(arguments):
        if argument == name and place + 1 < len(arguments):
            return arguments[place + 1]
        if argument.startswith(name + "="):
            return argument[len(name) + 1 :]
    return None


def _last_known(arguments: Sequence[str]) -> tuple[dict[str, object], str | None]:
    try:
        with open(cache_file(arguments), encoding="utf-8") as file:
            known = json.load(file)
        extra, instructions = known["capabilities"], known["instructions"]
        if isinstance(extra, dict) and (instructions is None or isinstance(instructions, str)):
            return extra, instructions
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {}, None


def keep(arguments: Sequence[str], capabilities: bytes, instructions: str | None) -> None:
    """Remember for the next start. `capabilities` is a JSON object. Failing to is no fault."""
    import contextlib

    path = cache_file(arguments)
    text = json.dumps({"capabilities": json.loads(capabilities), "instructions": instructions}, ensure_ascii=False)
    with contextlib.suppress(OSError):
        try:
            with open(path, encoding="utf-8") as file:
                if file.read() == text:
                    return
        except OSError:
            pass
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        temporary = f"{path}.{os.getpid()}"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
