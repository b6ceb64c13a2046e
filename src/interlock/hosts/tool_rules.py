"""What the manifest says of a server's tools, sorted the way that hosts' lists are: by name, with the globs apart.

A host has lists of names and asks or does not ask by default. Which of this it can say is the adapter's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from interlock.hosts.writing import Loss
from interlock.manifest.config import Approval, Rule, ServerConfig, ToolOverride

Answer = Literal["auto", "ask"]
_ASKS: frozenset[Approval] = frozenset(("prompt", "approve", "always"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRules:
    allow: tuple[str, ...] | None
    """Exact names; None: nothing said."""
    allow_globs: tuple[str, ...]
    deny: tuple[str, ...]
    deny_globs: tuple[str, ...]
    auto: tuple[str, ...]
    """Run unasked, by name. None of them is denied."""
    ask: tuple[str, ...]
    """Asked for, by name."""
    default: Literal["auto", "ask", "writes"] | None
    """For every other tool; None: nothing said, or left to the host. `writes`: those in `auto` are all its reads."""


def tool_rules(server: ServerConfig) -> ToolRules:
    allow, allow_globs = _sorted(server.allow or ())
    deny, deny_globs = _sorted(server.deny)
    default = _default(server)
    answers = {name: _answer(override, default, server) for name, override in server.tools.items()}
    denied = frozenset(deny)
    return ToolRules(
        allow=None if server.allow is None else allow,
        allow_globs=allow_globs,
        deny=deny,
        deny_globs=deny_globs,
        auto=tuple(name for name, answer in answers.items() if answer == "auto" and name not in denied),
        ask=tuple(name for name, answer in answers.items() if answer == "ask" and name not in denied),
        default=default,
    )


def _sorted(rules: tuple[Rule, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    names = tuple(dict.fromkeys(rule.glob for rule in rules if "*" not in rule.glob))
    globs = tuple(dict.fromkeys(rule.glob for rule in rules if "*" in rule.glob))
    return names, globs


def _default(server: ServerConfig) -> Literal["auto", "ask", "writes"] | None:
    said, writes = server.policy.default_approval, server.policy.writes_approval
    if said == "auto":
        return "writes" if writes in _ASKS or writes == "writes" else "auto"
    if said == "writes":
        return "writes"
    if said in _ASKS or (said is None and writes is not None and writes != "host"):
        return "ask"
    return None


def _answer(
    override: ToolOverride, default: Literal["auto", "ask", "writes"] | None, server: ServerConfig
) -> Answer | None:
    said = override.approval
    if said == "auto":
        return "auto"
    if said in _ASKS:
        return "ask"
    if said == "writes":
        return "auto" if override.read is True else "ask"
    if said is None and default == "writes":
        return "auto" if override.read is True else "ask"
    if said is None and default == "auto" and override.read is not None:
        return "auto"
    return None


def unasked(rules: ToolRules, every: str | None = None) -> tuple[list[str], list[Loss]]:
    """For a host that asks unless a list names the tool: what stands in the list. `every` is its word for all tools."""
    if rules.default != "auto":
        return [*rules.auto], []
    if every is not None and not rules.ask:
        return [every], []
    why = "this host asks for every tool that is not named"
    return [*rules.auto], [Loss(DEFAULT, why, weakens=False)]


# What a host cannot say

DEFAULT = "policy.defaultApproval"
DENY, ALLOW = "capability.tools.deny", "capability.tools.allow"


def globs_lost(rules: ToolRules, *, allow: bool, deny: bool) -> list[Loss]:
    """Of a host whose lists hold exact names only."""
    losses = []
    if deny and rules.deny_globs:
        why = f"its list holds exact names, so {_shown(rules.deny_globs)} cannot be said"
        losses.append(Loss(DENY, why, weakens=True))
    if allow and rules.allow_globs:
        why = f"its list holds exact names, so the tools of {_shown(rules.allow_globs)} are missing"
        losses.append(Loss(ALLOW, why, weakens=False))
    return losses


def lists_lost(rules: ToolRules, *, allow: bool = True, deny: bool = True) -> list[Loss]:
    """Of a host that has no such list in its files."""
    losses = []
    if deny and (rules.deny or rules.deny_globs):
        losses.append(Loss(DENY, "no file of this host can forbid a tool", weakens=True))
    if allow and rules.allow is not None:
        losses.append(Loss(ALLOW, "no file of this host can say which tools alone are offered", weakens=True))
    return losses


def approvals_lost(rules: ToolRules, asks: bool | None) -> list[Loss]:
    """Of a host without rules for single tools. `asks`: whether it asks before every call; None: unknown."""
    strict = [name for name in rules.ask if rules.default not in ("ask", "writes")]
    if asks:
        losses = [_approval(name, "it asks all the same", weakens=False) for name in rules.auto]
        if rules.default in ("auto", "writes") and not rules.auto:
            losses.append(Loss(DEFAULT, "it asks all the same", weakens=False))
        return losses
    why = "it is not known that this host asks before a call" if asks is None else "this host does not ask"
    losses = [_approval(name, why, weakens=True) for name in strict]
    if rules.default in ("ask", "writes"):
        losses.append(Loss(DEFAULT, why, weakens=True))
    return losses


def other_losses(losses: Sequence[Loss]) -> list[Loss]:
    """Without those about approvals: for an adapter that says approvals in another file."""
    return [
        loss
        for loss in losses
        if loss.field != DEFAULT and not (loss.field.startswith("tools.") and loss.field.endswith(".approval"))
    ]


def _approval(tool: str, why: str, *, weakens: bool) -> Loss:
    return Loss(f"tools.{tool}.approval", why, weakens=weakens)


def _shown(globs: tuple[str, ...]) -> str:
    return ", ".join(f"`{glob}`" for glob in globs)
