"""Reading every host of a machine: complete whatever one of them does, and without what a neighbour has already."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.checks.tiny import TINY, lay, machine, place, program, servers

from interlock.hosts import inventory as inventory_
from interlock.hosts import registry
from interlock.hosts.declaration import Declaration
from interlock.hosts.entry import Entry
from interlock.hosts.inventory import leave_out, past_interlock, take
from interlock.hosts.machine import Machine
from interlock.hosts.neighbours import machines, name

SECRET = "gh" + "p_" + "Z9y8" * 9
NPX = {"command": "npx", "args": ["-y", "server@1.0.0"]}
OTHER = replace(TINY, id="other", label="Other", places=(place("user", ".other/mcp.json"),))


@pytest.fixture
def tiny_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """`tiny` and `other` are the only hosts there are."""
    hosts = {"tiny": TINY, "other": OTHER}
    monkeypatch.setattr(registry, "IDS", tuple(hosts))
    monkeypatch.setattr(registry, "find", hosts.get)


@pytest.mark.usefixtures("tiny_hosts")
def test_every_host_in_order(tmp_path: Path) -> None:
    made = machine(tmp_path)
    servers(made, {"one": NPX, "two": {"url": "https://example.com"}})
    servers(made, {"three": NPX}, "~/.other/mcp.json")
    inventory = take(made)
    assert [(each.host, each.server, each.state) for each in inventory.declarations] == [
        ("tiny", "one", "effective"),
        ("tiny", "two", "effective"),
        ("other", "three", "effective"),
    ]
    assert inventory.problems == []
    assert [each.adapter.id for each in take(made, ["other"]).readings] == ["other"]


@pytest.mark.usefixtures("tiny_hosts")
def test_an_unknown_host_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        take(machine(tmp_path), ["nobody"])


def test_one_hosts_surprise_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(raw: Mapping[str, object]) -> Entry:
        raise RuntimeError(f"surprised by {raw}")

    hosts = {"tiny": replace(TINY, read=explode), "other": OTHER}
    monkeypatch.setattr(registry, "IDS", tuple(hosts))
    monkeypatch.setattr(registry, "find", hosts.get)
    made = machine(tmp_path)
    servers(made, {"one": {"command": "x", "env": {"A_TOKEN": SECRET}}})
    servers(made, {"three": NPX}, "~/.other/mcp.json")
    inventory = take(made)
    assert [each.server for each in inventory.declarations] == ["three"]
    (problem,) = inventory.problems
    assert (problem.code, problem.severity) == ("host-failed", "warning")
    assert problem.seen.startswith("Tiny: RuntimeError at explode:")
    assert SECRET not in str(problem)


def test_a_check_that_fails_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def explode(declaration: Declaration, _machine: Machine) -> list[object]:
        raise RuntimeError(declaration.host)

    hosts = {"tiny": replace(TINY, entry_problems=explode), "other": OTHER}  # type: ignore[arg-type]
    monkeypatch.setattr(registry, "IDS", tuple(hosts))
    monkeypatch.setattr(registry, "find", hosts.get)
    made = machine(tmp_path)
    servers(made, {"one": {"command": "npx", "args": ["server"]}})
    servers(made, {"three": {"command": "npx", "args": ["server"]}}, "~/.other/mcp.json")
    inventory = take(made)
    assert [each.code for each in inventory.problems] == ["host-failed"]
    for declaration in inventory.declarations:
        assert "unpinned-package" in {each.code for each in declaration.problems}


@pytest.mark.usefixtures("tiny_hosts")
def test_the_wrong_key_is_an_entry_of_its_own(tmp_path: Path) -> None:
    made = machine(tmp_path)
    lay(made, "~/.tiny/mcp.json", json.dumps({"servers": {"one": {"command": "x"}}}))
    (declaration,) = take(made).declarations
    assert (declaration.server, declaration.state) == ("one", "never-read")


@pytest.mark.usefixtures("tiny_hosts")
def test_a_neighbour_with_the_same_project_does_not_repeat_it(tmp_path: Path) -> None:
    made = machine(tmp_path)
    other = replace(made, home="/home/bob")
    servers(made, {"mine": NPX})
    lay(other, "/home/bob/.tiny/mcp.json", json.dumps({"mcpServers": {"his": NPX}}))
    servers(made, {"ours": NPX}, "/home/ada/shop/.tiny/mcp.json")
    first, second = take(made), take(other)
    assert [each.server for each in second.declarations] == ["ours", "his"]
    leave_out(second, first)
    assert [each.server for each in second.declarations] == ["his"]
    assert [each.server for each in first.declarations] == ["ours", "mine"]


@pytest.mark.usefixtures("tiny_hosts")
def test_past_interlock_is_marked_afterwards(tmp_path: Path) -> None:
    made = machine(tmp_path)
    servers(made, {"interlock": {"command": "interlock", "args": ["connect"]}, "one": NPX})
    inventory = take(made)
    past_interlock(inventory, {"one": Entry(transport="stdio", command=("npx", "server"))})
    marked = [
        each.server for each in inventory.declarations if "also-direct" in {problem.code for problem in each.problems}
    ]
    assert marked == ["one"]


def test_a_wsl_has_the_windows_around_it_for_a_neighbour(tmp_path: Path) -> None:
    wsl = Machine(
        platform="linux", home="/home/ada", folder="/mnt/c/Users/Ada/shop", environ={"WSL_DISTRO_NAME": "Ubuntu"},
        surrounding="wsl", root=str(tmp_path),
    )  # fmt: skip
    (tmp_path / "mnt/c/Users/Ada/shop").mkdir(parents=True)
    (tmp_path / "mnt/c/Users/Public").mkdir()
    first, windows = machines(wsl)
    assert (first, name(first)) == (wsl, "wsl")
    assert (windows.platform, windows.home, windows.folder) == ("windows", "C:\\Users\\Ada", "C:\\Users\\Ada\\shop")
    assert name(windows) == "windows:Ada"
    lay(
        wsl,
        "/mnt/c/Users/Ada/.cursor/mcp.json",
        json.dumps({"mcpServers": {"one": {"command": "npx", "args": ["-y", "a"]}}}),
    )
    (declaration,) = take(windows, ["cursor"]).declarations
    assert (declaration.server, declaration.file) == ("one", "C:\\Users\\Ada\\.cursor\\mcp.json")
    codes = {each.code for each in declaration.problems}
    assert "shim-without-cmd" in codes
    assert not codes & {"command-not-found", "file-writable-by-others"}


def test_a_machine_alone_has_no_neighbours(tmp_path: Path) -> None:
    made = machine(tmp_path)
    assert machines(made) == [made]
    assert name(made) == "linux"


def test_servers_of_plugins_are_among_the_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from interlock.hosts.plugins import finding
    from interlock.hosts.plugins.plugin import Plugin

    host = replace(TINY, plugins=("claude-code",))
    monkeypatch.setattr(registry, "IDS", ("tiny",))
    monkeypatch.setattr(registry, "find", {"tiny": host}.get)
    made = machine(tmp_path)
    servers(made, {"own": NPX})
    brought = replace_scope(take(made, plugins=False).declarations[0])
    plugin = Plugin(kind="claude-code", host="tiny", name="pack", version="1.0", servers=[brought])
    monkeypatch.setattr(finding, "found", lambda _machine, _hosts: [plugin])
    assert [(each.server, each.scope) for each in take(made).declarations] == [("own", "user"), ("brought", "plugin")]
    assert [each.server for each in take(made, plugins=False).declarations] == ["own"]


def replace_scope(declaration: Declaration) -> Declaration:
    return Declaration(
        host="tiny", scope="plugin", place=declaration.place, spot=declaration.spot, server="brought",
        entry=Entry(transport="stdio", command=("uvx", "other==1.0")), source="pack@1.0",
    )  # fmt: skip


def test_plugins_that_cannot_be_read_hide_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from interlock.hosts.plugins import finding

    def explode(*_: object) -> None:
        raise RuntimeError

    host = replace(TINY, plugins=("claude-code",))
    monkeypatch.setattr(registry, "IDS", ("tiny",))
    monkeypatch.setattr(registry, "find", {"tiny": host}.get)
    monkeypatch.setattr(finding, "found", explode)
    made = machine(tmp_path)
    servers(made, {"own": NPX})
    inventory = take(made)
    assert [each.server for each in inventory.declarations] == ["own"]
    assert [each.code for each in inventory.problems] == ["host-failed"]


def test_reading_changes_nothing(tmp_path: Path) -> None:
    made = machine(tmp_path, environ={"PATH": "/usr/bin"})
    program(made, "/usr/bin/npx")
    servers(made, {"one": NPX}, "~/.cursor/mcp.json")
    lay(made, "~/.codex/config.toml", '[mcp_servers.one]\ncommand = "npx"\n')
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("*") if path.is_file()}
    take(made, ["cursor", "codex"])
    after = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in tmp_path.rglob("*") if path.is_file()}
    assert before == after


def test_all_known_hosts_are_read_on_an_empty_machine(tmp_path: Path) -> None:
    for platform in ("linux", "macos", "windows"):
        inventory = inventory_.take(machine(tmp_path, platform))
        assert (inventory.declarations, inventory.problems) == ([], [])
        assert [each.adapter.id for each in inventory.readings] == list(registry.IDS)


@pytest.mark.usefixtures("tiny_hosts")
def test_tools_that_interlock_remembers_make_names_exact(tmp_path: Path) -> None:
    made = machine(tmp_path)
    servers(made, {"a.b": {"command": "uvx", "args": ["one==1.0"]}, "a_b": {"command": "uvx", "args": ["two==1.0"]}})

    def collisions(inventory: inventory_.Inventory) -> list[str]:
        return [problem.seen for problem in inventory.declarations[0].problems if problem.code == "name-collision"]

    served = {
        "one": Entry(transport="stdio", command=("uvx", "one")), "two": Entry(transport="stdio", command=("uvx", "two")),
    }  # fmt: skip
    inventory = take(made)
    assert collisions(inventory) == [
        "`a.b` and `a_b` are both `a_b` on Tiny: tools of one name meet, and one of them is lost."
    ]
    past_interlock(inventory, served, {"one": ["x"], "two": ["y"]})
    assert collisions(inventory) == []
    past_interlock(inventory, served, {"one": ["x"], "two": ["x"]})
    assert collisions(inventory) == ["`a.b/x` and `a_b/x` are both `mcp__a_b__x` on Tiny: `a_b/x` is lost."]


def test_what_the_benchmark_lays_is_read_whole(tmp_path: Path) -> None:
    """40 files with 400 servers: a host that stops reading one of them would make the figure look good."""
    source = Path(__file__).parents[2] / "benchmarks" / "inventory.py"
    spec = importlib.util.spec_from_file_location("benchmark_inventory", source)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    benchmark.lay(tmp_path / "home/ada")
    found = take(
        Machine(platform="linux", home="/home/ada", folder="/home/ada/shop/deep", environ={}, root=str(tmp_path))
    )
    assert len({each.file for each in found.declarations}) == 40
    assert len({each.server for each in found.declarations}) == 400
    assert found.problems == []
