"""How a child process ended, and what that means in words a person can act on."""

from __future__ import annotations

import re
import signal as signals
from dataclasses import dataclass
from functools import cache
from typing import Literal

Cause = Literal["own", "requested", "stdout-closed", "stdin-closed"]
"""Why it ended: by itself, because we stopped it, or because it had closed a stream that it cannot do without."""


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of one process. Exactly one of `code` and `signal` is set (`code` always on Windows)."""

    code: int | None
    signal: int | None
    stderr_tail: str
    """The last lines it wrote to standard error, redacted and safe to show."""
    cause: Cause = "own"
    uptime: float = 0.0
    """Seconds from start to end."""
    forced: bool = False
    """True where it had to be killed because it ignored both the end of its input and SIGTERM."""


_SDK_MISMATCH = (
    "the server was written for another version of its MCP SDK than the one installed with it. Pin the SDK version "
    "that the server names in its own requirements (for example `uvx --with 'mcp<2' ...`), or update the server"
)

_NEEDS_VARIABLE = "it needs the environment variable {name}, which it was not given. Name {name} in the server's `env` in the manifest"

# (pattern in the last lines of stderr, what it means). The first that fits is taken: the specific ones come first.
# Named groups are put into the text.
_MEANINGS = (
    # Python, and its SDK. Version 2 of the SDK renamed much of what servers use.
    (r"AttributeError: .*\b(?:Server|FastMCP|MCPServer|ServerSession)\b.* has no attribute", _SDK_MISMATCH),
    (r"ImportError: cannot import name .* from '(?:mcp|fastmcp)[.']", _SDK_MISMATCH),
    (r"ModuleNotFoundError: No module named '(?:mcp|fastmcp)\.", _SDK_MISMATCH),
    (r"TypeError: .*\b(?:Server|FastMCP|MCPServer|ClientSession)\b.*unexpected keyword argument", _SDK_MISMATCH),
    (
        r"ModuleNotFoundError: No module named '(?P<name>[\w.]+)'",
        "the Python module {name!r} is not installed for the Python that runs the server. Install {name!r} for that "
        "Python, or start the server with the Python of its own virtual environment",
    ),
    (
        r"No module named (?P<name>[\w.]+)\s*$",
        "Python found no module {name!r} to run. Install {name!r} for the Python that the manifest names",
    ),
    (
        r"ImportError: cannot import name '(?P<name>\w{1,80})' from '(?P<module>[\w.]{1,120})'",
        "the Python module {module!r} has no {name!r}: it is there in another version than the server was written for",
    ),
    (r"ImportError: ", "Python could not import a part of the server; its last words on stderr say which"),
    (r"SyntaxError: ", "the server's code does not fit the version of Python or Node that runs it"),
    # Node and npm.
    (
        r"npm (?:ERR!|error) code (?:E404|ETARGET)|npm (?:ERR!|error) 404",
        "npm found no such package or version. Check its name in the manifest's command",
    ),
    (
        r"npm (?:ERR!|error) (?:code|errno|network|syscall).*"
        r"(?:ENOTFOUND|EAI_AGAIN|ETIMEDOUT|ECONNREFUSED|ECONNRESET|ENETUNREACH|ERR_SOCKET_TIMEOUT|network)",
        "npm could not reach its registry. Check the network; behind a proxy, name HTTPS_PROXY in the server's "
        "`env`. A server that is installed beforehand needs no network to start",
    ),
    (
        r"(?:SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_(?:VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT(?:_LOCALLY)?)"
        r"|CERTIFICATE_VERIFY_FAILED|invalid peer certificate)",
        "a TLS certificate is not trusted here. Behind a company's proxy, set NODE_EXTRA_CA_CERTS or SSL_CERT_FILE "
        "to its certificate",
    ),
    (r"npm (?:ERR!|error) code (?:EACCES|EPERM)", "npm may not write to its cache or install directory"),
    (r"npm (?:ERR!|error) code ENOSPC|ENOSPC: no space left|No space left on device", "the disk is full"),
    (r"npm (?:ERR!|error) code EBADENGINE|Unsupported engine", "the server needs another version of Node.js"),
    (
        r"Cannot find (?:module|package) '(?P<name>[\w@.:/\\ -]{1,200})'",
        "Node found no module {name!r}. Install the server's packages (`npm install`), or build it first",
    ),
    # uv and pip.
    (
        r"(?:Failed to fetch|error sending request for url|Could not connect|dns error"
        r"|Temporary failure in name resolution|Name or service not known|nodename nor servname)",
        "it could not reach the network. Check the connection; behind a proxy, name HTTPS_PROXY in the server's "
        "`env`",
    ),
    (
        r"No solution found when resolving|was not found in the package registry|No matching distribution found",
        "the package, or a version that fits the others, was not found. Check its name in the manifest's command",
    ),
    # What the server lacks.
    (
        r"EADDRINUSE|[Aa]ddress already in use|[Pp]ort (?P<port>\d+) is (?:already )?(?:in use|allocated)",
        "a port that it listens on is in use. Another copy of it may be running",
    ),
    (
        r"KeyError: '(?P<name>[A-Z][A-Z0-9_]{2,})'",
        _NEEDS_VARIABLE,
    ),
    (
        r"(?:[Ee]nvironment variable|[Ee]nv(?:ironment)? var)\W+(?P<name>[A-Z][A-Z0-9_]{2,})\b.{0,40}"
        r"(?:not set|required|missing|must be|undefined|not found)",
        _NEEDS_VARIABLE,
    ),
    (
        r"(?:[Mm]issing|[Rr]equired?s?|must set|[Pp]lease set|[Pp]lease provide)\b.{0,60}?\b"
        r"(?P<name>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b|\b(?P<other>[A-Z][A-Z0-9]*_[A-Z0-9_]+)\b.{0,40}"
        r"(?:is required|not set|is missing|must be set|is not defined|undefined)",
        _NEEDS_VARIABLE,
    ),
    (r"Cannot connect to the Docker daemon", "Docker is not running"),
    (r"JavaScript heap out of memory|MemoryError|Cannot allocate memory|std::bad_alloc", "it ran out of memory"),
    (
        r"(?:GLIBC_[\d.]+' not found|error while loading shared libraries|dyld.*Library not loaded)",
        "a system library that it needs is missing or too old",
    ),
    (
        r"(?:unrecognized arguments?|unknown option|unexpected argument|[Uu]sage: )",
        "it did not understand its arguments. Check `command` in the manifest",
    ),
    (r"(?:PermissionError|EACCES|Permission denied)", "it was denied access to a file or a port"),
    (r"(?:FileNotFoundError|ENOENT|No such file or directory)", "a file that it needs does not exist"),
)  # fmt: skip

_SIGNALS = {
    "SIGKILL": "killed from outside; where nobody did so, the system was out of memory",
    "SIGSEGV": "it crashed in native code (a memory fault)",
    "SIGBUS": "it crashed in native code (a memory fault)",
    "SIGILL": "it uses instructions that this processor does not have: it was built for another kind",
    "SIGABRT": "it gave up on an internal error",
    "SIGFPE": "it crashed in native code (an arithmetic fault)",
    "SIGSYS": "a sandbox did not allow one of its system calls",
    "SIGXCPU": "it used up its share of processor time",
    "SIGTERM": "it was told from outside to end",
    "SIGHUP": "it was told from outside to end",
    "SIGINT": "it was interrupted from outside",
    "SIGPIPE": "it wrote to a pipe that nobody reads any more",
}
_CODES = {
    0: "it ended as if its work were done, but a stdio server should run until its input ends. It may need an argument "
    "that selects stdio, or have stopped because a setting is missing",
    126: "a command that it starts may not be executed",
    127: "a command that it starts was not found. Its PATH may be shorter than that of your terminal",
    # NTSTATUS values, as Windows reports them.
    0xC0000005: "it crashed in native code (a memory fault)",
    0xC0000135: "a library (DLL) that it needs was not found",
    0xC000013A: "it was interrupted from outside",
}


def explain_exit(exit: Exit) -> str:
    """How it ended and, where its last words or its status tell, why and what to do. Starts small, has no full stop.

    Of the server's own text it holds names only, of modules and variables, so that none can pose as Interlock; its last
    lines are in `stderr_tail`.
    """
    if exit.cause == "requested":
        return "stopped by Interlock" + (", by force, because it did not end when asked" if exit.forced else "")
    how = _how(exit)
    meaning = _meaning(exit.stderr_tail)
    if meaning is not None:
        return f"{how}; probable cause: {meaning}"
    because = _from_status(exit)
    return f"{how}: {because}" if because else how


def _how(exit: Exit) -> str:
    if exit.cause in ("stdout-closed", "stdin-closed"):
        stream = "output" if exit.cause == "stdout-closed" else "input"
        return f"it closed its standard {stream} but went on running, so it was of no more use and was stopped"
    when = f"after {exit.uptime:.0f} s" if exit.uptime >= 2 else "right after its start"
    return f"{_signal_name(exit.signal)} {when}" if exit.signal is not None else f"exit code {exit.code} {when}"


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], str], ...]:
    # Not at import: it takes longer than all else that a start of Interlock does with this file.
    return tuple((re.compile(pattern, re.MULTILINE), text) for pattern, text in _MEANINGS)


def _meaning(tail: str) -> str | None:
    for pattern, text in _compiled():
        match = pattern.search(tail)
        if match is not None:
            found = {name: value for name, value in match.groupdict().items() if value is not None}
            if "other" in found:
                found.setdefault("name", found["other"])
            return text.format(**found)
    return None


def _from_status(exit: Exit) -> str | None:
    if exit.cause != "own":
        return None
    number = exit.signal
    if number is None and exit.code is not None:
        if exit.code in _CODES:
            return _CODES[exit.code]
        # A shell reports a command that a signal ended as 128 and the signal's number.
        number = exit.code - 128 if 128 < exit.code < 128 + 65 else None
    return _SIGNALS.get(_signal_name(number)) if number is not None else None


def _signal_name(number: int) -> str:
    try:
        return signals.Signals(number).name
    except ValueError:
        return f"signal {number}"
