"""One declared entry on its way through a host: where it stands, what it says, what becomes of it and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from interlock.hosts.entry import Entry
from interlock.hosts.place import Place, Scope

State = Literal["effective", "shadowed", "disabled", "blocked", "broken", "never-read"]
"""What the host makes of the entry. `blocked`: by trust or policy. `never-read`: the right content in a wrong file."""
Severity = Literal["problem", "warning", "note"]


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a file, for people: lines and columns count from 1; 0 is the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Decision:
    """What settled the state: a rule in words, and the place that it stands in."""

    rule: str
    """A stable word: `only-one`, `higher-scope`, `field-merge`, `nearer-file`, `entry-off`, `list-off`, `untrusted`, `policy`,
    `not-approved`, `syntax`, `invalid-entry`, `host-broken`, `wrong-file`, `other-source`."""
    spot: Spot | None = None
    by: str = ""
    """In words: `project entry "issues"`, `[projects] trust_level`."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something about an entry or a file that a person should know. `code` is stable (checks/codes.py); no text holds a secret."""

    code: str
    severity: Severity
    seen: str
    why: str = ""
    todo: str = ""
    """What to do, a command where there is one."""
    field: str = ""
    spot: Spot | None = None


@dataclass(slots=True, kw_only=True)
class Declaration:
    """`entry` is None where the file or the entry cannot be read; `server` is None for a file without a readable entry."""

    host: str
    scope: Scope
    place: Place
    spot: Spot
    server: str | None
    path: tuple[str | int, ...] = ()
    """Of the entry, from the top of its file; the last step is its key, or its number in a list."""
    raw: Mapping[str, object] = field(default_factory=dict)
    entry: Entry | None = None
    spots: Mapping[str, Spot] = field(default_factory=dict)
    """Where each field of the entry stands, by dotted path from the entry (`env.TOKEN`, `args.0`)."""
    source: str = ""
    """The plugin or extension that brings it, with its version."""
    state: State = "effective"
    decided_by: Decision = field(default_factory=lambda: Decision("only-one"))
    shadowed_fields: Mapping[str, Spot] = field(default_factory=dict)
    """Fields that another entry overrides, and where. With a whole-entry merge: all of them."""
    origins: Mapping[str, Spot] = field(default_factory=dict)
    """Of an effective entry of a host that merges by field: where each field of the result comes from."""
    merged: Entry | None = None
    """What the host runs, where that is more than this entry alone."""
    tool_rules: Mapping[str, Spot] = field(default_factory=dict)
    """Where rules for its tools stand that are not in the entry, by tool; `*` is every tool."""
    problems: list[Problem] = field(default_factory=list)
    connected: bool | None = None
    """As the host itself says, where it was asked."""
    tools: tuple[str, ...] | None = None

    @property
    def file(self) -> str:
        return self.spot.file

    @property
    def runs(self) -> Entry | None:
        """What the host starts for this entry: the merged one, else its own."""
        return self.merged or self.entry
