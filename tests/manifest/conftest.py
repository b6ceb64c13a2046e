"""A folder with a home, a repository and a managed folder; and a way to load what a test writes there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from interlock.manifest.loading import Loaded, load


@dataclass
class Desk:
    """The three scopes on disk, and the environment that a load sees."""

    home: Path
    project: Path
    managed: Path
    environ: dict[str, str]

    def write(self, scope: str, text: str, name: str = "interlock.yaml") -> Path:
        folder = {"user": self.home, "project": self.project, "managed": self.managed}[scope]
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, *manifests: Path, platform: str = "linux", hashes: tuple[str, ...] = ()) -> Loaded:
        return load(
            manifests=manifests,
            home=self.home,
            project_root=self.project,
            trusted_hashes=hashes,
            environ=self.environ,
            platform=platform,
            managed_dir=self.managed,
        )

    def load_text(self, text: str, **more: str) -> Loaded:
        """As the user's manifest, which needs no trust."""
        self.write("user", text)
        return self.load(**more)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    tools = tmp_path / "bin"
    for folder in ("home", "repo/.git", "managed", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    for program in ("node", "python3"):
        (tools / program).write_text("#!/bin/sh\n")
        (tools / program).chmod(0o755)
    return Desk(tmp_path / "home", tmp_path / "repo", tmp_path / "managed", {"PATH": str(tools)})


@pytest.fixture
def entry() -> Callable[..., str]:
    """Text of one document; keyword arguments become lines."""

    def make(integration_id: str = "acme.search", more: str = "", deny: str = "", **fields: str) -> str:
        lines = ["schemaVersion: agent-routing/v1", f"integrationId: {integration_id}"]
        lines += [f"{name}: {value}" for name, value in fields.items()]
        if "transports" not in fields:
            lines.append("transports: {http: {endpoint: https://mcp.example.com/mcp}}")
        if deny:
            lines.append(f"capability: {{tools: {{deny: [{deny}]}}}}")
        return "\n".join(lines) + "\n" + more

    return make
