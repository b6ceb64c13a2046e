"""Nothing of a project's manifest starts before a person trusted it, and trust ends where what it would run changes."""

from __future__ import annotations

import json
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import interlock
from interlock.manifest import trust
from interlock.manifest.launch import LaunchPlan, launch_plan, plan_hash

if TYPE_CHECKING:
    from conftest import Desk

STDIO = """\
schemaVersion: agent-routing/v1
integrationId: acme.search
transports:
  stdio:
    command: [node, tools/server.js, --level, info]
    cwd: .
    env: {LEVEL: info, TOKEN: {fromEnv: MY_TOKEN}}
    envNames: [PLAIN]
policy: {toolTimeoutSeconds: 9}
"""
REMOTE = """\
schemaVersion: agent-routing/v1
integrationId: acme.remote
transports:
  http:
    endpoint: https://mcp.example.com/mcp
    headers: {Authorization: {fromEnv: TOKEN, prefix: "Bearer "}, X-Team: core}
"""


def only(desk: Desk, text: str) -> trust.Trust:
    desk.write("project", text)
    loaded = desk.load()
    assert loaded.errors == ()
    return loaded.trusts[0]


def test_a_projects_manifest_starts_nothing(desk: Desk) -> None:
    file = desk.write("project", STDIO + "---\n" + REMOTE)
    servers = desk.load().gateway.servers
    assert list(servers) == ["remote", "search"]
    for config in servers.values():
        assert config.blocked == f"its manifest is not trusted yet: look at it with `interlock trust {file}`"


@pytest.mark.parametrize("scope", ["user", "managed"])
def test_ones_own_and_the_administrators_start(desk: Desk, scope: str) -> None:
    desk.write(scope, STDIO)
    assert desk.load().gateway.servers["search"].blocked is None


def test_a_named_manifest_is_like_a_projects(desk: Desk, tmp_path: Path) -> None:
    named = tmp_path / "x.yaml"
    named.write_text(STDIO)
    assert desk.load(named).gateway.servers["search"].blocked is not None


def test_what_came_with_interlock_is_trusted(tmp_path: Path) -> None:
    folder = Path(interlock.__file__).parent
    assert trust.packaged(folder / "lab" / "demo" / "interlock.yaml")
    assert not trust.packaged(tmp_path / "interlock" / "interlock.yaml")
    assert not trust.packaged(folder.parent / "interlock.yaml")
    assert not trust.packaged(folder / ".." / "interlock.yaml")


def test_trust_is_remembered_and_ends_with_a_change(desk: Desk) -> None:
    standing = only(desk, STDIO)
    assert standing.how == "never"
    trust.remember(desk.home, [standing])
    assert desk.load().gateway.servers["search"].blocked is None
    desk.write("project", STDIO.replace("info]", "debug]"))
    changed = desk.load()
    assert changed.trusts[0].how == "changed"
    assert "has changed since it was trusted" in changed.gateway.servers["search"].blocked
    desk.write("project", STDIO)
    assert desk.load().gateway.servers["search"].blocked is None


def test_trust_is_of_one_file_at_one_place(desk: Desk, tmp_path: Path) -> None:
    trust.remember(desk.home, [only(desk, STDIO)])
    elsewhere = tmp_path / "elsewhere.yaml"
    elsewhere.write_text(STDIO)
    assert desk.load(elsewhere).trusts[0].how == "never"


def test_exactly_the_hash_is_accepted(desk: Desk) -> None:
    digest = only(desk, STDIO).hash
    assert desk.load(hashes=(digest,)).gateway.servers["search"].blocked is None
    assert desk.load(hashes=(digest[:-1] + ("0" if digest[-1] != "0" else "1"),)).gateway.servers["search"].blocked
    desk.write("project", STDIO + "---\n" + REMOTE)
    both = desk.load(hashes=(digest,)).gateway.servers
    assert all(config.blocked for config in both.values())


