"""OpenCode: `opencode mcp list` starts the servers, `opencode debug config` shows what its files come to.

It writes: a database, a log and locks below ~/.local, a .gitignore in its folder of configuration, and `$schema` into each
configuration file, the project's too, that begins with `{` and has none. Observed with 1.18.33.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable

from interlock.hosts.oracles.asked import Asked, OracleSays, Says
from interlock.hosts.oracles.running import Output, lines, program, run, shown
from interlock.hosts.plugins.files import inner, text_of
from interlock.hosts.reading import Reading

_LINE = re.compile(r"^●\s+(?P<mark>\S) (?P<name>.+?) (?P<state>connected|failed|disabled|needs [a-z ]+)\b.*$")
_MORE = re.compile(r"^│\s{2,}(?P<words>\S.*)$")


def ask(reading: Reading, seconds: float, known: Iterable[str]) -> Asked:
    opencode = program(reading.machine, "opencode")
    asked = Asked(host="opencode", command=("opencode", "mcp", "list"), live=True)
    until = time.monotonic() + seconds
    config = run([opencode, "debug", "config"], reading.machine, seconds)
    if not of_config(config, asked, known):
        return asked
    left = max(1.0, until - time.monotonic())
    of_list(run([opencode, "mcp", "list"], reading.machine, left), asked, known)
    return asked


def of_config(output: Output, asked: Asked, known: Iterable[str]) -> bool:
    """`debug config`; False where there is no answer."""
    try:
        top = json.loads(output.out)
    except ValueError:
        asked.refuses = output.refused
        late = output.code is None
        asked.trouble = (
            "it did not answer in time" if late else shown(output.both, known) or "it printed no configuration"
        )
        return False
    table = inner(top, "mcp")
    for name, raw in (inner(table, "servers") or table).items():
        command = inner(raw).get("command")
        words = " ".join(map(str, command)) if isinstance(command, list) else ""
        off = inner(raw).get("enabled") is False
        asked.servers[name] = OracleSays(
            state="disabled" if off else "enabled",
            runs=shown(text_of(inner(raw).get("url")) if inner(raw).get("type") == "remote" else words, known),
        )
    return True


def of_list(output: Output, asked: Asked, known: Iterable[str]) -> None:
    name, state, detail = "", "", [""]
    if output.code is None:
        asked.trouble = "it did not answer in time"
    for line in [*lines(output.both), "●"]:
        line = line.strip()
        more = _MORE.match(line)
        if more is not None and name:
            detail.append(more["words"])
        elif line.startswith(("●", "▲", "◆")):
            if name:
                _put(asked, name, state, detail, known)
            found = _LINE.match(line)
            name, state, detail = (found["name"], found["state"], []) if found is not None else ("", "", [])


def _put(asked: Asked, name: str, state: str, detail: list[str], known: Iterable[str]) -> None:
    before = asked.servers.get(name)
    says: Says = "needs-login" if state.startswith("needs") else "untold"
    if state == "connected":
        says = "connected"
    elif state == "failed":
        says = "failed"
    elif state == "disabled":
        says = "disabled"
    why = " ".join(detail[:-1]) if says == "failed" else ""
    asked.servers[name] = OracleSays(state=says, detail=shown(why, known), runs=before.runs if before else "")
