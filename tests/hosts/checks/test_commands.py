"""Programs that are not there, are not on the PATH that the host has, or are of another system."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import TINY, checked, codes, lay, machine, problems, program, servers

from interlock.hosts.adapter import Adapter

OURS = {
    "command-not-found", "command-not-on-gui-path", "command-relative", "cwd-missing", "shim-without-cmd", "foreign-path",
}  # fmt: skip
GUI = replace(TINY, gui=True)
HOMEBREW = "/opt/homebrew/bin:/usr/bin:/home/ada/.nvm/bin"
WINDOWS = {"PATH": "C:\\Program Files\\nodejs;C:\\tools", "PATHEXT": ".EXE;.CMD"}


@pytest.mark.parametrize(
    ("entry", "adapter", "expected"),
    [
        ({"command": "node"}, TINY, set()),
        ({"command": "nodee"}, TINY, {"command-not-found"}),
        ({"command": "/usr/bin/node"}, TINY, set()),
        ({"command": "/usr/bin/nodee"}, TINY, {"command-not-found"}),
        ({"command": "/usr/lib/notes.txt"}, TINY, {"command-not-found"}),
        ({"command": "/usr/bin"}, TINY, {"command-not-found"}),
        ({"command": ""}, TINY, {"command-not-found"}),
        # The version manager's folder is the terminal's alone.
        ({"command": "npx"}, TINY, set()),
        ({"command": "npx"}, GUI, {"command-not-on-gui-path"}),
        ({"command": "node"}, GUI, set()),
        ({"command": "brewed"}, GUI, set()),
        ({"command": "nowhere"}, GUI, {"command-not-found"}),
        ({"command": "npx", "env": {"PATH": "/home/ada/.nvm/bin"}}, GUI, set()),
        ({"command": "nowhere", "env": {"PATH": "${PATH}:/x"}}, TINY, set()),
        # Relative
        ({"command": "./serve.sh"}, TINY, {"command-relative"}),
        ({"command": "./missing.sh"}, TINY, {"command-not-found"}),
        ({"command": "./serve.sh", "cwd": "/home/ada/shop"}, TINY, set()),
        ({"command": "node", "cwd": "/home/ada/gone"}, TINY, {"cwd-missing"}),
        ({"command": "node", "cwd": "/home/ada/shop"}, TINY, set()),
        # Left to other checks
        ({"command": "${HOME}/bin/x"}, TINY, set()),
        ({"command": "~/bin/x"}, TINY, set()),
        ({"url": "https://example.com"}, TINY, set()),
        ({"command": "nodee", "enabled": False}, TINY, set()),
        # Of another system
        ({"command": "C:\\nodejs\\node.exe"}, TINY, {"foreign-path"}),
        ({"command": "node", "args": ["C:/Users/ada/server.js"]}, TINY, {"foreign-path"}),
        ({"command": "node", "args": ["--root=D:\\data"]}, TINY, {"foreign-path"}),
        ({"command": "node", "args": ["/Users/ada/server.js"]}, TINY, {"foreign-path"}),
        ({"command": "node", "args": ["/home/ada/missing.js"]}, TINY, set()),
        ({"command": "/mnt/c/x/node.exe", "args": ["C:\\x\\server.js"]}, TINY, set()),
        ({"command": "node", "args": ["a:b", "http://x", "c:"]}, TINY, set()),
        ({"command": "sh", "args": ["-c", "node C:\\x"]}, TINY, set()),
        ({"command": "docker", "args": ["run", "-v", "C:\\x:/x", "a/b:1"]}, TINY, set()),
    ],
)
def test_on_linux(tmp_path: Path, entry: dict[str, object], adapter: Adapter, expected: set[str]) -> None:
    made = machine(tmp_path, environ={"PATH": HOMEBREW})
    for each in (
        "/usr/bin/node",
        "/usr/bin/sh",
        "/usr/bin/docker",
        "/home/ada/.nvm/bin/npx",
        "/opt/homebrew/bin/brewed",
    ):
        program(made, each)
    program(made, "/home/ada/shop/serve.sh")
    program(made, "/mnt/c/x/node.exe")
    lay(made, "/usr/lib/notes.txt", "x")
    assert codes(made, entry, adapter) & OURS == expected


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "npx", "args": ["-y", "a"]}, {"shim-without-cmd"}),
        ({"command": "npx.cmd", "args": ["-y", "a"]}, {"shim-without-cmd"}),
        ({"command": "cmd", "args": ["/c", "npx", "-y", "a"]}, set()),
        ({"command": "cmd", "args": ["/c", "nowhere"]}, {"command-not-found"}),
        ({"command": "node", "args": ["server.js"]}, set()),
        ({"command": "uvx", "args": ["a"]}, set()),
        ({"command": "C:\\tools\\uvx.exe"}, set()),
        ({"command": "C:\\tools\\gone.exe"}, {"command-not-found"}),
        ({"command": "node", "args": ["/home/ada/server.js"]}, {"foreign-path"}),
        ({"command": "/usr/bin/node"}, {"foreign-path"}),
        ({"command": "wsl", "args": ["/home/ada/server"]}, set()),
        ({"command": "node", "args": ["C:\\x\\server.js", "/flag"]}, set()),
    ],
)
def test_on_windows(tmp_path: Path, entry: dict[str, object], expected: set[str]) -> None:
    made = machine(tmp_path, "windows", WINDOWS)
    for each in (
        "C:\\Program Files\\nodejs\\node.exe", "C:\\Program Files\\nodejs\\npx.cmd", "C:\\tools\\uvx.exe",
        "C:\\tools\\cmd.exe", "C:\\tools\\wsl.exe",
    ):  # fmt: skip
        program(made, each)
    assert codes(made, entry) & OURS == expected


def test_a_windows_desktop_has_the_users_path(tmp_path: Path) -> None:
    made = machine(tmp_path, "windows", WINDOWS)
    program(made, "C:\\tools\\uvx.exe")
    assert codes(made, {"command": "uvx", "args": ["a"]}, GUI) & OURS == set()


def test_without_a_known_path_nothing_is_said_of_names(tmp_path: Path) -> None:
    assert codes(machine(tmp_path), {"command": "nowhere"}) & OURS == set()


def test_a_projects_relative_command_is_found_from_the_project(tmp_path: Path) -> None:
    made = machine(tmp_path)
    program(made, "/home/ada/shop/serve.sh")
    servers(made, {"one": {"command": "./serve.sh"}, "two": {"command": "./gone.sh"}}, "/home/ada/shop/.tiny/mcp.json")
    one, two = checked(made).declarations
    assert {each.code for each in one.problems} & OURS == set()
    assert {each.code for each in two.problems} & OURS == {"command-not-found"}


def test_the_full_path_is_the_remedy(tmp_path: Path) -> None:
    made = machine(tmp_path, "macos", {"PATH": "/Users/ada/.nvm/bin:/usr/bin"})
    program(made, "/Users/ada/.nvm/bin/npx")
    (found,) = [each for each in problems(made, {"command": "npx"}, GUI) if each.code in OURS]
    assert (found.seen, found.todo) == ("`npx` is in /Users/ada/.nvm/bin only.", "Write `/Users/ada/.nvm/bin/npx`.")
    assert (str(found.spot), found.field) == ("/Users/ada/.tiny/mcp.json:4", "command")
