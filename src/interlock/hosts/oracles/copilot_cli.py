"""Copilot CLI: `copilot mcp list --json` names the servers, with their source; nothing is started.

It writes: on its first run it unpacks itself below the cache folder, and each run leaves a log in ~/.copilot/logs. Its
configuration files stay. Observed with 1.0.102.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from interlock.hosts.oracles.asked import Asked, OracleSays
from interlock.hosts.oracles.running import Output, program, run, shown
from interlock.hosts.plugins.files import inner, text_of
from interlock.hosts.reading import Reading


def ask(reading: Reading, seconds: float, known: Iterable[str]) -> Asked:
    copilot = program(reading.machine, "copilot")
    output = run([copilot, "mcp", "list", "--json"], reading.machine, seconds)
    asked = Asked(host="copilot-cli", command=("copilot", "mcp", "list", "--json"))
    parsed(output, asked, known)
    return asked


def parsed(output: Output, asked: Asked, known: Iterable[str]) -> None:
    start = output.out.find("{")
    try:
        top, _ = json.JSONDecoder().raw_decode(output.out[start:]) if start >= 0 else (None, 0)
    except ValueError:
        top = None
    if not isinstance(top, dict):
        asked.refuses = output.refused
        late = output.code is None
        asked.trouble = "it did not answer in time" if late else shown(output.both, known) or "it printed no list"
        return
    for name, each in inner(top, "mcpServers").items():
        raw = inner(each)
        args = raw.get("args")
        words = [text_of(raw.get("command")), *(map(str, args) if isinstance(args, list) else ())]
        asked.servers[name] = OracleSays(
            state="enabled" if raw.get("enabled") is not False else "disabled",
            scope=text_of(raw.get("source")),
            runs=shown(text_of(raw.get("url")) or " ".join(words), known),
        )
    asked.notes += [shown(line, known) for line in output.err.splitlines() if line.strip()][:20]
