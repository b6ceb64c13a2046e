"""The manifest's allow and deny as the two lists that several hosts have: exact names only, and a deny list that wins.

Where the allow list has no globs it can be worked out here what a deny glob takes out of it, and nothing is lost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from interlock.hosts.tool_rules import ALLOW, DENY, ToolRules
from interlock.hosts.writing import Loss


@dataclass(frozen=True, slots=True)
class Lists:
    """None: the list is left out."""

    allow: tuple[str, ...] | None
    deny: tuple[str, ...]
    losses: tuple[Loss, ...] = ()


def exact(rules: ToolRules) -> Lists:
    """For a host with both lists."""
    if rules.allow is not None and not rules.allow_globs:
        return Lists(remaining(rules), rules.deny)
    losses = []
    if rules.allow_globs:
        why = f"its list holds exact names, so {_shown(rules.allow_globs)} cannot be said and no tool is kept out by it"
        losses.append(Loss(ALLOW, why, weakens=True))
    if rules.deny_globs:
        why = f"its list holds exact names, so {_shown(rules.deny_globs)} cannot be said"
        losses.append(Loss(DENY, why, weakens=True))
    return Lists(None, rules.deny, tuple(losses))


def allow_only(rules: ToolRules) -> Lists:
    """For a host with an allow list and no other."""
    lists = exact(rules)
    if lists.allow is not None or not lists.deny:
        return Lists(lists.allow, (), lists.losses)
    why = "its file can name the tools that are offered, and not the ones that are not"
    return Lists(None, (), (*lists.losses, Loss(DENY, why, weakens=True)))


def remaining(rules: ToolRules) -> tuple[str, ...]:
    """What is left of the exact allow list."""
    globs = [_pattern(glob) for glob in rules.deny_globs]
    return tuple(
        name for name in rules.allow or () if name not in rules.deny and not any(glob.fullmatch(name) for glob in globs)
    )


def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in glob.split("*")), re.DOTALL)


def _shown(globs: tuple[str, ...]) -> str:
    return ", ".join(f"`{glob}`" for glob in globs)
