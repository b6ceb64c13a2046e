from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.dialect import standing
from interlock.hosts.machine import Platform
from interlock.hosts.writing import Edit, FileEdits
from interlock.manifest.config import Policy

CONFIG = """\
name: Local Assistant
version: 1.0.0
schema: v1
mcpServers:
  - name: one   # mine
    command: one
    args: ["-x"]
    connectionTimeout: 1500
  - name: two
    type: streamable-http
    url: https://x.example/mcp
    requestOptions:
      headers: {X-Team: a}
"""


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
def test_a_list_and_two_folders_of_blocks(tmp_path: Path, platform: Platform) -> None:
    on = fake.machine(tmp_path, platform)
    main = fake.put(on, on.user(".continue", "config.yaml"), CONFIG)
    block = fake.put(
        on, on.user(".continue", "mcpServers", "b.yaml"), "mcpServers:\n  - {name: block, command: three}\n"
    )
    shaped = fake.put(
        on, on.join(on.folder, ".continue", "mcpServers", "c.json"), {"mcpServers": {"shaped": {"command": "four"}}}
    )
    fake.put(on, on.join(on.folder, ".continue", "mcpServers", "README.md"), "not a block")
    reading = fake.look("continue", on)
    assert fake.states(reading) == {
        ("one", main): "effective", ("two", main): "effective", ("block", block): "effective",
        ("shaped", shaped): "effective",
    }  # fmt: skip
    found = {each.server: each.entry for each in reading.declarations}
    one, two = found["one"], found["two"]
    assert one is not None
    assert two is not None
    assert (one.command, one.startup_seconds) == (("one", "-x"), 1.5)
    assert (two.transport, two.headers) == ("http", {"X-Team": "a"})
    assert reading.declarations[-2].spot.line > 1


def test_a_list_item_has_its_line(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, on.user(".continue", "config.yaml"), CONFIG)
    lines = {each.server: each.spot.line for each in fake.look("continue", on).declarations}
    assert lines == {"one": 5, "two": 9}


def test_of_one_name_it_is_in_doubt_which_wins(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    fake.put(on, on.user(".continue", "config.yaml"), CONFIG)
    fake.put(
        on, on.join(on.folder, ".continue", "mcpServers", "a.yaml"), "mcpServers:\n  - {name: one, command: other}\n"
    )
    reading = fake.look("continue", on)
    assert sorted(each.state for each in reading.declarations) == ["effective", "effective", "shadowed"]
    assert "precedence-unknown" in fake.codes(reading)


def test_a_server_as_it_is_written(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.user(".continue", "config.yaml"), CONFIG)
    made = fake.written("continue", fake.stdio(env=fake.TOKEN, policy=Policy(startup_timeout_seconds=5)), on)
    assert made.entry == {
        "name": "issues", "type": "stdio", "command": "uvx", "args": ["issues-mcp"],
        "env": {"TOKEN": "${{ secrets.TOKEN }}", "LEVEL": "info"}, "connectionTimeout": 5000,
    }  # fmt: skip
    assert made.edits == (), "the file has its head already"
    assert fake.back("continue", made).startup_seconds == 5
    edit = Edit(("mcpServers", "issues"), dict(made.entry))
    text = fake.applied(on, FileEdits(file=file, format="yaml", comments=True, list_key="name", edits=(edit,)))
    assert "# mine" in text
    fake.put(on, file, text)
    assert set(fake.runs(fake.look("continue", on))) == {"one", "two", "issues"}
    remote = fake.written("continue", fake.http(headers=fake.BEARER, deny=("put",)), on)
    assert remote.entry == {
        "name": "issues", "type": "streamable-http", "url": "https://issues.example/mcp",
        "requestOptions": {"headers": {"Authorization": "Bearer ${{ secrets.TOKEN }}", "X-Team": "a"}},
    }  # fmt: skip
    assert fake.lost(remote) == {"capability.tools.deny": True}
    assert fake.back("continue", remote).headers["X-Team"] == "a"


def test_a_new_file_gets_the_head_that_continue_asks_for(tmp_path: Path) -> None:
    on = fake.machine(tmp_path)
    made = fake.written("continue", None, on, scope="project")
    assert made.entry == {
        "name": "issues", "type": "stdio", "command": "/opt/bin/interlock", "args": ["connect", "--host", "continue"],
        "env": {"TOKEN": "${{ secrets.TOKEN }}"},
    }  # fmt: skip
    file = on.join(on.folder, ".continue", "mcpServers", "interlock.yaml")
    assert [each.file for each in made.edits] == [file]
    fake.put(on, file, fake.applied(on, made.edits[0]))
    assert standing(on, file, "yaml", ()) == {"name": "Interlock", "version": "1.0.0", "schema": "v1"}
    place = next(each for each in fake.adapter("continue").places if each.writes and each.scope == "project")
    assert place.find(on)[0] == file
