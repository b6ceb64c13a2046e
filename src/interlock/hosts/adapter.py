"""What Interlock knows of one AI host: facts as data, and the few functions that no table can say.

Each host's file makes one Adapter. Whoever adds the next host copies the shortest of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from interlock.hosts.declaration import Declaration, Problem
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine
from interlock.hosts.place import Find, Place

if TYPE_CHECKING:
    from interlock.hosts.reading import Reading
    from interlock.hosts.writing import Rendered, Wanted

Merge = Literal["fields", "entry", "loser-disabled", "both", "single"]
"""Of one name in two scopes: merged field by field, the winner replaces the whole entry, the loser is switched off, both
are shown, or there is only one file."""
Blast = Literal["entry", "file", "host"]
"""What one fault takes down."""
Form = Literal[
    "${V}", "$V", "${V:-d}", "%V%", "${env:V}", "${input:V}", "${file:V}", "{env:V}", "{file:V}", "${{ secrets.V }}", "$env:V"
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """What the host's parser takes. None inside a fact: nobody has tried."""

    comments: Fact[bool]
    trailing_comma: Fact[bool]
    bom: Fact[bool]
    duplicate_keys: Fact[Literal["last", "error"]]
    fault: Fact[Blast]
    """What a file takes down that cannot be parsed."""
    bad_entry: Fact[Blast]
    """What an entry takes down that makes no sense."""
    empty: Fact[bool] = field(default_factory=lambda: Fact(None, "U", "an empty file"))
    """Whether a file of no bytes is as good as none."""

    @property
    def leaves_comments(self) -> bool:
        """What stands in a file already may stay, unless the host is known to refuse it."""
        return self.comments.value is not False


@dataclass(frozen=True, slots=True, kw_only=True)
class Variables:
    """References that the host fills in, in its own spelling."""

    forms: tuple[Form, ...]
    """The first is the one that `generate` writes. Empty: the host fills in nothing."""
    fields: frozenset[str] = frozenset()
    """Of `command`, `args`, `env`, `url`, `headers`, `cwd`. Elsewhere a reference stays as it is."""
    missing: Literal["literal", "empty"] | None = None
    """What becomes of a variable that is not set; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildEnv:
    """Which of the host's own variables reach a server that it starts."""

    kind: Literal["all", "redacted", "named"]
    """`redacted`: all whose names do not match `names`; `named`: those in `names` and what the entry itself names."""
    names: tuple[str, ...] = ()
    """Exact names, or globs (`*TOKEN*`) with `redacted`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """The field of an entry that switches it off, and the value that does."""

    field: Literal["enabled", "disabled"]
    default_on: bool = True
    """False: without the field it is off (goose)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallableNames:
    """How the host names a server's tools to the model."""

    form: str
    """With `{server}` and `{tool}`."""
    keep: str = "A-Za-z0-9_-"
    """Inside of a regular expression's character class; every other character becomes `replacement`."""
    replacement: str = "_"
    limit: int | None = None
    """Longest whole name, in characters. None: the host cuts nothing."""
    overflow: Literal["hash", "middle", "cut", "cut-number", "dropped"] | None = None
    clash: Literal["hash-both", "first", "last", "number", "prefix", "later-skipped", "one-lost"] | None = None
    lower: Literal["server", "all"] | None = None
    """Which part is made small: what the server's key becomes, or the whole name."""
    tool_keep: str | None = None
    """As `keep`, for the tool's own part. None: as for the server's."""
    dropped: str = ""
    """As `keep`: characters of a server's key that vanish (goose: spaces)."""
    prefix_limit: int | None = None
    """VS Code: longest part before the tool's own name."""
    announced: bool = False
    """The prefix comes from what the server calls itself, not from the key: it cannot be told from the file."""
    bare: bool = False
    """The tool's own name, with the server's only where two meet (Zed)."""
    hash_digits: int = 12
    """Hex digits where `overflow` or `clash` puts a hash."""
    filler: str = "..."
    """With overflow `middle`: what stands between the two ends."""
    head: int = 30
    """With overflow `middle`: how much of the beginning is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """A command of the host itself that tells what it makes of its files."""

    command: tuple[str, ...]
    gives: str
    live: bool
    """It starts the servers. False: it only reads files."""
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    id: str
    label: str
    seen: str
    """The version that the facts are of, or what was read instead."""
    verified: str
    """Day of the last look, ISO 8601."""
    places: tuple[Place, ...]
    tolerance: Tolerance
    merge: Fact[Merge]
    transports: Fact[frozenset[str]]
    """Of stdio, http, sse, ws."""
    variables: Fact[Variables]
    child_env: Fact[ChildEnv]
    switch: Fact[Switch]
    """Fact(None, "U") where unknown; where it is known that no field of the file does it, see `no_switch`."""
    names: Fact[CallableNames]
    read: Callable[[Mapping[str, object]], Entry]
    """One raw entry in common words. Raises BadEntry (reading.py) where this host refuses the entry."""
    write: Callable[[Wanted, Machine], Rendered]
    """A server of the manifest in the host's words."""
    aliases: tuple[str, ...] = ()
    no_switch: str = ""
    """How a server is switched off where the entry has no field for it."""
    no_switch_evidence: str = ""
    """How it is known that no field of an entry does it; empty: that is not known."""
    expands_home: Fact[bool] = field(default_factory=lambda: Fact(None, "U"))
    """Whether a leading `~` is filled in."""
    fields: frozenset[str] = frozenset()
    """Every field of an entry that the host reads; empty: not known well enough to call others ignored."""
    server_names: Fact[str] = field(default_factory=lambda: Fact(None, "U"))
    """Regular expression for keys that really start."""
    reserved: frozenset[str] = frozenset()
    folds_case: bool = False
    """Two keys that differ only in letter case are the same server (VS Code)."""
    output_cap: Fact[str] = field(default_factory=lambda: Fact(None, "U"))
    timeouts: Fact[str] = field(default_factory=lambda: Fact(None, "U"))
    approvals: Fact[str] = field(default_factory=lambda: Fact(None, "U"))
    tool_lists: Fact[str] = field(default_factory=lambda: Fact(None, "U"))
    gates: Fact[str] = field(default_factory=lambda: Fact(None, "U"))
    """What keeps a right entry from running: trust, approval, policy."""
    reload: Fact[str] = field(default_factory=lambda: Fact(None, "U"))
    closed: Fact[bool] = field(default_factory=lambda: Fact(None, "U"))
    """It writes its file from memory, so it must not run while the file is changed."""
    gui: bool = False
    """Started from a desktop: it has not the PATH of a terminal."""
    oracles: tuple[Oracle, ...] = ()
    plugins: tuple[str, ...] = ()
    """Kinds of plugin that it loads (plugins/)."""
    sources: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
    more: Mapping[str, Fact[str]] = field(default_factory=dict)
    """Facts that no code needs and people want to read, by a short name."""
    signs: Find | None = None
    """Folders that are there where the host is. Asked only for a place that is `shared`."""
    admit: Callable[[Reading], None] | None = None
    """Takes entries out before merging: a project that is not trusted, a policy on names."""
    judge: Callable[[Reading], None] | None = None
    """Rules of this host's own on what is left after merging: lists of disabled servers elsewhere, approval."""
    settle: Callable[[Reading], None] | None = None
    """In place of the common merging, where this host's is none of `Merge`."""
    entry_problems: Callable[[Declaration, Machine], Sequence[Problem]] | None = None
    """What only this host can trip over."""
