"""Where a host's own answer and Interlock's differ, and both are right: the reasons, by host and by what was seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from interlock.hosts.declaration import Declaration
from interlock.hosts.oracles.asked import Asked, OracleSays


@dataclass(frozen=True, slots=True)
class Known:
    host: str
    ours: frozenset[str]
    theirs: frozenset[str]
    reason: str
    """In words for people, with the version that it was observed with."""
    when: Callable[[Declaration | None, Asked], bool] = lambda declaration, asked: True


def _scope(*scopes: str) -> Callable[[Declaration | None, Asked], bool]:
    return lambda declaration, asked: declaration is not None and declaration.scope in scopes


KNOWN = (
    Known(
        "codex", frozenset(("broken",)), frozenset(("enabled",)),
        "`codex mcp list` only reads files: a name that never starts, or a missing program, is shown as enabled (0.171.0).",
        lambda declaration, asked: not asked.live,
    ),
    Known(
        "gemini-cli", frozenset(("disabled",)), frozenset(("connected", "failed")),
        "`gemini mcp list` starts servers of extensions too that `gemini extensions list` calls switched off (0.61.0).",
        _scope("extension"),
    ),
    Known(
        "qwen-code", frozenset(("blocked",)), frozenset(("connected", "failed")),
        "`qwen mcp list` starts servers that `mcp.excluded` or `mcp.allowed` keep out of a session (0.15.10).",
        lambda declaration, asked: declaration is not None and declaration.decided_by.rule == "policy",
    ),
)  # fmt: skip


def reason(host: str, server: str, ours: Declaration | None, theirs: OracleSays, asked: Asked) -> str:
    """Empty where the difference is not known."""
    state = ours.state if ours is not None else "not found"
    for each in KNOWN:
        if each.host == host and state in each.ours and theirs.state in each.theirs and each.when(ours, asked):
            return each.reason
    return ""
