"""Cursor: `cursor-agent mcp list` (also `agent`) prints `NAME: STATE`. Told by third parties, and not tried here.

Whether it writes is unknown; watching ~/.cursor while it runs would tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from interlock.hosts.oracles.asked import Asked, OracleSays, Says
from interlock.hosts.oracles.running import Output, lines, program, run, shown, without_list
from interlock.hosts.reading import Reading

_LINE = re.compile(r"^(?P<name>[^\s:][^:]*): (?P<words>\S.*)$")


def ask(reading: Reading, seconds: float, known: Iterable[str]) -> Asked:
    agent = program(reading.machine, "cursor-agent")
    asked = Asked(host="cursor", command=("cursor-agent", "mcp", "list"), live=True)
    parsed(run([agent, "mcp", "list"], reading.machine, seconds), asked, known)
    return asked


def parsed(output: Output, asked: Asked, known: Iterable[str]) -> None:
    for line in lines(output.out):
        found = _LINE.match(line.strip())
        if found is not None:
            asked.servers[found["name"]] = OracleSays(state=_state(found["words"]), detail=shown(found["words"], known))
    if output.code is None:
        asked.trouble = "it did not answer in time"
    elif output.code != 0 or not asked.servers:
        asked.trouble = without_list(output, known)
    asked.partial = bool(asked.trouble)


def _state(words: str) -> Says:
    lowered = words.lower()
    if "approval" in lowered:
        return "pending"
    if "disabled" in lowered:
        return "disabled"
    if "login" in lowered or "auth" in lowered:
        return "needs-login"
    if "error" in lowered or "fail" in lowered:
        return "failed"
    return "connected" if lowered.startswith(("ready", "connected", "loaded")) else "untold"
