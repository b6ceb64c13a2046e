"""Subjects for the gates: one tool of one server, with whatever the manifest and the server say of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.gates.subject import Subject, SubjectKind
from interlock.manifest.config import Origin, Policy, Rule, ServerConfig, StdioTransport, ToolOverride

FILE = Path("/manifests/interlock.yaml")
MakeSubject = Callable[..., Subject]


def at(line: int) -> Origin:
    return Origin(FILE, line)


@pytest.fixture
def subject() -> MakeSubject:
    def make(
        *,
        kind: SubjectKind = "tools",
        tool: str = "create_issue",
        host: str | None = None,
        read_hint: bool | None = None,
        destructive_hint: bool | None = None,
        policy: Policy | None = None,
        override: ToolOverride | None = None,
        allow: tuple[str, ...] | None = None,
        deny: tuple[str, ...] = (),
        enabled: bool = True,
        blocked: str | None = None,
    ) -> Subject:
        config = ServerConfig(
            "tracker",
            "example.tracker",
            "user",
            at(1),
            StdioTransport(("tracker",), Path("/")),
            policy or Policy(),
            enabled=enabled,
            blocked=blocked,
            allow=None if allow is None else tuple(Rule(glob, at(10 + n)) for n, glob in enumerate(allow)),
            deny=tuple(Rule(glob, at(20 + n)) for n, glob in enumerate(deny)),
            tools={tool: override} if override is not None else {},
        )
        return Subject(config, kind, tool, host, read_hint, destructive_hint)

    return make
