"""What a host said of its servers, in the same words for all hosts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Says = Literal[
    "enabled", "disabled", "connected", "failed", "pending", "needs-login", "blocked", "invalid", "absent", "untold"
]  # fmt: skip
"""`enabled`: it would be started, which was not tried. `pending`: a person has to approve it first. `untold`: it is named,
and what becomes of it is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OracleSays:
    state: Says
    scope: str = ""
    """In the host's own word, where it says."""
    detail: str = ""
    """Its reason. Secrets are blacked out."""
    runs: str = ""
    """The command or address that it names. Secrets are blacked out."""
    tools: tuple[str, ...] | None = None
    origins: Mapping[str, str] = field(default_factory=dict)
    """By field: the file that the host says it is from (Codex)."""


ABSENT = OracleSays(state="absent")


@dataclass(slots=True, kw_only=True)
class Asked:
    host: str
    command: tuple[str, ...] = ()
    """As a person would type it."""
    live: bool = False
    """The host started the servers."""
    servers: dict[str, OracleSays] = field(default_factory=dict)
    trouble: str | None = None
    """Why there is no answer, or no whole one."""
    installed: bool = True
    """False: its program is not to be found, so nobody can ask."""
    refuses: bool = False
    """The host does not take its files at all: no server of it runs."""
    partial: bool = False
    """It lists a part of its servers, so that one which is missing may be there (`missing` in the host's file)."""
    notes: list[str] = field(default_factory=list)
    """Its own warnings."""
    wrote: list[str] = field(default_factory=list)
    """Configuration files that the host itself changed while it was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    server: str
    what: Literal["state", "runs"]
    ours: str
    theirs: str
    reason: str = ""
    """Why both may be right, where that is known."""
