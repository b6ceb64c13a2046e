"""One host's entry in the manifest's words, to be compared with other hosts' and to be written.

A secret's value is kept only to compare it and, where a person asks for that, to move it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from interlock.hosts.declaration import Declaration, Spot
from interlock.hosts.entry import Approval
from interlock.hosts.identity import Identity

STRICT: Sequence[Approval] = ("auto", "writes", "prompt", "always")
"""The strictest last."""


@dataclass(frozen=True, slots=True)
class Value:
    """Of a variable or a header: exactly one of `source`, `file` and `literal`, or a `secret` that stands in the file."""

    source: str | None = None
    file: str | None = None
    literal: str | None = None
    secret: str | None = field(default=None, repr=False)
    prefix: str = ""
    spot: Spot | None = None
    why: str = ""
    """Of a secret: what it was taken for one by."""

    def shown(self) -> str:
        if self.secret is not None:
            return f"{self.prefix}****"
        if self.source is not None:
            return f"{self.prefix}${{{self.source}}}"
        if self.file is not None:
            return f"{self.prefix}(file {self.file})"
        return self.literal or '""'

    def same(self, other: Value, environ: Mapping[str, str]) -> bool:
        """Whether both come to the same, as far as that can be told."""
        mine, others = self._text(environ), other._text(environ)
        if mine is not None and others is not None:
            return mine == others
        return (self.source, self.file, self.prefix) == (other.source, other.file, other.prefix)

    def _text(self, environ: Mapping[str, str]) -> str | None:
        if self.secret is not None:
            return self.prefix + self.secret
        if self.literal is not None:
            return self.literal
        value = environ.get(self.source) if self.source is not None else None
        return None if value is None else self.prefix + value


@dataclass(frozen=True, slots=True)
class Note:
    """Something that a person should know of what was made of a field."""

    field: str
    text: str
    spot: Spot | None = None
    mends: bool = False
    """A mistake in the host's file that is put right on the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """`words` or `url`/`endpoint` is set. Fields mean what the manifest's mean."""

    declaration: Declaration = field(repr=False)
    identity: Identity = field(repr=False)
    kind: Literal["stdio", "http", "sse"]
    words: tuple[str, ...] = ()
    wrapped: bool = False
    """The host's file goes through `cmd /c`, which `words` leave out."""
    cwd: str | None = None
    url: str | None = None
    endpoint: Value | None = None
    """A variable for the whole URL, or a URL that is secret itself."""
    values: Mapping[str, Value] = field(default_factory=dict)
    """Variables of a child, or headers."""
    enabled: bool = True
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    approvals: Mapping[str, Approval] = field(default_factory=dict)
    startup: float | None = None
    call: float | None = None
    oauth: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def name(self) -> str:
        return self.declaration.server or ""

    @property
    def mended(self) -> bool:
        return any(note.mends for note in self.notes)


class Unfit(Exception):
    """A manifest cannot say this entry. `why` and `todo` hold no value from the file."""

    def __init__(self, field: str, why: str, spot: Spot | None = None, todo: str = "") -> None:
        super().__init__(why)
        self.field = field
        self.why = why
        self.spot = spot
        self.todo = todo


def variable_name(*parts: str) -> str:
    """A name for an environment variable, made of these."""
    text = "_".join(part for part in parts if part)
    made = "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in text).upper().strip("_")
    return made if made and not made[0].isdigit() else f"VALUE_{made}"


def conflicts(one: Candidate, other: Candidate, environ: Mapping[str, str]) -> Collection[str]:
    """Fields in which the two cannot both be right: the same variable or header with another value, another directory."""
    names = [
        name for name in one.values if name in other.values and not one.values[name].same(other.values[name], environ)
    ]
    if one.cwd is not None and other.cwd is not None and one.cwd != other.cwd:
        names.append("cwd")
    return names
