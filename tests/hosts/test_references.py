"""Variables in every host's spelling, and which two entries are the same server."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from interlock.hosts.adapter import Form
from interlock.hosts.identity import of_command, of_url
from interlock.hosts.references import found, normal

BARE: Sequence[Form] = ("$V", "${V}")


@pytest.mark.parametrize(
    ("text", "forms", "expected"),
    [
        ("${A_B}", (), [("env", "A_B", None)]),
        ("${A:-b c}", (), [("env", "A", "b c")]),
        ("${A:-}", (), [("env", "A", "")]),
        ("${env:A}", (), [("env", "A", None)]),
        ("${env:A:-d}", (), [("env", "A", "d")]),
        ("{env:A}", (), [("env", "A", None)]),
        ("${{ secrets.A }}", (), [("env", "A", None)]),
        ("${input:the-token}", (), [("input", "the-token", None)]),
        ("${file:~/x/y}", (), [("file", "~/x/y", None)]),
        ("{file:/run/secret}", (), [("file", "/run/secret", None)]),
        ("Bearer ${A} and ${B}", (), [("env", "A", None), ("env", "B", None)]),
        ("$A_TOKEN", (), [("env", "A_TOKEN", None)]),
        ("Bearer $A_TOKEN", (), [("env", "A_TOKEN", None)]),
        ("$env:A_TOKEN", (), [("env", "A_TOKEN", None)]),
        ("pa$sword", (), []),
        ("pa$sword", BARE, [("env", "sword", None)]),
        ("a $A_TOKEN b", (), []),
        ("a $A_TOKEN b", BARE, [("env", "A_TOKEN", None)]),
        ("%APPDATA%/x", (), []),
        ("%APPDATA%/x", ("%V%",), [("env", "APPDATA", None)]),
        ("100%", ("%V%",), []),
        ("${workspaceFolder}/x", (), [("env", "workspaceFolder", None)]),
        ("{plain}", (), []),
    ],
)
def test_references(text: str, forms: Sequence[Form], expected: list[tuple[str, str, str | None]]) -> None:
    assert [(each.kind, each.name, each.default) for each in found(text, forms)] == expected


def test_one_spelling() -> None:
    assert normal("x ${env:A} {env:B} ${C:-d}") == "x ${A} ${B} ${C}"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["npx", "-y", "a@1"], ["npx", "a@1"]),
        (["npx", "--yes", "a"], ["npx", "-y", "a@latest"]),
        (["cmd", "/c", "npx", "-y", "a@1"], ["npx", "a@1"]),
        (["C:\\Windows\\System32\\cmd.exe", "/C", "npx.cmd", "a@1"], ["npx", "a@1"]),
        (["/usr/bin/uvx", "s"], ["uvx", "s"]),
        (["node", "/home/ann/s.js"], ["node", "${HOME}/s.js"]),
        (["node", "~/s.js"], ["/opt/node", "${env:HOME}/s.js"]),
        (["node", "${userHome}/s.js"], ["node.exe", "/home/ann/s.js"]),
        (["run", "${A}"], ["run", "${env:A}"]),
        (["run", "{env:A}"], ["run", "${A}"]),
    ],
)
def test_the_same_command(one: list[str], other: list[str]) -> None:
    assert of_command(one, "/home/ann") == of_command(other, "/home/ann")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["npx", "a@1"], ["npx", "a@2"]),
        (["npx", "a"], ["npx", "a", "-y"]),
        (["npx", "a"], ["uvx", "a"]),
        (["/opt/one/server"], ["/opt/two/server"]),
        (["node", "s.js", "--read-only"], ["node", "s.js"]),
        (["run", "${A}"], ["run", "${B}"]),
    ],
)
def test_another_command(one: list[str], other: list[str]) -> None:
    assert of_command(one, "/home/ann") != of_command(other, "/home/ann")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://H.example/mcp", "https://h.example:443/mcp/", True),
        ("${U}", "${env:U}", True),
        ("https://h.example/mcp?team=a", "https://h.example/mcp?team=b", False),
        ("https://h.example/a", "https://h.example/b", False),
        ("http://h.example/mcp", "https://h.example/mcp", False),
    ],
)
def test_urls(one: str, other: str, same: bool) -> None:
    assert (of_url(one) == of_url(other)) is same
