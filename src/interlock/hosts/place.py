"""One kind of file in which a host may find servers: where it is, what it is called, who wins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine

Scope = Literal["managed", "system", "local", "project", "user", "plugin", "extension"]
"""`local`: one user's, for one project. `system`: the administrator's defaults or overrides. `managed`: his last word."""
Format = Literal["json", "jsonc", "toml", "yaml"]
"""What the file is; which liberties the host takes with it is the adapter's Tolerance."""
Find = Callable[[Machine], Sequence[str]]
"""Logical paths, whether or not there is a file; the one that wins first."""

ANY = "*"
"""In a table path: every key."""
PROJECT = "{project}"
"""In a table path: the keys that name the project which the working directory is in, the nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    scope: Scope
    find: Find
    format: Format
    tables: tuple[tuple[str, ...], ...]
    """The objects (or lists, for Continue) that hold entries, as key paths from the top."""
    rank: int
    """Of two entries of one name the higher rank wins; inside one place, the path that `find` names first."""
    shown: str
    """The path as documentation writes it."""
    known: Fact[bool]
    """Whether the host reads it. False: right content, wrong file, and `instead` says which would be right."""
    instead: str = ""
    writes: bool = False
    """`generate` writes this scope's entries here (the first path that exists, else the first)."""
    older: Find | None = None
    """Files that older versions read, in the same form: where one of them is there, and none of these, it is written. Which of
    the two a version reads is then not known."""
    shared: bool = False
    """Another host's file, or one of several hosts': it is looked at only where a sign of this host is (Adapter.signs)."""
    listed: bool = False
    """The entries are a list of objects that have a `name` each (Continue). Elsewhere a list holds none."""
    alone: bool = False
    """A file without the table may be one entry, which has the file's name (Continue)."""
    exclusive: bool = False
    """Where this file exists, entries of no other place count (Claude Code's managed-mcp.json)."""
