"""What the gates judge: one tool, prompt, resource or template of one server, for one host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from interlock.manifest.config import ServerConfig
from interlock.model.decision import Decision

SubjectKind = Literal["tools", "prompts", "resources", "templates"]


@dataclass(frozen=True, slots=True)
class Subject:
    """`name` is the server's own name for it. The hints are the server's own words: they may tighten, never loosen."""

    config: ServerConfig
    kind: SubjectKind
    name: str
    host: str | None = None
    read_hint: bool | None = None
    destructive_hint: bool | None = None


class Gate(Protocol):
    """One independent question. None: this gate has nothing to say of this subject."""

    name: str

    def judge(self, subject: Subject) -> Decision | None: ...
