"""Claude Code: `claude mcp list` starts the servers and tells how that went, with its own diagnostics of the files.

It writes: every run of Claude Code rewrites ~/.claude.json (its own counters, and the layout of the whole file) and keeps a
backup; it may move a project's approvals to .claude/settings.local.json. `wrote` says what changed. Servers of a `.mcp.json`
that nobody approved are listed and not started; `claude -p` would start them. Observed with 2.1.332.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from interlock.hosts.oracles.asked import Asked, OracleSays, Says
from interlock.hosts.oracles.running import Output, lines, program, run, shown, without_list
from interlock.hosts.reading import Reading

_LINE = re.compile(r"^(?P<name>.+?): (?P<runs>.*?) - (?P<mark>[✔✓✘✗⊘⏸⚠!△]) ?(?P<words>.*)$")
_WARNING = re.compile(r"^\s*[├└]\s*\[(?P<kind>Warning|Error|Failed)[^\]]*\](?: \[(?P<name>[^\]]*)\])? (?P<words>.*)$")


def ask(reading: Reading, seconds: float, known: Iterable[str]) -> Asked:
    claude = program(reading.machine, "claude")
    output = run([claude, "mcp", "list"], reading.machine, seconds)
    asked = Asked(host="claude-code", command=("claude", "mcp", "list"), live=True)
    parsed(output, asked, known)
    return asked


def parsed(output: Output, asked: Asked, known: Iterable[str]) -> None:
    if output.code is None:
        asked.trouble = "it did not answer in time"
    for line in lines(output.both):
        found = _LINE.match(line)
        if found is not None and not line.startswith((" ", "├", "└")):
            words = found["words"]
            asked.servers[found["name"]] = OracleSays(
                state=_state(found["mark"], words), detail=shown(words, known),
                runs=shown(re.sub(r" \((?:HTTP|SSE|WS)\)$", "", found["runs"].strip()), known),
            )  # fmt: skip
            continue
        warning = _WARNING.match(line)
        if warning is not None:
            name, words = warning["name"], shown(warning["words"], known)
            asked.notes.append(words)
            skipped = "Skipped" in words or "not loaded" in words
            if name and skipped and name not in asked.servers:
                asked.servers[name] = OracleSays(state="invalid", detail=words)
    if re.search(r"^Claude configuration file at .* is corrupted|^Configuration error in ", output.both, re.MULTILINE):
        asked.refuses = True
        asked.trouble = shown(output.both, known)
    elif not asked.servers and not asked.notes and output.code is not None:
        asked.trouble = without_list(output, known)


def _state(mark: str, words: str) -> Says:
    lowered = words.lower()
    if "pending approval" in lowered:
        return "pending"
    if "rejected" in lowered:
        return "blocked"
    if "disabled" in lowered:
        return "disabled"
    if "authentication" in lowered:
        return "needs-login"
    if mark in "✔✓" or lowered.startswith("connected"):
        return "connected"
    return "failed"
