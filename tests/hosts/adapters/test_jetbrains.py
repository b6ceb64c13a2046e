from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.machine import Platform

ONE, TWO = {"command": "one"}, {"command": "two"}


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
def test_three_products_do_not_touch_each_other(tmp_path: Path, platform: Platform) -> None:
    on = fake.machine(tmp_path, platform)
    files = [
        on.user(".junie", "mcp", "mcp.json"),
        on.user(".ai", "mcp", "mcp.json"),
        on.join(on.folder, ".air", "mcp.json"),
    ]
    for file in files:
        fake.put(on, file, {"mcpServers": {"a": ONE}})
    reading = fake.look("jetbrains", on)
    assert fake.states(reading) == {("a", file): "effective" for file in files}
    assert "precedence-unknown" not in fake.codes(reading)


@pytest.mark.parametrize(
    ("project", "user"),
    [
        ((".junie", "mcp", "mcp.json"), (".junie", "mcp", "mcp.json")),
        ((".ai", "mcp", "mcp.json"), (".ai", "mcp", "mcp.json")),
    ],
)
def test_of_one_product_it_is_in_doubt_which_file_wins(
    tmp_path: Path, project: tuple[str, ...], user: tuple[str, ...]
) -> None:
    on = fake.machine(tmp_path)
    lower = fake.put(on, on.user(*user), {"mcpServers": {"a": ONE}})
    upper = fake.put(on, on.join(on.folder, *project), {"mcpServers": {"a": TWO}})
    reading = fake.look("jetbrains", on)
    assert fake.states(reading) == {("a", upper): "effective", ("a", lower): "shadowed"}
    assert [[problem.code for problem in each.problems] for each in reading.declarations] == [
        ["precedence-unknown"]
    ] * 2


def test_servers_as_they_are_written_for_junie(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("jetbrains", fake.stdio(env=fake.TOKEN, deny=("put",)), on)
    assert made.entry == {"command": "uvx", "args": ["issues-mcp"], "env": {"LEVEL": "info"}}
    assert fake.lost(made) == {"transports.stdio.env.TOKEN": True, "capability.tools.deny": True}
    assert fake.back("jetbrains", made).command == ("uvx", "issues-mcp")
    remote = fake.written("jetbrains", fake.http(), on)
    assert remote.entry == {}
    assert fake.lost(remote) == {"transports.http": True}
    assert "TOKEN" in fake.written("jetbrains", None, on).notes[0]
