"""A throwaway machine for one situation: a home, a repository in it, and an environment from which nothing gets out.

Every proxy variable points to a port of loopback that nobody listens on, so a host that would call home fails at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from interlock.hosts import reading, registry
from interlock.hosts.machine import Machine
from interlock.hosts.oracles import asking
from interlock.hosts.oracles.asked import Asked
from interlock.hosts.plugins import finding, ranking
from interlock.hosts.reading import Reading

from . import programs

SERVER = str(Path(__file__).with_name("server.py"))
NOWHERE = "http://127.0.0.1:9"
SECONDS = 90.0
OFFLINE = {
    "HTTP_PROXY": NOWHERE,
    "HTTPS_PROXY": NOWHERE,
    "ALL_PROXY": NOWHERE,
    "http_proxy": NOWHERE,
    "https_proxy": NOWHERE,
    "NO_PROXY": "127.0.0.1,localhost",
    "no_proxy": "127.0.0.1,localhost",
    "npm_config_offline": "true",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "COPILOT_OFFLINE": "true",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "GEMINI_TELEMETRY_ENABLED": "false",
    "DO_NOT_TRACK": "1",
}


@dataclass(frozen=True, slots=True)
class Stage:
    machine: Machine
    url: str

    def path(self, short: str) -> str:
        """`~/x` in the home, `./x` in the project."""
        return short.replace("~", self.machine.home, 1) if short.startswith("~") else self.machine.folder + short[1:]

    def put(self, files: Mapping[str, str | bytes]) -> None:
        """Text with PY, SERVER, URL, HOME and PROJECT between at-signs, in paths too."""
        for short, text in files.items():
            path = Path(self.path(short))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else self.filled(text).encode())

    def filled(self, text: str) -> str:
        for name, value in (
            ("PY", sys.executable), ("SERVER", SERVER), ("URL", self.url), ("HOME", self.machine.home),
            ("PROJECT", self.machine.folder),
        ):  # fmt: skip
            text = text.replace(f"@{name}@", value)
        return text

    def read(self, host: str) -> Reading:
        adapter = registry.find(host)
        assert adapter is not None
        read = reading.read(adapter, self.machine)
        ranking.join(read, finding.found(self.machine, [host]))
        return read

    def ask(self, read: Reading) -> Asked:
        return asking.ask(read, SECONDS)


def stage(folder: Path, cache: Path, url: str, environ: Mapping[str, str] | None = None) -> Stage:
    """`cache` is shared: Copilot CLI unpacks 190 MB of itself into it."""
    home = folder / "home"
    project = home / "code" / "project"
    project.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(project)], check=True, env={"PATH": os.environ["PATH"], "HOME": str(home)})
    variables = {
        "PATH": programs.path(), "HOME": str(home), "LANG": "C.UTF-8", "TERM": "dumb", "XDG_CACHE_HOME": str(cache),
        **OFFLINE, **(environ or {}),
    }  # fmt: skip
    return Stage(
        Machine(platform="linux" if sys.platform != "darwin" else "macos", home=str(home), folder=str(project),
                environ=variables),
        url,
    )  # fmt: skip
