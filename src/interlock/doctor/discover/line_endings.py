"""Scripts whose first line ends in CR LF: made on Windows, and on the other side nothing can start them."""

from __future__ import annotations

import shutil

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import shown
from interlock.doctor.starting import Target
from interlock.hosts.machine import Machine
from interlock.manifest.config import StdioTransport
from interlock.model.stage import Stage

CHECK = Check("line-endings", Stage.DISCOVER)


async def check(examination: Examination) -> list[Finding]:
    machine = examination.machine
    if machine.platform == "windows":
        return []
    return [finding for target in await examination.targets() for finding in _look(target, machine)]


def _look(target: Target, machine: Machine) -> list[Finding]:
    transport = target.transport
    if not isinstance(transport, StdioTransport):
        return []
    findings = []
    for word in transport.command[:3]:  # the program, or the script that it is told to run
        path = _file(word, transport, target, machine)
        if path is None:
            continue
        try:
            with open(path, "rb") as file:
                first = file.read(256).split(b"\n", 1)[0]
        except OSError:
            continue
        if first.startswith(b"#!") and first.endswith(b"\r"):
            findings.append(
                CHECK.found(
                    "problem", f"the lines of {shown(word)} end in CR LF", path,
                    f"The system looks for an interpreter named {shown(first[2:].decode('utf-8', 'replace').strip())}\\r, which "
                    "does not exist.",
                    f"`sed -i 's/\\r$//' {shown(path)}`; `git config core.autocrlf input` keeps it so.",
                    server=target.name, host=target.host,
                )
            )  # fmt: skip
    return findings


def _file(word: str, transport: StdioTransport, target: Target, machine: Machine) -> str | None:
    if "/" in word:
        return machine.real(word) if word.startswith("/") else str(transport.cwd / word)
    return shutil.which(word, path=target.environ.get("PATH")) if machine.root is None else None
