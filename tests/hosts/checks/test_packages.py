"""Packages without a version, with the place of the word that lacks it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.checks.tiny import codes, lay, machine, problems

OURS = {"unpinned-package", "npx-asks"}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"command": "npx", "args": ["-y", "@scope/server"]}, {"unpinned-package"}),
        ({"command": "npx", "args": ["@scope/server"]}, {"unpinned-package", "npx-asks"}),
        ({"command": "npx", "args": ["-y", "@scope/server@1.2.3"]}, set()),
        ({"command": "uvx", "args": ["server"]}, {"unpinned-package"}),
        ({"command": "uvx", "args": ["server==1.2.3"]}, set()),
        ({"command": "docker", "args": ["run", "-i", "a/b"]}, {"unpinned-package"}),
        ({"command": "docker", "args": ["run", "-i", "a/b:1.2.3"]}, set()),
        ({"command": "node", "args": ["server.js"]}, set()),
        ({"url": "https://example.com"}, set()),
        ({"command": "npx", "args": ["server"], "enabled": False}, set()),
    ],
)
def test_found(tmp_path: Path, entry: dict[str, object], expected: set[str]) -> None:
    assert codes(machine(tmp_path), entry) & OURS == expected


def test_what_the_project_has_installed_is_pinned_by_it(tmp_path: Path) -> None:
    made = machine(tmp_path)
    lay(made, "/home/ada/shop/node_modules/@scope/server/package.json", "{}")
    assert "unpinned-package" not in codes(made, {"command": "npx", "args": ["-y", "@scope/server"]})
    assert "unpinned-package" in codes(made, {"command": "npx", "args": ["-y", "@scope/server@latest"]})
    assert "unpinned-package" in codes(made, {"command": "npx", "args": ["-y", "@scope/other"]})


def test_the_word_and_the_remedy_are_named(tmp_path: Path) -> None:
    found = problems(machine(tmp_path), {"command": "npx", "args": ["-y", "@scope/server@latest"]})
    (ours,) = [each for each in found if each.code == "unpinned-package"]
    assert ours.seen == "`npx` runs whatever `latest` is that day of `@scope/server`."
    assert ours.todo == "Write `@scope/server@VERSION`; `npm view @scope/server version` says which is newest."
    assert (ours.field, str(ours.spot)) == ("args.1", "/home/ada/.tiny/mcp.json:7")
