"""What holds for every adapter: facts have their evidence, unknowns their test, and no secret is ever written."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from tests.hosts.adapters import fake

from interlock.hosts.adapter import Adapter, Tolerance
from interlock.hosts.fact import Fact
from interlock.manifest.config import Policy

IDS = (
    "cursor", "antigravity", "vscode", "claude-desktop", "windsurf", "zed", "goose", "cline", "roo-code", "continue",
    "jetbrains", "pi", "kiro", "claude-code", "codex", "gemini-cli", "qwen-code", "copilot-cli", "opencode",
)  # fmt: skip


def facts(found: Adapter) -> dict[str, Fact[object]]:
    named: dict[str, Fact[object]] = {f"more.{name}": fact for name, fact in found.more.items()}
    for owner, prefix in ((found, ""), (found.tolerance, "tolerance.")):
        for each in fields(owner):
            value = getattr(owner, each.name)
            if isinstance(value, Fact):
                named[prefix + each.name] = value
    return named | {f"place {place.shown}": place.known for place in found.places}


@pytest.mark.parametrize("id", IDS)
def test_every_unknown_names_the_test_that_would_tell(id: str) -> None:
    found = fake.adapter(id)
    assert isinstance(found.tolerance, Tolerance)
    assert [name for name, fact in facts(found).items() if fact.value is None and not fact.note] == []
    assert found.unknowns
    assert found.sources


@pytest.mark.parametrize("id", IDS)
def test_places_can_be_told_apart_and_wrong_ones_say_what_is_right(id: str) -> None:
    found = fake.adapter(id)
    shown = [place.shown for place in found.places]
    assert len(shown) == len(set(shown))
    assert [
        place.shown for place in found.places if place.known.value is False and not (place.instead and place.known.note)
    ] == []
    assert [place.shown for place in found.places if place.writes and place.known.value is not True] == []
    assert [
        scope for scope in ("user",) if not any(place.writes and place.scope == scope for place in found.places)
    ] == []


@pytest.mark.parametrize("id", IDS)
@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
def test_paths_are_the_machines_own(tmp_path: Path, id: str, platform: str) -> None:
    on = fake.machine(tmp_path, platform)  # type: ignore[arg-type]
    for place in fake.adapter(id).places:
        for path in place.find(on):
            assert on.paths.isabs(path), path
            assert platform != "windows" or "/" not in path, path


@pytest.mark.parametrize("id", IDS)
def test_no_value_of_a_secret_is_ever_written(tmp_path: Path, id: str) -> None:
    secret = "s3" + "cret" * 8
    on = fake.machine(tmp_path, environ={"TOKEN": secret})
    for server in (fake.stdio(env=fake.TOKEN), fake.http(headers=fake.BEARER), None):
        made = fake.written(id, server, on)
        assert secret not in repr(made)


@pytest.mark.parametrize("id", IDS)
def test_what_is_written_is_read_back_the_same(tmp_path: Path, id: str) -> None:
    made = fake.written(
        id, fake.stdio("uvx", "issues-mcp", "--all", policy=Policy(tool_timeout_seconds=60)), fake.machine(tmp_path)
    )
    read = fake.back(id, made)
    assert (read.transport, read.command, read.enabled, read.ignored) == (
        "stdio",
        ("uvx", "issues-mcp", "--all"),
        True,
        (),
    )


@pytest.mark.parametrize("id", IDS)
def test_a_server_that_is_off_stays_off_or_is_refused(tmp_path: Path, id: str) -> None:
    made = fake.written(id, fake.stdio(enabled=False), fake.machine(tmp_path))
    elsewhere = any("isabledMcpServers" in edit.path[-1] for each in made.edits for edit in each.edits)
    assert (fake.lost(made).get("enabled", False) or elsewhere) is fake.back(id, made).enabled


@pytest.mark.parametrize(
    ("id", "sign"),
    [
        ("vscode", ("home", ".config", "Code", "argv.json")),
        ("jetbrains", ("folder", ".air", "settings.json")),
        ("pi", ("home", ".pi", "agent", "settings.json")),
    ],
)
def test_a_shared_file_counts_only_where_the_host_is(tmp_path: Path, id: str, sign: tuple[str, ...]) -> None:
    on = fake.machine(tmp_path)
    file = fake.put(on, on.join(on.folder, ".mcp.json"), {"mcpServers": {"a": {"command": "one"}}})
    assert fake.states(fake.look(id, on)) == {}
    fake.put(on, on.join(on.home if sign[0] == "home" else on.folder, *sign[1:]), "{}")
    assert fake.states(fake.look(id, on)) == {("a", file): "effective"}
