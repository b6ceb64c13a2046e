"""A machine that is laid out for one examination: manifests, hosts' files, records of calls, lists that were kept."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlock.catalog.snapshot import build, keep
from interlock.doctor import symptoms
from interlock.doctor.examination import Examination
from interlock.doctor.examining import examined
from interlock.doctor.finding import Finding
from interlock.hosts.machine import Machine, Platform, Surrounding
from interlock.journal.record import to_row
from interlock.manifest.config import HttpTransport
from interlock.manifest.loading import Loaded, load
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace
from interlock.serve.runtime import config_digest
from interlock.store.sqlite import SqliteStore
from interlock.wire.eras import Era
from interlock.wire.messages import EMPTY_OBJECT, Raw

ROOT = Path(__file__).resolve().parents[2]
SERVER = (sys.executable, "-m", "interlock.lab.matrix_server", "--era", "legacy", "--stdio")
BASE_NS = 1_790_000_000_000_000_000
SCHEMA: Mapping[str, object] = {"type": "object"}


@dataclass
class Ward:
    """`root`: files of hosts are below it, for machines of other platforms; None: this machine's."""

    home: Path
    user: Path
    folder: Path
    environ: dict[str, str] = field(default_factory=lambda: {"PATH": os.environ.get("PATH", "")})
    platform: Platform = "linux"
    surrounding: Surrounding = "native"
    root: Path | None = None
    logical_home: str | None = None
    _traces: int = 0
    _at: int = BASE_NS

    @property
    def machine(self) -> Machine:
        home = self.logical_home or str(self.user)
        return Machine(
            platform=self.platform, home=home, folder=str(self.folder) if self.root is None else home,
            environ=self.environ, surrounding=self.surrounding, root=str(self.root) if self.root is not None else None,
        )  # fmt: skip

    # Laying it out

    def write(self, file: str, content: object) -> Path:
        """`~/` is the user's home, `/` below the machine's root; anything else is in the working directory."""
        if file.startswith("~/"):
            path = Path(self.machine.real(self.machine.join(self.machine.home, *file[2:].split("/"))))
        elif file.startswith("/"):
            assert self.root is not None
            path = self.root / file[1:]
        else:
            path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        data = (
            content
            if isinstance(content, bytes)
            else (content if isinstance(content, str) else json.dumps(content, indent=2)).encode()
        )
        path.write_bytes(data)
        return path

    def manifest(self, *entries: str) -> Path:
        """The user's manifest; each entry without its first line."""
        documents = ["schemaVersion: agent-routing/v1\n" + textwrap.dedent(entry).lstrip("\n") for entry in entries]
        path = self.home / "interlock.yaml"
        path.write_text("---\n".join(documents), encoding="utf-8")
        return path

    def server(self, key: str, *arguments: str, more: str = "") -> str:
        """An entry of a manifest that starts a fixture server."""
        command = json.dumps([*SERVER, *arguments])
        return (
            f"integrationId: lab.{key}\ntransports: {{stdio: {{command: {command}, env: {{PYTHONPATH: '{ROOT / 'src'}'}}}}}}\n"
            + textwrap.dedent(more)
        )

    def native(self, *arguments: str) -> dict[str, object]:
        """The same as a host's entry."""
        return {"command": SERVER[0], "args": [*SERVER[1:], *arguments], "env": {"PYTHONPATH": str(ROOT / "src")}}

    @property
    def loaded(self) -> Loaded:
        return load(
            manifests=[], home=self.home, project_root=self.folder, environ=self.environ, managed_dir=self.home / "none"
        )

    def knows(self, key: str, tools: Iterable[Mapping[str, object]], principal: str = "") -> None:
        """What the server offered when it was last listed."""
        config = self.loaded.gateway.servers[key]
        page = {"tools": Raw(json.dumps(list(tools)).encode())}
        pages: Any = {"tools": [page]}
        snapshot = build(
            key, Era.LEGACY, pages, capabilities={"tools": EMPTY_OBJECT}, instructions=None, server_info=None,
            over_http=isinstance(config.transport, HttpTransport), problems=[], at=1.0,
        )  # fmt: skip
        store = SqliteStore(self.home)
        store.save_catalogue(key, config_digest(config, principal), keep(snapshot, pages))
        store.close()

    def called(
        self, name: str, status: str = "ok", *, after: float = 60.0, slug: str | None = None, bytes_out: int = 100,
        host: str | None = None, reason: str = "", rule: str | None = None, **seconds: float,
    ) -> str:  # fmt: skip
        """One recorded call, `after` seconds after the one before; `seconds` by stage. Its id."""
        self._traces += 1
        id = f"{self._traces:08x}"
        self._at += int(after * 1e9)
        marks = [
            Mark(
                Stage(stage),
                "allow" if stage == "authorize" else "x",
                reason,
                rule if stage == "authorize" else None,
                int(each * 1e6),
            )
            for stage, each in seconds.items()
        ]
        total = int(sum(seconds.values()) * 1e6)
        trace = RouteTrace(
            id, self._at, "tools/call", "local", "test", host, server=name.partition("/")[0], name=name, status=status, slug=slug,
            verdict={"needs_approval": "wait", "outcome_unknown": "outcome_unknown"}.get(status), bytes_out=bytes_out, micros=total,
            marks=marks,
        )  # fmt: skip
        store = SqliteStore(self.home)
        store.append_calls([to_row(trace)])
        store.close()
        return id

    # Examining it

    def examination(
        self,
        *,
        server: str | None = None,
        host: str | None = None,
        tool: str | None = None,
        start: bool = False,
        seconds: float = 20.0,
    ) -> Examination:
        return Examination(self.home, self.machine, self.loaded, server, host, tool, start, seconds)

    async def complain(self, slug: str, **narrow: Any) -> list[Finding]:
        """All findings of a symptom."""
        return await examined(self.examination(**narrow), symptoms.BY_SLUG[slug].steps)

    async def everything(self, **narrow: Any) -> list[Finding]:
        return await examined(self.examination(**narrow), symptoms.EVERYTHING)


def wrong(findings: Sequence[Finding]) -> list[Finding]:
    """What a person is shown without being asked for more."""
    return [each for each in findings if each.severity in ("problem", "warning")]


def causes(findings: Sequence[Finding]) -> list[tuple[str, str]]:
    return [(each.check, each.severity) for each in wrong(findings)]


def tool(name: str, description: str = "", **more: object) -> dict[str, object]:
    return {"name": name, "description": description, "inputSchema": SCHEMA, **more}
