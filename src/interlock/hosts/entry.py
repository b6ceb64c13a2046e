"""What one entry of a host's file asks for, in the same words for all hosts. Values stay as they stand in the file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Transport = Literal["stdio", "http", "sse", "ws", "other"]
Approval = Literal["auto", "prompt", "writes", "always"]
"""What the host asks before a call, in the manifest's words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Exactly one of `command` and `url` is set, unless the entry is wrong."""

    transport: Transport | None
    """None: it cannot be told (`faults` of the declaration says why)."""
    command: tuple[str, ...] = ()
    """Program and arguments; variables of the host's syntax unfilled."""
    cwd: str | None = None
    url: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    env_names: tuple[str, ...] = ()
    """Variables passed on by name (Codex `env_vars`, goose `env_keys`)."""
    headers: Mapping[str, str] = field(default_factory=dict)
    header_names: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Headers whose value is in a variable: (prefix, variable), as in `("Bearer ", "TOKEN")`."""
    enabled: bool = True
    """By the entry itself, by a field that this host obeys."""
    allow: tuple[str, ...] | None = None
    """Only these tools; None: all."""
    deny: tuple[str, ...] = ()
    approvals: Mapping[str, Approval] = field(default_factory=dict)
    """By tool; `*` is the entry's default."""
    startup_seconds: float | None = None
    call_seconds: float | None = None
    oauth: Mapping[str, str] = field(default_factory=dict)
    """Client settings that are no secrets (client id, scopes), by the manifest's names where it has one."""
    ignored: tuple[str, ...] = ()
    """Fields that stand there and that this host does not read."""
