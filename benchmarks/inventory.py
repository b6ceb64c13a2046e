"""How long `interlock inventory` takes over 40 host files with 400 servers, laid into a throwaway home.

    python benchmarks/inventory.py [--runs 7]

Two figures, each the median of its runs: reading and judging everything in a process that has nothing imported yet, and the
whole command from its start to its end. The goal is one second for the command.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

REPOSITORY = Path(__file__).resolve().parent.parent
FILES = 40
SERVERS = 400
GOAL_SECONDS = 1.0

_JSON: tuple[tuple[str, str], ...] = (
    (".claude.json", "mcpServers"),
    (".cursor/mcp.json", "mcpServers"),
    (".gemini/settings.json", "mcpServers"),
    (".qwen/settings.json", "mcpServers"),
    (".copilot/mcp-config.json", "mcpServers"),
    (".config/Claude/claude_desktop_config.json", "mcpServers"),
    (".config/Code/User/mcp.json", "servers"),
    (".config/zed/settings.json", "context_servers"),
    (".config/devin/mcp_config.json", "mcpServers"),
    (".codeium/windsurf/mcp_config.json", "mcpServers"),
    (".gemini/config/mcp_config.json", "mcpServers"),
    (".cline/data/settings/cline_mcp_settings.json", "mcpServers"),
    (".kiro/settings/mcp.json", "mcpServers"),
    (".junie/mcp/mcp.json", "mcpServers"),
    (".ai/mcp/mcp.json", "mcpServers"),
    ("shop/.mcp.json", "mcpServers"),
    ("shop/.cursor/mcp.json", "mcpServers"),
    ("shop/.vscode/mcp.json", "servers"),
    ("shop/deep/.qwen/settings.json", "mcpServers"),
    ("shop/deep/.kiro/settings/mcp.json", "mcpServers"),
    ("shop/.zed/settings.json", "context_servers"),
    ("shop/.roo/mcp.json", "mcpServers"),
    ("shop/.kiro/settings/mcp.json", "mcpServers"),
    ("shop/.junie/mcp/mcp.json", "mcpServers"),
    ("shop/.ai/mcp/mcp.json", "mcpServers"),
    ("shop/.agents/mcp_config.json", "mcpServers"),
    ("shop/.devin/mcp_config.json", "mcpServers"),
    (".mcp.json", "mcpServers"),
    ("shop/deep/.mcp.json", "mcpServers"),
    ("shop/deep/.gemini/settings.json", "mcpServers"),
    ("shop/deep/.cursor/mcp.json", "mcpServers"),
    ("shop/deep/.vscode/mcp.json", "servers"),
    ("shop/deep/.zed/settings.json", "context_servers"),
    ("shop/deep/.roo/mcp.json", "mcpServers"),
)


def lay(home: Path) -> int:
    """Writes all files; how many servers they declare."""
    names = iter(f"server-{number}" for number in range(SERVERS))
    files = list(_contents(home, names))
    for path, content in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    if len(files) != FILES or next(names, None) is not None:
        raise SystemExit(f"{len(files)} files were laid, and {FILES} are wanted")
    (home / "shop" / ".git").mkdir(parents=True)
    return SERVERS


def _contents(home: Path, names: Iterator[str]) -> Iterator[tuple[Path, str]]:
    for path, key in _JSON:
        yield home / path, json.dumps({"theme": "dark", key: dict(_entries(names))}, indent=2)
    for path in (".codex/config.toml", "shop/.codex/config.toml", "shop/deep/.codex/config.toml"):
        yield home / path, "".join(_toml(name, entry) for name, entry in _entries(names))
    for path in (".config/opencode/opencode.json", "shop/opencode.json"):
        entries = {
            name: {"type": "local", "command": [entry["command"], *entry["args"]], "environment": entry["env"]}  # type: ignore[misc]
            for name, entry in _entries(names)
        }
        yield home / path, json.dumps({"mcp": entries}, indent=2)
    yield (
        home / ".config/goose/config.yaml",
        "extensions:\n"
        + "".join(
            f"  {name}:\n    type: stdio\n    enabled: true\n    cmd: npx\n    args: [-y, {name}]\n"
            for name, _ in _entries(names)
        ),
    )


def _entries(names: Iterator[str]) -> Iterator[tuple[str, dict[str, object]]]:
    for _ in range(SERVERS // FILES):
        name = next(names)
        yield (
            name,
            {
                "command": "npx",
                "args": ["-y", f"@example/{name}"],
                "env": {"API_TOKEN": "${API_TOKEN}", "LEVEL": "info"},
            },
        )


def _toml(name: str, entry: dict[str, object]) -> str:
    return f'[mcp_servers.{name}]\ncommand = "npx"\nargs = {json.dumps(entry["args"])}\n\n[mcp_servers.{name}.env]\nLEVEL = "info"\n\n'


_TAKE = """
import time
start = time.perf_counter()
from interlock.hosts.inventory import take
from interlock.hosts.machine import here
inventory = take(here())
print(time.perf_counter() - start, len({(each.file, each.server) for each in inventory.declarations}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        declared = lay(home)
        environ = {
            "HOME": str(home), "USERPROFILE": str(home), "PATH": os.environ.get("PATH", os.defpath),
            "INTERLOCK_HOME": str(home / ".interlock"), "PYTHONPATH": str(REPOSITORY / "src"),
        }  # fmt: skip
        where = home / "shop" / "deep"

        def run(*words: str) -> str:
            return subprocess.run(
                [sys.executable, *words],
                env=environ,
                cwd=where,
                check=True,
                capture_output=True,
                text=True,
                timeout=120,
            ).stdout

        found = int(run("-c", _TAKE).split()[1])  # not counted: it warms the disk
        taken = median(float(run("-c", _TAKE).split()[0]) for _ in range(runs))
        whole = []
        for _ in range(runs):
            start = time.perf_counter()
            run("-m", "interlock", "inventory", "--machine", "here")
            whole.append(time.perf_counter() - start)
        empty = []
        for _ in range(runs):
            start = time.perf_counter()
            run("-c", "pass")
            empty.append(time.perf_counter() - start)
    print(f"{FILES} files, {declared} servers declared, {found} found")
    print(f"take: {taken:.3f} s")
    print(
        f"the whole command: {median(whole):.3f} s (an empty interpreter: {median(empty):.3f} s, goal: {GOAL_SECONDS:g} s)"
    )
    return 0 if median(whole) <= GOAL_SECONDS else 1


if __name__ == "__main__":
    raise SystemExit(main())
