"""Three scopes on disk: whole entries by key, denies that always hold, broken documents that harm no other."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interlock.manifest.loading import find_project_manifest

if TYPE_CHECKING:
    from conftest import Desk

Make = Callable[..., str]


def test_managed_comes_before_project_before_user(desk: Desk, entry: Make) -> None:
    desk.write(
        "user",
        entry("a.one", owner="user")
        + "---\n"
        + entry("a.two", owner="user")
        + "---\n"
        + entry("a.three", owner="user"),
    )
    desk.write("project", entry("a.one", owner="project") + "---\n" + entry("a.two", owner="project"))
    desk.write("managed", entry("a.one", owner="managed"), "corp.yaml")
    loaded = desk.load()
    assert {key: (config.scope, config.owner) for key, config in loaded.gateway.servers.items()} == {
        "one": ("managed", "managed"),
        "three": ("user", "user"),
        "two": ("project", "project"),
    }
    assert [(p.code, p.severity, p.file.name, p.line) for p in loaded.problems] == [
        ("replaced", "note", "corp.yaml", 2),
        ("replaced", "note", "corp.yaml", 2),
        ("replaced", "note", "interlock.yaml", 7),
    ]
    assert any("project entry `two` replaces the user entry" in note for note in loaded.gateway.notes)


def test_an_entry_is_replaced_as_a_whole(desk: Desk, entry: Make) -> None:
    desk.write("user", entry(owner="user", policy="{defaultApproval: auto}"))
    desk.write("project", entry())
    config = desk.load().gateway.servers["search"]
    assert (config.owner, config.policy.default_approval) == (None, None)


def test_denies_of_user_and_managed_scope_always_hold(desk: Desk, entry: Make) -> None:
    user = desk.write("user", entry(deny="drop"))
    managed = desk.write("managed", entry("other.search", deny="admin.*"))
    project = desk.write("project", entry(deny="own"))
    config = desk.load().gateway.servers["search"]
    assert config.scope == "managed"
    assert {(rule.glob, rule.origin.file) for rule in config.deny} == {("drop", user), ("admin.*", managed)}
    managed.unlink()
    config = desk.load().gateway.servers["search"]
    assert config.scope == "project"
    assert {(rule.glob, rule.origin.file) for rule in config.deny} == {("own", project), ("drop", user)}


def test_a_new_key_is_no_way_around_a_deny(desk: Desk, entry: Make) -> None:
    desk.write("user", entry(deny="drop"))
    desk.write("project", entry(key="renamed"))
    servers = desk.load().gateway.servers
    assert [rule.glob for rule in servers["renamed"].deny] == ["drop"]


def test_denies_hold_for_a_named_manifest_too_and_nothing_else_of_the_scopes_does(
    desk: Desk, entry: Make, tmp_path: Path
) -> None:
    desk.write("user", entry(deny="drop") + "---\n" + entry("a.other"))
    desk.write("managed", entry(deny="admin.*"))
    named = tmp_path / "named.yaml"
    named.write_text(entry())
    servers = desk.load(named).gateway.servers
    assert list(servers) == ["search"]
    assert servers["search"].scope == "named"
    assert sorted(rule.glob for rule in servers["search"].deny) == ["admin.*", "drop"]


def test_naming_ones_own_manifest_keeps_its_standing(desk: Desk, entry: Make) -> None:
    user = desk.write("user", entry())
    config = desk.load(user).gateway.servers["search"]
    assert (config.scope, config.blocked) == ("user", None)


def test_two_accounts_of_one_integration_keep_their_own_denies(desk: Desk, entry: Make) -> None:
    desk.write("user", entry(key="first", deny="a") + "---\n" + entry(key="second", deny="b"))
    servers = desk.load().gateway.servers
    assert {key: [rule.glob for rule in config.deny] for key, config in servers.items()} == {
        "first": ["a"],
        "second": ["b"],
    }


def test_a_taken_key_is_an_error_of_the_later_entry_alone(desk: Desk, entry: Make) -> None:
    desk.write("user", entry("acme.search", owner="first") + "---\n" + entry("beta.search"))
    loaded = desk.load()
    assert loaded.gateway.servers["search"].owner == "first"
    assert [(p.code, p.line, p.write) for p in loaded.errors] == [("duplicate-key", 7, "key: beta-search")]


def test_an_integration_declared_twice_names_the_first(desk: Desk, entry: Make) -> None:
    file = desk.write("user", entry() + "---\n" + entry())
    loaded = desk.load()
    assert list(loaded.gateway.servers) == ["search"]
    assert [(p.code, p.line, p.what) for p in loaded.errors] == [
        ("duplicate-key", 6, f"`acme.search` is declared twice; the first is at {file}:2.")
    ]


def test_another_integration_under_a_users_key_is_a_warning(desk: Desk, entry: Make) -> None:
    desk.write("user", entry("acme.search"))
    desk.write("project", entry("evil.search"))
    loaded = desk.load()
    assert [(p.code, p.severity) for p in loaded.problems] == [("replaced", "warning")]


@pytest.mark.parametrize(
    "broken",
    [
        "a: [\n",
        "\ta: b\n",
        "a: 'x\n",
        "x: &a [*a]\n",
        "[]\n",
        "integrationId: x\n",
        "a: b: c\n",
        "\x01\n",
        "%YAML 9.9\nx\n",
        "? - a\n",
    ],
)
def test_a_broken_document_hides_no_other(desk: Desk, entry: Make, broken: str) -> None:
    text = entry("a.one") + "---\n" + broken + "---\n" + entry("a.two")
    loaded = desk.load_text(text)
    assert list(loaded.gateway.servers) == ["one", "two"]
    assert loaded.errors
    assert all(4 <= problem.line < 7 for problem in loaded.errors)
    assert [config.origin.line for config in loaded.gateway.servers.values()] == [
        2,
        text[: text.rindex("integrationId")].count("\n") + 1,
    ]


def test_a_folder_is_read_in_order_and_a_broken_file_hides_no_other(desk: Desk, entry: Make) -> None:
    desk.write("managed", entry("a.second"), "b.yaml")
    desk.write("managed", entry("a.first"), "a.yaml")
    desk.write("managed", entry("a.third"), "c.yml")
    (desk.managed / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    (desk.managed / ".hidden.yaml").write_text("x")
    loaded = desk.load()
    assert list(loaded.gateway.servers) == ["first", "second", "third"]
    assert [file.name for file in loaded.gateway.files] == ["a.yaml", "b.yaml", "bad.yaml", "c.yml"]
    assert [(p.code, p.file.name) for p in loaded.errors] == [("not-utf8", "bad.yaml")]


def test_a_broken_entry_of_a_higher_scope_does_not_give_way_to_a_lower_one(desk: Desk, entry: Make) -> None:
    desk.write("managed", entry(owner="[]"))
    desk.write("user", entry())
    config = desk.load().gateway.servers["search"]
    assert config.scope == "user"
    assert "managed entry for `search`" in config.blocked


@pytest.mark.parametrize(
    ("user", "denied", "blocked"),
    [
        ("@deny: drop\nownr: x\n", ["drop"], False),
        ("ownr: x\n", [], False),
        ("capability: {tools: {deny: drop}}\n", [], True),
        ("capability: [deny]\n", [], True),
        ("capability: {tools: {deny: [drop]}\n", [], True),
        ("x: [\n", [], False),
        ("capability: {tools: {denny: [drop]}}\n", [], True),
    ],
    ids=["readable", "none", "wrong type", "elsewhere", "not yaml", "not yaml, none", "misspelt"],
)
def test_denies_of_a_broken_entry_hold_or_block(
    desk: Desk, entry: Make, user: str, denied: list[str], blocked: bool
) -> None:
    text = entry(deny="drop", more="ownr: x\n") if user.startswith("@") else entry(more=user)
    desk.write("user", text)
    named = desk.write("project", entry())
    loaded = desk.load()
    config = loaded.gateway.servers["search"]
    assert loaded.errors
    assert config.origin.file == named
    assert [rule.glob for rule in config.deny] == denied
    assert ("cannot be read" in (config.blocked or "")) is blocked


@pytest.mark.parametrize("content", [b"\xff\xff", b"deny: [", b"# " + b"x" * 600_000])
def test_an_unreadable_users_manifest_blocks_what_it_may_deny(desk: Desk, entry: Make, content: bytes) -> None:
    (desk.home / "interlock.yaml").write_bytes(content)
    desk.write("project", entry())
    desk.write("managed", entry("a.corporate"))
    servers = desk.load().gateway.servers
    assert "may deny tools of this server" in servers["search"].blocked
    assert servers["corporate"].blocked is None


def test_verbatim_names_are_for_a_single_server(desk: Desk, entry: Make) -> None:
    loaded = desk.load_text(entry("a.one", names="verbatim"))
    assert (loaded.errors, loaded.gateway.servers["one"].blocked) == ((), None)
    both = entry("a.one", names="verbatim") + "---\n" + entry("a.two")
    loaded = desk.load_text(both)
    assert [problem.code for problem in loaded.errors] == ["verbatim-with-others"]
    assert "verbatim" in loaded.gateway.servers["one"].blocked
    assert loaded.gateway.servers["two"].blocked is None
    assert desk.load_text(both + "enabled: false\n").errors == ()


def test_the_digest_is_the_content(desk: Desk, entry: Make) -> None:
    desk.write("user", entry())
    first = desk.load().gateway.digest
    assert desk.load().gateway.digest == first
    desk.write("user", entry() + "# more\n")
    assert desk.load().gateway.digest != first


@pytest.mark.parametrize("name", ["nothing.yaml", "empty"])
def test_a_named_manifest_that_is_not_there_is_an_error(desk: Desk, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    loaded = desk.load(tmp_path / name)
    assert [problem.code for problem in loaded.errors] == ["not-found"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_does_not_hang_a_load(desk: Desk, entry: Make) -> None:
    os.mkfifo(desk.managed / "pipe.yaml")
    desk.write("user", entry())
    assert list(desk.load().gateway.servers) == ["search"]
    assert [problem.code for problem in desk.load(desk.managed / "pipe.yaml").errors] == ["unreadable"]


def test_no_manifest_anywhere_is_an_empty_gateway(desk: Desk) -> None:
    loaded = desk.load()
    assert (dict(loaded.gateway.servers), loaded.problems, loaded.gateway.files) == ({}, (), ())


class TestProjectManifest:
    def test_the_nearest_up_to_the_repository(self, desk: Desk, entry: Make) -> None:
        inner = desk.project / "a" / "b"
        inner.mkdir(parents=True)
        outside = desk.project.parent / "interlock.yaml"
        outside.write_text(entry())
        assert find_project_manifest(inner) is None
        root = desk.write("project", entry())
        assert find_project_manifest(inner) == root
        nearer = desk.write("project", entry(), "a/interlock.yaml")
        assert find_project_manifest(inner) == nearer

    def test_outside_a_repository_only_the_folder_itself(self, tmp_path: Path, entry: Make) -> None:
        inner = tmp_path / "plain" / "inner"
        inner.mkdir(parents=True)
        (tmp_path / "plain" / "interlock.yaml").write_text(entry())
        assert find_project_manifest(inner) is None
        assert find_project_manifest(inner.parent) == tmp_path / "plain" / "interlock.yaml"

    def test_a_worktree_counts_as_a_repository(self, tmp_path: Path, entry: Make) -> None:
        (tmp_path / "tree" / "inner").mkdir(parents=True)
        (tmp_path / "tree" / ".git").write_text("gitdir: elsewhere\n")
        (tmp_path / "tree" / "interlock.yaml").write_text(entry())
        assert find_project_manifest(tmp_path / "tree" / "inner") == tmp_path / "tree" / "interlock.yaml"

    def test_the_users_own_manifest_is_not_also_the_projects(self, desk: Desk, entry: Make) -> None:
        desk.write("user", entry())
        desk.project = desk.home
        loaded = desk.load()
        assert (loaded.gateway.servers["search"].scope, loaded.problems) == ("user", ())
