"""Which other proxies are measured, in which version, and where setup_rivals.py puts them.

Each Python rival has its own virtual environment, because their pins contradict one another; the npm ones share a
prefix with a Node of their own. Versions are fixed here and nowhere else.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

PYTHON_RIVALS = {
    "floor": (
        "uvicorn==0.54.0",
        "uvloop==0.23.0",
        "httptools==0.9.0",
        "msgspec==0.23.0",
        "granian==2.8.9",
        "aiohttp==3.14.5",
        "httpx2==2.16.2",
    ),
    "fastmcp": ("fastmcp==4.2.3",),
    "mcp-proxy": ("mcp-proxy==0.13.0",),
    "contextforge": ("mcp-contextforge-gateway==1.1.0",),
}
"""Environment to pinned requirements. `floor` is no rival: responders, floor and its alternatives run in it."""
OPTIONAL = frozenset({"contextforge"})
CONTEXTFORGE_MINIMUM = (3, 12)
"""ContextForge 1.1.0 does not install on an older Python."""
NPM_RIVALS = ("mcp-proxy@6.7.19", "supergateway@4.0.0", "mcp-remote@0.15.1")
NODE = "node@24"


def default_cache() -> Path:
    """Where rivals live unless --cache says otherwise."""
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "interlock-bench"


@dataclass(frozen=True, slots=True)
class Rivals:
    """Paths of the installed rivals; a path that does not exist means that the rival is not installed."""

    cache: Path

    def environment(self, name: str) -> Path:
        return self.cache / "python" / name

    def python(self, name: str) -> Path:
        return self.environment(name) / "bin" / "python"

    def program(self, name: str, program: str) -> Path:
        return self.environment(name) / "bin" / program

    @property
    def prefix(self) -> Path:
        return self.cache / "npm"

    @property
    def node(self) -> Path:
        return self.prefix / "node_modules" / "node" / "bin" / "node"

    def entry(self, package: str, command: str | None = None) -> Path:
        """The JavaScript file that the command of an npm package runs."""
        folder = self.prefix / "node_modules" / package
        manifest = folder / "package.json"
        if not manifest.exists():
            return folder / "missing"
        commands = json.loads(manifest.read_text())["bin"]
        file: str = commands if isinstance(commands, str) else commands[command or package]
        return folder / file

    def versions(self) -> dict[str, str]:
        """Name to installed version, only of those that are there."""
        found: dict[str, str] = {}
        for name, requirements in PYTHON_RIVALS.items():
            for requirement in requirements:
                distribution = requirement.split("==")[0]
                pattern = f"lib/python*/site-packages/{distribution.replace('-', '_')}-*.dist-info"
                for folder in self.environment(name).glob(pattern):
                    found[f"{distribution} (PyPI)"] = folder.name.removesuffix(".dist-info").rpartition("-")[2]
        for spec in (*NPM_RIVALS, NODE):
            package = spec.split("@")[0]
            manifest = self.prefix / "node_modules" / package / "package.json"
            if manifest.exists():
                found[f"{package} (npm)"] = json.loads(manifest.read_text())["version"]
        return found
