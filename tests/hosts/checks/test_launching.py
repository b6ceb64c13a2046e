"""What a command really starts, and whether the version of it is pinned."""

from __future__ import annotations

import pytest

from interlock.hosts.checks.launching import launch, package, passed_by_name


@pytest.mark.parametrize(
    ("command", "program", "offset", "shell"),
    [
        ("npx -y a", "npx", 0, False),
        ("cmd /c npx -y a", "npx", 2, False),
        ("cmd.exe /d /s /c npx a", "npx", 4, False),
        ("C:\\Windows\\System32\\cmd.exe /C npx a", "npx", 2, False),
        ("env A=1 B=2 npx a", "npx", 3, False),
        ("/usr/bin/env node x.js", "node", 1, False),
        ("sh -c x", "sh", 0, True),
        ("bash -lc x", "bash", 0, True),
        ("bash run.sh", "bash", 0, False),
        ("pwsh -NoProfile -Command x", "pwsh", 0, True),
    ],
)
def test_the_program_behind_wrappers(command: str, program: str, offset: int, shell: bool) -> None:
    found = launch(tuple(command.split(" ")))
    assert found is not None
    assert (found.program, found.offset, found.shell) == (program, offset, shell)


def test_no_command_launches_nothing() -> None:
    assert launch(()) is None
    assert package(()) is None


@pytest.mark.parametrize(
    ("command", "name", "version", "pinned"),
    [
        ("npx -y @scope/server", "@scope/server", "", False),
        ("npx -y @scope/server@latest", "@scope/server", "latest", False),
        ("npx -y @scope/server@^1.2.3", "@scope/server", "^1.2.3", False),
        ("npx -y @scope/server@1", "@scope/server", "1", False),
        ("npx -y @scope/server@1.2.3", "@scope/server", "1.2.3", True),
        ("npx -y server@1.2.3-beta.1 --flag", "server", "1.2.3-beta.1", True),
        ("npx --yes --package=server@1.2.3 start", "server", "1.2.3", True),
        ("npx -p server start", "server", "", False),
        ("npx --registry https://registry.example.com server", "server", "", False),
        ("cmd /c npx -y server", "server", "", False),
        ("npm exec -y -- server@1.2.3", "server", "1.2.3", True),
        ("pnpm dlx server", "server", "", False),
        ("bunx server@2.0.0", "server", "2.0.0", True),
        ("uvx mcp-server-time", "mcp-server-time", "", False),
        ("uvx mcp-server-time@latest", "mcp-server-time", "latest", False),
        ("uvx mcp-server-time@1.2.3", "mcp-server-time", "1.2.3", True),
        ("uvx --from mcp-server-time==1.2.3 mcp-time", "mcp-server-time", "1.2.3", True),
        ("uvx --from mcp-server-time>=1.2 mcp-time", "mcp-server-time", ">=1.2", False),
        ("uvx --python 3.12 server[extra]==2.0", "server", "2.0", True),
        ("uv tool run server", "server", "", False),
        ("pipx run server==1.0", "server", "1.0", True),
        ("uvx --from git+https://example.com/a/b server", "git+https://example.com/a/b", "", False),
        (f"uvx --from git+https://example.com/a/b@{'0123456789' * 4} server", "git+https://example.com/a/b", "0123456789" * 4, True),
        ("docker run -i --rm ghcr.io/a/server", "ghcr.io/a/server", "", False),
        ("docker run -i --rm -e TOKEN ghcr.io/a/server:latest", "ghcr.io/a/server", "latest", False),
        ("docker run -i --rm -v /a:/b --name x ghcr.io/a/server:1.2", "ghcr.io/a/server", "1.2", True),
        ("docker run --rm -i --network=host localhost:5000/server", "localhost:5000/server", "", False),
        ("docker run -i a/server@sha256:abc", "a/server", "sha256:abc", True),
    ],
)  # fmt: skip
def test_packages(command: str, name: str, version: str, pinned: bool) -> None:
    found = package(tuple(command.split(" ")))
    assert found is not None
    assert (found.name, found.version, found.pinned) == (name, version, pinned)


@pytest.mark.parametrize(
    "command",
    [
        "node server.js",
        "npx ./local",
        "npx -y file:../server",
        "uvx ./server",
        "uvx --from . server",
        "uv run server",
        "uv --directory /srv run server",
        "docker compose up",
        "docker exec -i box server",
        "sh -c npx",
        "npx",
        "docker run",
    ],
)
def test_what_is_fetched_by_nobody(command: str) -> None:
    assert package(tuple(command.split(" "))) is None


@pytest.mark.parametrize(
    ("command", "asks"),
    [("npx a", True), ("npx -y a", False), ("npx --yes a", False), ("bunx a", False), ("npm exec a", True)],
)
def test_npx_asks_without_yes(command: str, asks: bool) -> None:
    found = package(tuple(command.split(" ")))
    assert found is not None
    assert found.asks is asks


def test_the_index_is_that_of_the_whole_command() -> None:
    command = ("cmd", "/c", "npx", "-y", "server")
    found = package(command)
    assert found is not None
    assert command[found.index] == "server"


def test_variables_that_docker_takes_from_its_environment() -> None:
    command = ("docker", "run", "-e", "A", "--env", "B", "--env=C", "-e", "D=1", "image", "-e", "E")
    found = launch(command)
    assert found is not None
    assert [(name, command[index]) for name, index in passed_by_name(found)] == [
        ("A", "A"),
        ("B", "B"),
        ("C", "--env=C"),
    ]
