"""Processes of `mcp-remote` that hold no connection: a host believes them alive, and its calls hang. Reported, never ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import PurePath

from interlock.doctor import processes
from interlock.doctor.case import Machine
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.processes import Process
from interlock.model.stage import Stage
from interlock.wire.address import shown

_RUNTIMES = frozenset(("node", "bun", "deno", "mcp-remote", "node.exe", "bun.exe", "deno.exe"))
_SCRIPTS = frozenset(("mcp-remote", "mcp-remote.js", "mcp-remote.cmd"))
YOUNG_SECONDS = 30.0
"""A bridge that has just been started may not have connected yet."""


async def check(machine: Machine) -> list[Finding]:
    if not processes.can_tell():
        return [_finding("unknown", "processes and their connections cannot be looked at on this system")]
    bridges = bridges_among(await machine.processes())
    if not bridges:
        return [_finding("ok", "no process of mcp-remote runs")]
    counts = await asyncio.to_thread(processes.established, [process.pid for process in bridges])
    findings: list[Finding] = []
    live: list[int] = []
    for process in bridges:
        count = counts[process.pid]
        if count is None:
            findings.append(_finding("unknown", "mcp-remote of another user, not looked at", _where(process)))
        elif count or (process.age is not None and process.age < YOUNG_SECONDS):
            live.append(process.pid)
        else:
            findings.append(
                _finding(
                    "warning",
                    "mcp-remote without any established connection",
                    _where(process),
                    "It waits for a sign-in, is idle, or has lost its server without noticing; calls through it may never "
                    "be answered.",
                    f"Where a host's calls hang: end that process (kill {process.pid}) and restart the server in the host, "
                    "or let the host start `interlock bridge` (`interlock setup HOST URL`).",
                )
            )
    if live:
        pids = ", ".join(map(str, live))
        findings.append(
            _finding("ok", "mcp-remote with a connection, or just started: leave it alone", f"process {pids}")
        )
    return findings


def bridges_among(found: Iterable[Process]) -> list[Process]:
    """Those that are the bridge itself, and not `npm exec` or a shell above it."""
    matching = [process for process in found if _is_bridge(process.words)]
    parents = {process.parent for process in matching}
    return sorted((process for process in matching if process.pid not in parents), key=lambda process: process.pid)


def _is_bridge(words: tuple[str, ...]) -> bool:
    if len(words) < 2:
        return False
    names = [PurePath(word.replace("\\", "/")) for word in words[:6]]
    if names[0].name not in _RUNTIMES:
        return False
    return any(name.name in _SCRIPTS or "mcp-remote" in name.parts[:-1] for name in names)


def _where(process: Process) -> str:
    url = next((word for word in process.words if word.startswith(("http://", "https://"))), None)
    return f"process {process.pid}{f', for {shown(url)}' if url else ''}"


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(
        check="foreign-bridges", stage=Stage.DISCOVER, severity=severity, seen=seen, where=where, why=why, todo=todo
    )