SAME = {
    "comments": STDIO + "# more\n",
    "other writing": STDIO.replace(
        "[node, tools/server.js, --level, info]", '["node", "tools/server.js", "--level", "info"]'
    ),
    "owner": STDIO + "owner: me\n",
    "limits": STDIO.replace("9", "10"),
    "stricter approval": STDIO.replace("{tool", "{defaultApproval: always, tool"),
    "denies": STDIO + "capability: {tools: {deny: [x]}}\n",
    "order of variables": STDIO.replace(
        "{LEVEL: info, TOKEN: {fromEnv: MY_TOKEN}}", "{TOKEN: {fromEnv: MY_TOKEN}, LEVEL: info}"
    ),
    "a disabled neighbour": STDIO + "---\n" + REMOTE + "enabled: false\n",
}
DIFFERENT = {
    "argument": STDIO.replace("info]", "debug]"),
    "argument split": STDIO.replace("--level, info", "--level info"),
    "program": STDIO.replace("[node", "[python3"),
    "directory": STDIO.replace("cwd: .", "cwd: tools"),
    "variable": STDIO.replace("[PLAIN]", "[PLAIN, MORE]"),
    "literal": STDIO.replace("{LEVEL: info", "{LEVEL: debug"),
    "reference": STDIO.replace("MY_TOKEN", "OTHER_TOKEN"),
    "key": STDIO + "key: other\n",
    "id": STDIO.replace("acme.search", "evil.search"),
    "approval loosened": STDIO.replace("{tool", "{defaultApproval: auto, tool"),
    "a tool loosened": STDIO + "tools: {x: {approval: auto}}\n",
    "a tool declared a read": STDIO + "tools: {x: {read: true}}\n",
    "a deny where nothing asks": STDIO.replace("{tool", "{defaultApproval: auto, tool")
    + "capability: {tools: {deny: [x]}}\n",
    "another server": STDIO + "---\n" + REMOTE,
    "transport": REMOTE.replace("acme.remote", "acme.search"),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_what_does_not_change_the_launch_keeps_the_hash(desk: Desk, text: str) -> None:
    (desk.project / "tools").mkdir()
    assert only(desk, STDIO).hash == only(desk, text).hash


@pytest.mark.parametrize("text", DIFFERENT.values(), ids=DIFFERENT)
def test_what_changes_the_launch_changes_the_hash(desk: Desk, text: str) -> None:
    (desk.project / "tools").mkdir()
    assert only(desk, STDIO).hash != only(desk, text).hash


REMOTE_DIFFERENT = {
    "url": REMOTE.replace("mcp.example.com", "evil.example.com"),
    "header": REMOTE.replace("X-Team: core", "X-Team: other"),
    "header's variable": REMOTE.replace("fromEnv: TOKEN", "fromEnv: GITHUB_TOKEN"),
    "prefix": REMOTE.replace("Bearer ", "Token "),
    "url by variable": REMOTE.replace("endpoint: https://mcp.example.com/mcp", "endpointEnv: URL"),
    "kind": REMOTE.replace("http:\n", "sse:\n"),
}


@pytest.mark.parametrize("text", REMOTE_DIFFERENT.values(), ids=REMOTE_DIFFERENT)
def test_what_is_reached_and_sent_is_part_of_it(desk: Desk, text: str) -> None:
    assert only(desk, REMOTE).hash != only(desk, text).hash


def test_another_program_of_the_same_name_is_asked_again(desk: Desk) -> None:
    trust.remember(desk.home, [only(desk, STDIO)])
    other = desk.project.parent / "other"
    other.mkdir()
    (other / "node").write_text("#!/bin/sh\n")
    (other / "node").chmod(0o755)
    desk.environ["PATH"] = f"{other}{os.pathsep}{desk.environ['PATH']}"
    assert desk.load().trusts[0].how == "changed"


def test_the_plan_says_what_runs_and_what_is_not_covered(desk: Desk) -> None:
    script = desk.project / "tools" / "server.js"
    script.parent.mkdir()
    script.write_text("")
    plan = only(desk, STDIO).plans[0]
    assert plan.command == (f"{desk.environ['PATH']}/node", "tools/server.js", "--level", "info")
    assert plan.directory == str(desk.project)
    assert plan.env == ("LEVEL=info", "PLAIN", "TOKEN from MY_TOKEN")
    assert plan.uncovered == (str(script),)


@pytest.mark.parametrize(
    ("command", "files", "uncovered"),
    [
        ("[./run.sh]", ["run.sh"], ["run.sh"]),
        ("[python3, -m, pkg.server]", ["pkg/server.py"], ["pkg/server.py"]),
        ("[python3, -m, pkg]", ["pkg/__main__.py"], ["pkg/__main__.py"]),
        ("[node, --require=./hook.js, x.js]", ["hook.js"], ["hook.js"]),
        ("[node, ../outside.js]", ["../outside.js"], []),
        ("[node, missing.js]", [], []),
    ],
)
def test_scripts_of_the_repository_are_named(desk: Desk, command: str, files: list[str], uncovered: list[str]) -> None:
    for name in files:
        path = desk.project / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)
    plan = only(desk, STDIO.replace("[node, tools/server.js, --level, info]", command)).plans[0]
    assert plan.uncovered == tuple(str(desk.project / name) for name in uncovered)


