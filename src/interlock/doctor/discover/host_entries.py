"""Which AI hosts of this machine have an entry for the server, and whether that entry will last and binds a session."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import PurePath

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.host_files import Entry, is_absolute
from interlock.install.entries import same_url
from interlock.install.places import Places
from interlock.model.stage import Stage
from interlock.wire.address import shown

_PASSING = re.compile(
    r"(?:^|[/\\])(?:_npx|\.npm|\.cache|uv[/\\]archive-v\d+|site-packages|Cellar|[Tt]e?mp|v?\d+\.\d+(?:\.\d+)?)(?:[/\\]|$)"
)
"""Folders that an upgrade or a clean-up takes away: package caches, and any that carries a version."""
_FOREIGN = ("mcp-remote", "supergateway", "mcp-proxy", "mcp-remote-client")


async def check(case: Case) -> list[Finding]:
    entries = await case.machine.entries()
    findings = [finding for entry in entries for finding in _look(entry, case)]
    findings += _twice([entry for entry in entries if entry.state == "effective" and _bridges(entry, case)])
    if not findings:
        findings.append(
            _finding(
                "note",
                "no AI host that is known here has an entry for it",
                todo="`interlock setup HOST URL` makes one.",
            )
        )
    return findings


def _look(entry: Entry, case: Case) -> Iterator[Finding]:
    place = f"{entry.host}: {entry.file}, `{_printable(entry.name)}`"
    if same_url(entry.url, case.url):
        yield from _native(entry, case, place)
    elif _is_ours(entry):
        if any(same_url(word, case.url) for word in entry.command) or case.name in entry.command:
            yield from _ours(entry, case, place, "starts `interlock bridge` for it")
        elif "connect" in entry.command[1:3] and case.declared is not None:
            yield from _ours(entry, case, place, "starts `interlock connect`, which serves it")
    elif any(same_url(word, case.url) for word in entry.command):
        other = next((name for name in _FOREIGN if any(_names(word, name) for word in entry.command)), "another bridge")
        yield _finding(
            "note", f"{entry.host} reaches it through {other}", place,
            "Two bridges keep two grants. Where a server ends the grant of a refresh token that is used twice, "
            "a bridge without a lock across processes may end yours.",
            "Nothing, if that is what you want; else take that entry out and run `interlock setup`.",
        )  # fmt: skip


def _bridges(entry: Entry, case: Case) -> bool:
    """It starts a bridge for this very server, ours or another's."""
    return entry.url is None and any(same_url(word, case.url) for word in entry.command)


def _twice(bridges: list[Entry]) -> Iterator[Finding]:
    """Two names of one server in one host: every tool is there twice, and nothing says which one a model takes."""
    for host in dict.fromkeys(entry.host for entry in bridges):
        mine = [entry for entry in bridges if entry.host == host]
        if len(mine) > 1:
            names = ", ".join(f"`{_printable(entry.name)}` ({entry.file}:{entry.line})" for entry in mine)
            yield _finding(
                "warning", f"{len(mine)} entries of {host} start a bridge for it", names,
                "Its tools appear once for each, and each starts processes of its own.", "Take all but one out.",
            )  # fmt: skip


def _native(entry: Entry, case: Case, place: str) -> Iterator[Finding]:
    binds = bool(case.transport.session_headers or case.transport.replay)
    yield _finding(
        "warning" if binds else "note", f"{entry.host} also connects to it by itself, without a bridge", place,
        "Calls on that way carry no session binding, so what they write has no author." if binds
        else "That way has no verdicts, and a sign-in of its own.",
        "Write through the bridge; take the entry out where it is not needed.",
    )  # fmt: skip
    if entry.literal_headers:
        yield _finding(
            "warning", f"the value of {', '.join(entry.literal_headers)} stands in the host's file", place,
            "Whoever reads the file, a backup or a repository has the credential.",
            "Replace the credential, and keep it in an environment variable or a 0600 file (`auth: token`, or --token-env "
            "and --token-file).",
        )  # fmt: skip


def _ours(entry: Entry, case: Case, place: str, what: str) -> Iterator[Finding]:
    program = entry.command[0]
    launcher = Places(case.machine.home).launcher
    found = program if is_absolute(program) else shutil.which(program, path=case.machine.environ.get("PATH"))
    if found is None or not os.path.exists(found):
        yield _finding(
            "problem", f"{entry.host} {what}, and the program does not exist: {_printable(program)}", place,
            "The host shows the server as broken.", f"Let the entry start {launcher}.",
        )  # fmt: skip
    elif os.path.realpath(found) != os.path.realpath(launcher) and (match := _PASSING.search(found)) is not None:
        yield _finding(
            "warning", f"{entry.host} {what} from a path that an upgrade takes away: {_printable(found)}", place,
            f"`{match[0].strip('/')}` in it belongs to one version or to a cache.", f"Let the entry start {launcher}.",
        )  # fmt: skip
    elif not is_absolute(program):
        yield _finding(
            "note", f"{entry.host} {what} by the bare name `{_printable(program)}`", place,
            "Hosts that start from a desktop often have another PATH than your shell.",
            f"Let the entry start {launcher}.",
        )  # fmt: skip
    else:
        yield _finding("ok", f"{entry.host} {what} ({_printable(found)})", place)


def _is_ours(entry: Entry) -> bool:
    return bool(entry.command) and PurePath(entry.command[0].replace("\\", "/")).name.lower() in (
        "interlock", "interlock.exe", "interlock.cmd",
    )  # fmt: skip


def _names(word: str, program: str) -> bool:
    base = PurePath(word.replace("\\", "/")).name
    return base == program or base.startswith((f"{program}@", f"{program}."))


def _printable(text: str) -> str:
    if text.startswith(("http://", "https://")):
        return shown(text)
    return "".join(letter if letter.isprintable() else "?" for letter in text[:200])


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(
        check="host-entries", stage=Stage.DISCOVER, severity=severity, seen=seen, where=where, why=why, todo=todo
    )
