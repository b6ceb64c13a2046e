"""Interlock as a benchmark starts it: a manifest of its own, trusted by its hash, in a home of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.processes import REPOSITORY

INTERLOCK = (sys.executable, "-m", "interlock")
_HASH = re.compile(r"\b(?:sha256:)?[0-9a-f]{64}\b")


@dataclass(frozen=True, slots=True)
class Server:
    """One manifest entry: a URL, or a command."""

    key: str
    url: str = ""
    command: tuple[str, ...] = ()


def environment() -> dict[str, str]:
    """So that a checkout is measured without having been installed."""
    return {"PYTHONPATH": str(REPOSITORY / "src")}


def write_manifest(file: Path, servers: Sequence[Server]) -> None:
    """All tools allowed without asking; everything else as Interlock does by default."""
    documents = []
    for server in servers:
        transport = {"http": {"endpoint": server.url}} if server.url else {"stdio": {"command": list(server.command)}}
        documents.append(
            "---\n"
            "schemaVersion: agent-routing/v1\n"
            f"integrationId: bench.{server.key}\n"
            f"key: {server.key}\n"
            # JSON is YAML, and quotes whatever stands in a path.
            f"transports: {json.dumps(transport)}\n"
            "policy: {defaultApproval: auto}\n"
        )
    file.write_text("".join(documents))


def trusted_hash(file: Path, home: Path) -> str:
    """What `interlock trust --hash` says; raises RuntimeError with its words where it says none."""
    done = subprocess.run(
        [*INTERLOCK, "trust", "--hash", str(file), "--home", str(home)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment()},
        check=False,
    )
    found = _HASH.search(done.stdout)
    if done.returncode or found is None:
        raise RuntimeError(f"interlock trust --hash failed ({done.returncode}): {done.stdout}{done.stderr}")
    return found.group()


def up_command(manifest: Path, trusted: str, home: Path, port: int) -> list[str]:
    """`interlock up`, with everything on that is on by default, and no credential."""
    command = [*INTERLOCK, "up", "--manifest", str(manifest), "--trusted-hash", trusted, "--home", str(home)]
    return [*command, "--port", str(port), "--no-credential"]


def connect_command(manifest: Path, trusted: str, home: Path) -> list[str]:
    """`interlock connect`, as a host starts it."""
    return [*INTERLOCK, "connect", "--manifest", str(manifest), "--trusted-hash", trusted, "--home", str(home)]
