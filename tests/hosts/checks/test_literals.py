"""Secrets in plain text: found in every field, never shown, and worse where others can see the file."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import checked, codes, lay, machine, problems, servers

from interlock.hosts.checks import exposure
from interlock.hosts.checks.literals import masked, masked_url

TOKEN = "gh" + "p_" + "A1b2" * 9
OPENAI = "sk" + "-" + "proj" + "a1B2" * 8
OURS = {"literal-secret", "placeholder-left"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "x", "env": {"GITHUB_TOKEN": TOKEN}}, {"literal-secret"}),
        ({"command": "x", "env": {"ANYTHING": OPENAI}}, {"literal-secret"}),
        ({"command": "x", "env": {"DB_PASSWORD": "hunter2"}}, {"literal-secret"}),
        ({"url": "https://example.com", "headers": {"Authorization": f"Bearer {TOKEN}"}}, {"literal-secret"}),
        ({"url": "https://example.com", "headers": {"X-Api-Key": "abc123def"}}, {"literal-secret"}),
        # In a field that this host does not read.
        ({"url": "https://example.com", "http_headers": {"X-Api-Key": "abc123def"}}, {"literal-secret"}),
        ({"url": f"https://example.com/mcp?api_key={OPENAI}"}, {"literal-secret"}),
        ({"url": "https://ada:wonder@example.com/mcp"}, {"literal-secret"}),
        ({"command": "x", "args": ["--api-key", "abc123def"]}, {"literal-secret"}),
        ({"command": "x", "args": [f"--api-key={OPENAI}"]}, {"literal-secret"}),
        ({"command": "docker", "args": ["run", "-e", f"TOKEN={TOKEN}", "a/b:1"]}, {"literal-secret"}),
        ({"command": "x", "args": ["--header", "X-Api-Key: abc123def"]}, {"literal-secret"}),
        ({"command": "sh", "args": ["-c", f"TOKEN={TOKEN} server"]}, {"literal-secret"}),
        ({"command": "x", "args": ["postgresql://ada:wonder@db.example.com/shop"]}, {"literal-secret"}),
        # References, in whichever host's spelling.
        ({"command": "x", "env": {"GITHUB_TOKEN": "${GITHUB_TOKEN}"}}, set()),
        ({"command": "x", "env": {"GITHUB_TOKEN": "${env:GITHUB_TOKEN}"}}, set()),
        ({"command": "x", "env": {"GITHUB_TOKEN": "{env:GITHUB_TOKEN}"}}, set()),
        ({"command": "x", "env": {"GITHUB_TOKEN": "$GITHUB_TOKEN"}}, set()),
        ({"url": "https://example.com", "headers": {"Authorization": "Bearer ${input:token}"}}, set()),
        ({"url": "https://example.com?api_key=${KEY}"}, set()),
        ({"command": "x", "args": ["--header", "Authorization: Bearer ${TOKEN}"]}, set()),
        # No secrets.
        ({"command": "x", "env": {"LOG_LEVEL": "debug", "MAX_TOKENS": "4096", "TOKEN_FILE": "/run/token"}}, set()),
        ({"command": "x", "env": {"API_TOKEN": "/run/secrets/token"}}, set()),
        ({"command": "x", "env": {"API_KEY": "dummy", "DB_PASSWORD": "postgres"}}, set()),
        ({"command": "x", "env": {"PROJECT_ID": "6f1c2c1e-7f0a-4b6e-9c5d-1f2e3d4c5b6a"}}, set()),
        ({"command": "npx", "args": ["-y", "@scope/server@2026.1.1", "/home/ada/Some-Long-Project-2024"]}, set()),
        ({"command": "docker", "args": ["run", "a/b@sha256:" + "0123456789abcdef" * 4]}, set()),
        ({"url": "https://example.com/mcp?version=2&name=shop"}, set()),
        # Not filled in.
        ({"command": "x", "env": {"GITHUB_TOKEN": "<YOUR_TOKEN>"}}, {"placeholder-left"}),
        ({"command": "x", "env": {"GITHUB_TOKEN": "your-token-here"}}, {"placeholder-left"}),
        ({"command": "x", "env": {"API_KEY": "YOUR_API_KEY"}}, {"placeholder-left"}),
        ({"command": "x", "args": ["--api-key", "xxxxxxxx"]}, {"placeholder-left"}),
        ({"url": "https://example.com", "headers": {"Authorization": "Bearer <token>"}}, {"placeholder-left"}),
    ],
)  # fmt: skip
def test_found(tmp_path: Path, entry: Mapping[str, object], expected: set[str]) -> None:
    assert codes(machine(tmp_path), entry) & OURS == expected


def test_no_text_of_a_problem_holds_the_value(tmp_path: Path) -> None:
    entry = {
        "command": "x",
        "args": ["--api-key", OPENAI, f"--header=Authorization: Bearer {TOKEN}"],
        "env": {"GITHUB_TOKEN": TOKEN, "DB_PASSWORD": "hunter2"},
    }
    found = problems(machine(tmp_path), entry)
    assert len([each for each in found if each.code == "literal-secret"]) == 4
    for each in found:
        text = f"{each.seen}{each.why}{each.todo}{each.field}"
        assert TOKEN not in text
        assert OPENAI not in text
        assert "hunter2" not in text


def test_a_secret_counts_also_where_the_entry_does_not_run(tmp_path: Path) -> None:
    assert "literal-secret" in codes(machine(tmp_path), {"command": "x", "env": {"A_TOKEN": TOKEN}, "enabled": False})


def test_a_secret_counts_also_where_the_entry_cannot_be_read(tmp_path: Path) -> None:
    assert "literal-secret" in codes(machine(tmp_path), {"env": {"A_TOKEN": TOKEN}})
    assert "literal-secret" in codes(machine(tmp_path), {"command": 7, "args": ["--api-key", "abc123def"]})
    assert "literal-secret" not in codes(machine(tmp_path), {"env": {"A_TOKEN": "${A_TOKEN}", "B": 7}, "url": 7})


def test_the_place_is_the_value_not_the_entry(tmp_path: Path) -> None:
    (found,) = [
        each
        for each in problems(machine(tmp_path), {"command": "x", "env": {"A_TOKEN": TOKEN}})
        if each.code == "literal-secret"
    ]
    assert (str(found.spot), found.field) == ("/home/ada/.tiny/mcp.json:6", "env.A_TOKEN")


@pytest.mark.skipif(os.name != "posix", reason="file modes of POSIX")
@pytest.mark.parametrize(
    ("mode", "above", "severity"),
    [(0o644, 0o755, "problem"), (0o600, 0o755, "warning"), (0o644, 0o700, "warning")],
)
def test_it_is_worse_where_others_can_read_the_file(tmp_path: Path, mode: int, above: int, severity: str) -> None:
    made = machine(tmp_path)
    path = servers(made, {"one": {"command": "x", "env": {"A_TOKEN": TOKEN}}})
    os.chmod(made.real(path), mode)
    os.chmod(made.real("/home/ada/.tiny"), above)
    for folder in ("/home", "/home/ada"):
        os.chmod(made.real(folder), 0o755)
    (found,) = [each for each in checked(made).declarations[0].problems if each.code == "literal-secret"]
    assert found.severity == severity


@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_it_is_worse_where_git_tracks_the_file(tmp_path: Path, version: str) -> None:
    made = machine(tmp_path)
    path = servers(made, {"one": {"command": "x", "env": {"A_TOKEN": TOKEN}}}, "/home/ada/shop/.tiny/mcp.json")
    os.chmod(made.real(path), 0o600)
    repository = made.real("/home/ada/shop")

    def git(*words: str) -> None:
        subprocess.run(["git", "-C", repository, *words], check=True, capture_output=True, timeout=30)

    git("init", "-q")
    git("update-index", "--index-version", version)
    lay(made, "/home/ada/shop/.tiny/aaa.txt", "x")
    lay(made, "/home/ada/shop/z.txt", "x")
    git("add", ".tiny/aaa.txt", "z.txt")
    assert not exposure.tracked(made.real(path))
    git("add", ".")
    assert exposure.tracked(made.real(path))
    assert exposure.tracked(made.real("/home/ada/shop/z.txt"))
    assert not exposure.tracked(os.path.join(repository, "other.txt"))
    (found,) = [each for each in checked(made).declarations[0].problems if each.code == "literal-secret"]
    assert found.severity == "problem"
    assert found.why.startswith("Git tracks the file")


def test_a_damaged_index_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "file").write_text("x")
    for content in (b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\x09" + b"x" * 70, b"other"):
        (tmp_path / ".git" / "index").write_bytes(content)
        assert not exposure.tracked(str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("npx", "-y", "server"), ("npx", "-y", "server")),
        (("x", "--api-key", "abc123def"), ("x", "--api-key", "****")),
        (("x", f"--api-key={OPENAI}"), ("x", "--api-key=****")),
        (("docker", "run", "-e", f"TOKEN={TOKEN}"), ("docker", "run", "-e", "TOKEN=****")),
        (("x", "--header", f"Authorization: Bearer {TOKEN}"), ("x", "--header", "Authorization: ****")),
        (("sh", "-c", f"TOKEN={TOKEN} server"), ("sh", "-c", "TOKEN=****")),
        (("x", "postgresql://ada:wonder@db/shop"), ("x", "****")),
        (("x", "https://example.com/?q=abc"), ("x", "https://example.com/?q=****")),
    ],
)
def test_a_command_is_shown_without_secrets(command: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert masked(command) == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://example.com/mcp", "https://example.com/mcp"),
        ("https://ada:wonder@example.com/mcp", "https://****@example.com/mcp"),
        ("https://example.com/mcp?key=abc&b=${B}&c=", "https://example.com/mcp?key=****&b=${B}&c="),
        ("https://example.com/s/" + "qW3eR7tY9uI2oP4aS6dF8" + "/mcp", "https://example.com/s/****/mcp"),
        ("https://example.com/mcp#" + TOKEN, "https://example.com/mcp"),
        ("${env:ENDPOINT}", "${env:ENDPOINT}"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, expected: str) -> None:
    assert masked_url(url) == expected


COMMAND_LINES = {
    "one word": ("npx -y server --token VALUE", "npx -y server --token ****"),
    "variable in front": ("API_TOKEN=VALUE npx server", "API_TOKEN=****"),
    "no secret": ("/opt/My App/run me", "/opt/My App/run me"),
}


@pytest.mark.parametrize("case", COMMAND_LINES)
def test_a_whole_command_line_as_the_program_is_shown_without_its_secret(case: str) -> None:
    written, shown = COMMAND_LINES[case]
    assert masked((written.replace("VALUE", "S02rJGFdLc3Hq"),)) == (shown,)


@pytest.mark.parametrize(
    "words",
    [
        ("--header", "Cookie: s=VALUE"),
        ("-H 'X-Api-Key: VALUE' x",),
        ("-c", "export TOKEN=VALUE; npx x"),
        ('{"token":"VALUE"}',),
    ],
)
def test_an_argument_with_a_secret_inside_is_shown_without_it(words: tuple[str, ...]) -> None:
    written = tuple(word.replace("VALUE", "S02rJGFdLc3Hq") for word in words)
    assert "S02rJGFdLc3Hq" not in " ".join(masked(("x", *written)))


def test_what_stands_in_the_place_of_a_port_is_not_shown() -> None:
    assert masked_url("https://me:S02rJGFdLc3Hq/mcp") == "https://me:****/mcp"
    assert masked_url("https://example.com:8443/mcp") == "https://example.com:8443/mcp"
    assert masked_url("https://[::1]:8443/mcp") == "https://[::1]:8443/mcp"
    assert masked_url("https://example.com:${PORT}/mcp") == "https://example.com:${PORT}/mcp"
