"""References that stay literal, are unset or withheld, and `~`: found where the host does so, and nowhere else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import NOTHING_KNOWN, TINY, codes, machine, problems, program

from interlock.hosts.adapter import ChildEnv, Variables
from interlock.hosts.checks.references import references, without
from interlock.hosts.fact import Fact

OURS = {"variable-literal", "variable-unset", "variable-withheld", "home-literal", "home-unknown"}
ENV = {"PATH": "/usr/bin", "SET": "1", "API_TOKEN": "1"}
NONE = replace(TINY, id="codex", label="Codex", variables=Fact(Variables(forms=()), "O"))
NAMED = replace(TINY, child_env=Fact(ChildEnv(kind="named", names=("PATH", "HOME")), "O"))
REDACTED = replace(TINY, child_env=Fact(ChildEnv(kind="redacted", names=("*TOKEN*", "*SECRET*")), "O"))
BRACES = replace(TINY, variables=Fact(Variables(forms=("{env:V}",), missing="empty"), "O"))
DOCKER = ["run", "-i", "--rm", "-e", "API_TOKEN", "example/server:1.0"]


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("${TOKEN}", ["${V}"]),
        ("Bearer ${env:TOKEN}", ["${env:V}"]),
        ("{env:TOKEN}", ["{env:V}"]),
        ("${TOKEN:-none}", ["${V:-d}"]),
        ("${{ secrets.TOKEN }}", ["${{ secrets.V }}"]),
        ("${input:token}", ["${input:V}"]),
        ("%APPDATA%/x", ["%V%"]),
        ("$HOME/x and $TOKEN", ["$V", "$V"]),
        ("https://example.com/a%20b%E2%80%99c", []),
        ("^[a-z]+$", []),
        ("costs $5 or 100%", []),
        ("\\$HOME", []),
        ('{"json": {"env": 1}}', []),
        ("plain", []),
    ],
)
def test_references_are_told_from_what_only_looks_like_them(text: str, forms: list[str]) -> None:
    assert [each.form for each in references(text)] == forms


def test_what_is_literal_beside_references() -> None:
    assert without("Bearer ${env:A}{file:b}!") == "Bearer !"


@pytest.mark.parametrize(
    ("entry", "adapter", "expected"),
    [
        # The host's own spelling, set: silent.
        ({"command": "/usr/bin/x", "env": {"A": "${SET}"}}, TINY, set()),
        ({"command": "/usr/bin/x", "env": {"A": "${UNSET:-d}"}}, TINY, set()),
        ({"command": "/usr/bin/x", "env": {"A": "${UNSET}"}}, TINY, {"variable-unset"}),
        ({"command": "/usr/bin/x", "env": {"A": "${env:SET}"}}, TINY, {"variable-literal"}),
        ({"command": "/usr/bin/x", "env": {"A": "${SET}"}}, BRACES, {"variable-literal"}),
        ({"command": "/usr/bin/x", "env": {"A": "{env:SET}"}}, BRACES, set()),
        ({"url": "https://example.com", "headers": {"Authorization": "Bearer ${SET}"}}, NONE, {"variable-literal"}),
        ({"url": "https://example.com", "headers": {"Authorization": "Bearer ${SET}"}}, TINY, set()),
        # The right spelling in a field that is not filled in.
        ({"command": "/usr/bin/x", "cwd": "${SET}"}, TINY, {"variable-literal"}),
        # A shell, or mcp-remote, fills it in by itself.
        ({"command": "sh", "args": ["-c", "exec server $HOME ${SET}"]}, NONE, set()),
        ({"command": "bash", "args": ["-lc", "cd ~ && server"]}, TINY, set()),
        (
            {"command": "npx", "args": ["-y", "mcp-remote", "https://example.com", "--header", "A: ${SET}"]},
            NONE,
            set(),
        ),
        # The editor's own names are for editors.
        ({"command": "/usr/bin/x", "args": ["${workspaceFolder}"]}, replace(TINY, id="vscode"), set()),
        ({"command": "/usr/bin/x", "args": ["${workspaceFolder}"]}, TINY, {"variable-unset"}),
        # Passed on by name.
        ({"command": "/usr/bin/x", "env_vars": ["UNSET"]}, TINY, {"variable-unset"}),
        ({"command": "/usr/bin/x", "env_vars": ["SET"]}, TINY, set()),
        # Taken from the environment by the command itself.
        ({"command": "docker", "args": DOCKER}, TINY, set()),
        ({"command": "docker", "args": DOCKER}, NAMED, {"variable-withheld"}),
        ({"command": "docker", "args": DOCKER}, REDACTED, {"variable-withheld"}),
        ({"command": "docker", "args": DOCKER, "env_vars": ["API_TOKEN"]}, NAMED, set()),
        ({"command": "docker", "args": DOCKER, "env": {"API_TOKEN": "${API_TOKEN}"}}, REDACTED, set()),
        ({"command": "docker", "args": ["run", "-e", "OTHER=1", "example/server:1.0"]}, NAMED, set()),
        ({"command": "docker", "args": ["run", "example/server:1.0", "-e", "NOT_OURS"]}, NAMED, set()),
        ({"command": "sh", "args": ["-c", "server --token $API_TOKEN"]}, NAMED, {"variable-withheld"}),
        ({"command": "sh", "args": ["-c", "server $HOME"]}, NAMED, set()),
        # `~`
        ({"command": "~/bin/x"}, TINY, {"home-literal"}),
        ({"command": "/usr/bin/x", "args": ["--dir=~/data"]}, TINY, {"home-literal"}),
        ({"command": "/usr/bin/x", "args": ["file~", "a~b", "~ish"]}, TINY, set()),
        ({"command": "~/bin/x"}, replace(TINY, expands_home=Fact(True, "O")), set()),
        ({"command": "~/bin/x"}, NOTHING_KNOWN, {"home-unknown"}),
        # Nothing known, nothing said.
        ({"command": "/usr/bin/x", "env": {"A": "${env:UNSET} $UNSET"}}, NOTHING_KNOWN, set()),
        ({"command": "docker", "args": DOCKER}, NOTHING_KNOWN, set()),
        # What does not run needs no variables.
        ({"command": "/usr/bin/x", "env": {"A": "${env:SET}"}, "enabled": False}, TINY, set()),
    ],
)
def test_found(tmp_path: Path, entry: dict[str, object], adapter: object, expected: set[str]) -> None:
    made = machine(tmp_path, environ=ENV)
    program(made, "/usr/bin/x")
    assert codes(made, entry, adapter) & OURS == expected  # type: ignore[arg-type]


def test_another_machines_environment_is_not_known(tmp_path: Path) -> None:
    assert codes(machine(tmp_path), {"command": "/usr/bin/x", "env": {"A": "${UNSET}"}}) & OURS == set()


def test_the_remedy_is_in_the_hosts_own_words(tmp_path: Path) -> None:
    made = machine(tmp_path, environ=ENV)
    entry = {"url": "https://example.com", "headers": {"Authorization": "Bearer ${env:SET}"}}
    (ours,) = [each for each in problems(made, entry) if each.code == "variable-literal"]
    assert ours.seen == "`${env:SET}` stays as it is: Tiny does not know this spelling."
    assert ours.todo == "Write `${SET}`."
    assert (ours.field, ours.severity) == ("headers.Authorization", "problem")
    assert str(ours.spot) == "/home/ada/.tiny/mcp.json:6"
    (codex,) = [each for each in problems(made, entry, NONE) if each.code == "variable-literal"]
    assert codex.todo == "Use `bearer_token_env_var` or `env_http_headers`, which name the variable."


@pytest.mark.parametrize(
    ("missing", "why"),
    [
        ("literal", "The text `${UNSET}` itself is used."),
        ("empty", "It becomes an empty text."),
        (None, "What becomes of it on this host is not known."),
    ],
)
def test_an_unset_variable_says_what_becomes_of_it(tmp_path: Path, missing: str | None, why: str) -> None:
    host = replace(TINY, variables=Fact(Variables(forms=("${V}",), missing=missing), "O"))  # type: ignore[arg-type]
    found = problems(machine(tmp_path, environ=ENV), {"command": "/usr/bin/x", "env": {"A": "${UNSET}"}}, host)
    assert [each.why for each in found if each.code == "variable-unset"] == [why]


@pytest.mark.parametrize(
    ("entry", "todo"),
    [
        ({"command": "~/bin/x"}, "Write `/home/ada/bin/x`."),
        ({"command": "/usr/bin/x", "args": ["--dir=~/data"]}, "Write `--dir=/home/ada/data`."),
        ({"command": "/usr/bin/x", "cwd": "~/work"}, "Write `/home/ada/work`."),
        ({"command": "/usr/bin/x", "env": {"DIR": "~/own"}}, "Write `/home/ada` for `~`."),
    ],
)
def test_the_whole_path_that_the_entry_needs(tmp_path: Path, entry: dict[str, object], todo: str) -> None:
    (found,) = [each for each in problems(machine(tmp_path), entry) if each.code == "home-literal"]
    assert found.todo == todo
