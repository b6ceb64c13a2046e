"""Gemini CLI and Qwen Code: `mcp list` starts the servers and prints a line for each.

They write: Gemini CLI makes folders for the project below ~/.gemini (`tmp`, `history`, `projects.json`); Qwen Code brings
settings.json, the project's too, to its newest layout and leaves the old one as settings.json.orig. `wrote` says what
changed. Observed with Gemini CLI 0.61.0 and Qwen Code 0.15.10.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial

from interlock.hosts.oracles.asked import Asked, OracleSays, Says
from interlock.hosts.oracles.running import Output, lines, program, run, shown, without_list
from interlock.hosts.reading import Reading

_LINE = re.compile(
    r"^(?P<mark>[✓✗○⛔…]|⚠️?) (?P<name>.+?)(?: \(from (?P<from>[^)]+)\))?: (?P<runs>.*) "
    r"\([^()]*\) - (?P<state>[A-Za-z ]+)"
)
_STATES: dict[str, Says] = {
    "connected": "connected",
    "connecting": "untold",
    "disconnected": "failed",
    "disabled": "disabled",
    "blocked": "blocked",
    "needs authentication": "needs-login",
}


def _ask(host: str, name: str, reading: Reading, seconds: float, known: Iterable[str]) -> Asked:
    output = run([program(reading.machine, name), "mcp", "list"], reading.machine, seconds)
    asked = Asked(host=host, command=(name, "mcp", "list"), live=True)
    parsed(output, asked, known)
    return asked


ask_gemini = partial(_ask, "gemini-cli", "gemini")
ask_qwen = partial(_ask, "qwen-code", "qwen")


def parsed(output: Output, asked: Asked, known: Iterable[str]) -> None:
    for line in lines(output.both):
        found = _LINE.match(line.strip())
        if found is not None:
            state = _STATES.get(found["state"].strip().lower(), "untold")
            asked.servers[found["name"]] = OracleSays(
                state=state, scope=f"extension {found['from']}" if found["from"] else "",
                runs=shown(found["runs"], known),
            )  # fmt: skip
        elif "untrusted" in line or line.startswith(("Warning", "Error in", "Invalid configuration")):
            asked.notes.append(shown(line, known))
    if output.code is None:
        asked.trouble = "it did not answer in time"
    elif "server.args?.join is not a function" in output.both:
        asked.partial = True
        asked.trouble = (
            "its list ends at an entry whose `args` is no list; what a session makes of the others is unknown"
        )
    elif output.code != 0 or not (asked.servers or asked.notes):
        asked.refuses = output.refused
        asked.trouble = without_list(output, known)