def test_a_program_is_not_looked_for_in_the_repository(desk: Desk) -> None:
    planted = desk.project / "helper"
    planted.write_text("#!/bin/sh\n")
    planted.chmod(0o755)
    plan = only(desk, STDIO.replace("[node,", "[helper,")).plans[0]
    assert plan.command[0] == "helper"


def test_the_store_is_private_and_written_whole(desk: Desk) -> None:
    path = trust.remember(desk.home / "new", [only(desk, STDIO)])
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    content = json.loads(path.read_text())
    assert list(content["manifests"]) == [str(desk.project / "interlock.yaml")]
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["trust.json", "trust.lock"]


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"version": 2, "manifests": {}}', '{"version": 1, "manifests": []}', "[" * 100_000]
)
def test_a_broken_store_trusts_nothing_is_said_and_is_kept(desk: Desk, content: str) -> None:
    store = desk.home / "trust.json"
    store.write_text(content)
    desk.write("project", STDIO)
    loaded = desk.load()
    assert loaded.gateway.servers["search"].blocked
    assert [(problem.code, problem.severity) for problem in loaded.problems] == [("trust-store", "warning")]
    trust.remember(desk.home, loaded.trusts)
    assert [path.read_text() for path in desk.home.glob("trust.json.unreadable-*")] == [content]
    assert desk.load().gateway.servers["search"].blocked is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX permissions")
def test_a_store_that_others_can_write_trusts_nothing(desk: Desk) -> None:
    trust.remember(desk.home, [only(desk, STDIO)])
    (desk.home / "trust.json").chmod(0o666)
    loaded = desk.load()
    assert loaded.trusts[0].how == "never"
    assert [problem.code for problem in loaded.problems] == ["trust-store"]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="POSIX permissions")
def test_ones_own_manifest_that_others_can_write_starts_nothing(desk: Desk) -> None:
    desk.write("user", STDIO).chmod(0o666)
    assert "can be changed by other users" in desk.load().gateway.servers["search"].blocked


def test_two_people_at_once_lose_nothing(desk: Desk) -> None:
    plans = (LaunchPlan("k", "a.k", "http", url="https://x"),)
    standings = [trust.Trust(Path(f"/m/{i}.yaml"), plan_hash(plans), plans, "never") for i in range(16)]
    threads = [threading.Thread(target=trust.remember, args=(desk.home, [standing])) for standing in standings]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert set(trust.read(desk.home).records) == {f"/m/{i}.yaml" for i in range(16)}


words = st.text(max_size=6)
plans = st.builds(
    LaunchPlan,
    key=words,
    integration_id=words,
    transport=st.sampled_from(["stdio", "http", "sse"]),
    command=st.lists(words, max_size=3).map(tuple),
    directory=words,
    env=st.lists(words, max_size=2).map(tuple),
    url=words,
    headers=st.lists(words, max_size=2).map(tuple),
    unasked=st.lists(words, max_size=2).map(tuple),
)


@given(st.lists(plans, max_size=4), st.randoms(use_true_random=False))
def test_the_hash_does_not_depend_on_the_order_of_servers(some: list[LaunchPlan], random: object) -> None:
    shuffled = list(some)
    random.shuffle(shuffled)
    assert plan_hash(some) == plan_hash(shuffled)
    assert plan_hash(some).startswith("sha256:")


@given(st.lists(plans, max_size=3), st.lists(plans, max_size=3))
def test_different_plans_have_different_hashes(one: list[LaunchPlan], two: list[LaunchPlan]) -> None:
    same = sorted(map(repr, one)) == sorted(map(repr, two))
    assert (plan_hash(one) == plan_hash(two)) is same


def test_launch_plan_of_a_config_is_the_same_each_time(desk: Desk) -> None:
    desk.write("user", STDIO)
    config = desk.load().gateway.servers["search"]
    make: Callable[[], LaunchPlan] = lambda: launch_plan(config, desk.environ)  # noqa: E731
    assert make() == make()
