"""The plan of an adoption: what goes, what comes, what stays and why; and that carrying it out leaves one entry a host."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.hosts.adapters.fake import machine, put
from tests.hosts.test_importing import CODEX, CURSOR, DESKTOP, GEMINI, VSCODE, ZED, servers, token

from interlock.hosts import inventory, plan, plan_notes, reading, registry, target
from interlock.hosts.changes.applying import planned
from interlock.hosts.documents import Means
from interlock.hosts.importing import Which
from interlock.hosts.machine import Machine
from interlock.hosts.ours import ours
from interlock.hosts.plan import HostPlan, Plan
from interlock.hosts.target import Target

CLAUDE = "/home/ada/.claude.json"
HOME = Path("/home/ada/.interlock")
FILE = HOME / "interlock.yaml"


def make(
    on: Machine, which: Which = "user", manifest: Target | None = None, means: Means | None = None,
) -> Plan:  # fmt: skip
    return plan.make(
        inventory.take(on, plugins=False).declarations,
        on,
        home=HOME,
        target=manifest or Target(FILE, "project" if which == "project" else "user"),
        connect=lambda host: ("/home/ada/.interlock/bin/interlock", "connect", "--host", host),
        which=which,
        means=means,
    )


def of(made: Plan, host: str) -> HostPlan:
    return next(each for each in made.hosts if each.adapter.id == host)


def gone(made: Plan, host: str) -> list[str | None]:
    return [each.declaration.server for each in of(made, host).goes]


def kept(made: Plan, host: str) -> dict[str, str]:
    return {each.server: each.why for each in of(made, host).stays}


def carry_out(made: Plan, on: Machine) -> None:
    for each in planned(on, made.edits()):
        file = Path(on.real(each.file))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.after)


SIX: Mapping[str, tuple[str, object]] = {
    "cursor": (CURSOR, servers({"a": {"command": "a"}, "b": {"command": "b"}})),
    "claude-desktop": (DESKTOP, servers({"a": {"command": "a"}})),
    "codex": (CODEX, '# kept\nmodel = "x"\n\n[mcp_servers.a]\ncommand = "a"\n\n[mcp_servers.a.env]\nX = "1"\n'),
    "gemini-cli": (GEMINI, '{\n  // kept\n  "theme": "x",\n  "mcpServers": {"b": {"command": "b"}}\n}\n'),
    "vscode": (VSCODE, '{\n\t"servers": {\n\t\t// kept\n\t\t"c": {"command": "c"},\n\t},\n\t"inputs": []\n}\n'),
    "zed": (ZED, '{\n  "context_servers": {"a": {"command": "a", "args": []}}, // kept\n}\n'),
    "claude-code": (CLAUDE, {"numStartups": 3, "mcpServers": {"a": {"type": "stdio", "command": "a"}}}),
    "goose": (
        "/home/ada/.config/goose/config.yaml",
        "# kept\nextensions:\n  a:\n    type: stdio\n    name: a\n    enabled: true\n    cmd: a\n    args: []\nGOOSE_MODE: auto\n",
    ),
}  # fmt: skip


def test_every_host_is_left_with_one_entry_and_all_else_as_it_was(tmp_path: Path) -> None:
    on = machine(tmp_path)
    for path, content in SIX.values():
        put(on, path, content)
    made = make(on)
    assert {host.adapter.id for host in made.hosts if host.goes} == set(SIX)
    assert set(made.adopted) == {"a", "b", "c"}
    carry_out(made, on)
    for id, (path, content) in SIX.items():
        adapter = registry.find(id)
        assert adapter is not None
        found = [each for each in reading.read(adapter, on).declarations if each.file == path]
        assert [each.server for each in found] == ["interlock"], id
        entry = found[0].entry
        assert entry is not None
        assert ours(entry) == "connect"
        assert entry.command[-2:] == ("--host", id)
        after = Path(on.real(path)).read_text()
        if "kept" in str(content):
            assert "kept" in after, id
    assert json.loads(Path(on.real(CLAUDE)).read_text())["numStartups"] == 3
    assert "GOOSE_MODE: auto" in Path(on.real(SIX["goose"][0])).read_text()


def test_adopting_again_changes_nothing(tmp_path: Path) -> None:
    on = machine(tmp_path)
    for path, content in SIX.values():
        put(on, path, content)
    made = make(on)
    carry_out(made, on)
    assert made.content is not None
    again = make(on, manifest=_target(made.content, on))
    assert again.adopted == []
    assert planned(on, again.edits()) == []
    assert {each.why for host in again.hosts for each in host.stays} == {"it is Interlock's own (`interlock connect`)"}


def _target(content: bytes, on: Machine) -> Target:
    from interlock.hosts.documents import loaded

    configs, errors = loaded(content.decode(), FILE, "user", on.platform, on.environ)
    assert errors == []
    return Target(FILE, "user", content, {each.key: each for each in configs})


def test_a_host_that_comes_later_joins_the_manifest(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"a": {"command": "a"}}))
    first = make(on)
    carry_out(first, on)
    assert first.content is not None
    put(on, DESKTOP, servers({"mine": {"command": "a"}, "new": {"command": "n"}}))
    made = make(on, manifest=_target(first.content, on))
    assert gone(made, "claude-desktop") == ["mine", "new"] or set(gone(made, "claude-desktop")) == {"mine", "new"}
    assert {each.key for each in of(made, "claude-desktop").goes} == {"a", "new"}
    assert made.content is not None
    assert made.content.startswith(first.content)
    assert made.content.count(b"integrationId") == 2


def test_a_literal_secret_keeps_its_server_where_it_is(tmp_path: Path) -> None:
    on = machine(tmp_path)
    secret = token()
    put(on, CURSOR, servers({"s": {"command": "c", "env": {"TOKEN": secret}}, "ok": {"command": "o"}}))
    made = make(on)
    assert gone(made, "cursor") == ["ok"]
    assert "set the variable TOKEN" in kept(made, "cursor")["s"]
    assert [each.server for each in made.unsettled] == ["s"]
    assert b"local.s" not in (made.content or b"")
    assert secret not in repr(made.imported) + str(kept(made, "cursor"))
    carry_out(made, on)
    assert json.loads(Path(on.real(CURSOR)).read_text())["mcpServers"]["s"]["env"]["TOKEN"] == secret


def test_a_secret_keeps_its_own_entry_and_not_other_hosts_entries_of_the_server(tmp_path: Path) -> None:
    on = machine(tmp_path)
    secret = token()
    put(on, CURSOR, servers({"s": {"command": "c", "env": {"TOKEN": secret}}}))
    put(on, CODEX, '[mcp_servers.s]\ncommand = "c"\n')
    made = make(on)
    assert [source.declaration.host for server in made.imported.servers for source in server.sources] == ["codex"]
    assert [each.variable for each in made.unsettled] == ["TOKEN"]
    assert secret.encode() not in (made.content or b"")
    assert [(each.host, each.server) for each in made.imported.left] == [("cursor", "s")]


def test_a_secret_that_a_variable_holds_is_adopted_and_passed_on(tmp_path: Path) -> None:
    secret = token()
    on = machine(tmp_path, environ={"TOKEN": secret})
    put(on, CODEX, f'[mcp_servers.s]\ncommand = "c"\nenv = {{ TOKEN = "{secret}" }}\n')
    made = make(on)
    assert gone(made, "codex") == ["s"]
    carry_out(made, on)
    after = Path(on.real(CODEX)).read_text()
    assert 'env_vars = ["TOKEN"]' in after
    assert secret not in after


def test_a_secret_is_moved_where_that_is_asked_for(tmp_path: Path) -> None:
    on = machine(tmp_path)
    secret = token()
    put(
        on,
        CURSOR,
        servers({"s": {"command": "c", "env": {"TOKEN": secret}}, "u": {"url": f"https://h.example/?key={secret}"}}),
    )
    made = make(on, means=Means(environ={}, secrets=HOME / "secrets", secrets_shown="~/.interlock/secrets"))
    assert gone(made, "cursor") == ["s"]
    assert [(each.file, each.value) for each in made.secrets] == [(HOME / "secrets" / "s-token", secret)]
    assert b"fromFile: ~/.interlock/secrets/s-token" in (made.content or b"")
    assert "s" not in kept(made, "cursor")
    assert "url" in {each.field for each in of(made, "cursor").stays}
    assert secret.encode() not in (made.content or b"")


def test_another_secret_stays_where_it_would_be_replaced_by_nothing(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"s": {"command": "c", "env": {"TOKEN": "${env:UNSET_HERE}"}}}))
    put(on, DESKTOP, servers({"s": {"command": "c", "env": {"TOKEN": token()}}}))
    made = make(on)
    assert gone(made, "cursor") == ["s"]
    assert gone(made, "claude-desktop") == []
    assert "UNSET_HERE" in kept(made, "claude-desktop")["s"]
    assert any("UNSET_HERE" in note for note in of(made, "cursor").notes)


def test_nothing_begins_to_run_when_an_entry_goes(tmp_path: Path) -> None:
    """Claude Code: the local entry stands before the user's one of the same name, which is another server."""
    on = machine(tmp_path)
    local = {on.folder: {"mcpServers": {"s": {"command": "local"}}}}
    put(on, CLAUDE, {"mcpServers": {"s": {"command": "user"}, "t": {"command": "t"}}, "projects": local})
    made = make(on)
    assert gone(made, "claude-code") == ["t"]
    assert any("would begin to run" in each.why for each in of(made, "claude-code").stays)


def test_the_same_server_in_two_scopes_goes_from_both(tmp_path: Path) -> None:
    on = machine(tmp_path)
    local = {on.folder: {"mcpServers": {"s": {"command": "one"}}}}
    put(on, CLAUDE, {"mcpServers": {"s": {"command": "one"}}, "projects": local})
    made = make(on)
    assert gone(made, "claude-code") == ["s", "s"]
    carry_out(made, on)
    after = json.loads(Path(on.real(CLAUDE)).read_text())
    assert list(after["mcpServers"]) == ["interlock"]
    assert after["projects"][on.folder]["mcpServers"] == {}


def test_half_an_entry_of_a_host_that_merges_fields_is_not_taken_away(tmp_path: Path) -> None:
    on = machine(tmp_path)
    trusted = f'[projects."{on.folder}"]\ntrust_level = "trusted"\n'
    put(on, CODEX, f'{trusted}\n[mcp_servers.s]\ncommand = "c"\n\n[mcp_servers.t]\ncommand = "t"\n')
    put(on, on.join(on.folder, ".codex", "config.toml"), '[mcp_servers.s]\nargs = ["x"]\n')
    made = make(on)
    assert gone(made, "codex") == ["t"]
    assert "puts both together" in kept(made, "codex")["s"]


def test_a_file_that_cannot_be_read_is_left_alone(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, '{"mcpServers": {"a": {"command": "a"}')
    put(on, DESKTOP, servers({"b": {"command": "b"}}))
    made = make(on)
    assert made.adopted == ["b"]
    assert of(made, "cursor").goes == []
    assert all(each.file != CURSOR for each in made.edits())


def test_an_entry_of_interlocks_name_that_is_not_ours_keeps_the_host_as_it_is(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"interlock": {"command": "something-else"}, "a": {"command": "a"}}))
    made = make(on)
    assert made.adopted == []
    assert "cannot be written" in kept(made, "cursor")["a"]
    assert made.content is None
    assert made.edits() == []


def test_a_switched_off_entry_stays_off(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CODEX, '[mcp_servers.s]\ncommand = "c"\nenabled = false\n')
    made = make(on)
    assert gone(made, "codex") == ["s"]
    assert made.imported.servers[0].document["enabled"] is False


@pytest.mark.parametrize(
    ("path", "content", "expected"),
    [
        (CLAUDE, {"mcpServers": {"s": {"command": "c"}}}, "host"),
        (CODEX, '[mcp_servers.s]\ncommand = "c"\n', None),
        (CODEX, '[mcp_servers.s]\ncommand = "c"\ndefault_tools_approval_mode = "prompt"\n', "prompt"),
    ],
)
def test_asking_is_left_to_a_host_only_where_it_is_known_to_ask(
    tmp_path: Path, path: str, content: object, expected: str | None
) -> None:
    on = machine(tmp_path)
    put(on, path, content)
    asking = frozenset(("claude-code",))
    made = make(on, means=Means(environ={}, asking=asking))
    policy = made.imported.servers[0].document.get("policy", {})
    assert isinstance(policy, dict)
    assert policy.get("defaultApproval") == expected
    assert ("s" in plan_notes.approvals(made, asking)) is (expected in ("host", None))


def test_a_denied_tool_of_a_hosts_rules_stays_denied(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CLAUDE, {"mcpServers": {"s": {"command": "c"}}})
    put(on, "/home/ada/.claude/settings.json", {"permissions": {"deny": ["mcp__s__drop"]}})
    made = make(on)
    assert made.imported.servers[0].document["capability"] == {"tools": {"deny": ["drop"]}}


def test_a_project_s_files_get_the_bare_command(tmp_path: Path) -> None:
    on = machine(tmp_path)
    mine = on.join(on.folder, ".cursor", "mcp.json")
    put(on, mine, servers({"s": {"command": "node", "args": ["./tools/s.js"]}}))
    put(on, CURSOR, servers({"user": {"command": "u"}}))
    made = make(on, "project", Target(Path(on.folder) / "interlock.yaml", "project"))
    assert gone(made, "cursor") == ["s"]
    assert b"${projectRoot}/tools/s.js" in (made.content or b"")
    assert all(each.file != CURSOR for each in made.edits())
    carry_out(made, on)
    assert list(json.loads(Path(on.real(mine)).read_text())["mcpServers"]) == ["interlock"]


# The manifest


@pytest.mark.parametrize(
    "before",
    ["", "# nothing yet\n", "schemaVersion: agent-routing/v1\nintegrationId: a.z\ntransports: {stdio: {command: [z]}}"],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_what_stands_in_the_manifest_stays_byte_for_byte(tmp_path: Path, before: str, newline: str, bom: str) -> None:
    on = machine(tmp_path)
    file = tmp_path / "interlock.yaml"
    content = (bom + before.replace("\n", newline)).encode()
    file.write_bytes(content)
    put(on, CURSOR, servers({"a": {"command": "a"}}))
    made = make(on, manifest=target.read(file, "user", on))
    assert made.content is not None
    assert made.content.startswith(content)
    file.write_bytes(made.content)
    assert set(target.read(file, "user", on).servers) == {"a"} | ({"z"} if "a.z" in before else set())


def test_a_manifest_with_an_error_is_not_added_to(tmp_path: Path) -> None:
    file = tmp_path / "interlock.yaml"
    file.write_text("schemaVersion: agent-routing/v1\nintegrationId: a.b\n")
    with pytest.raises(target.Unusable, match=r"interlock\.yaml:\d"):
        target.read(file, "user", machine(tmp_path / "m"))


def test_a_variable_that_a_host_would_not_pass_on_keeps_its_server(tmp_path: Path) -> None:
    secret = token()
    on = machine(tmp_path, environ={"TOKEN": secret})
    for path in (CURSOR, DESKTOP):
        put(on, path, servers({"s": {"command": "c", "env": {"TOKEN": secret}}}))
    made = make(on)
    assert gone(made, "cursor") == ["s"]
    assert gone(made, "claude-desktop") == []
    assert "would not pass on TOKEN" in kept(made, "claude-desktop")["s"]
    moved = make(on, means=Means(environ=on.environ, secrets=HOME / "secrets", secrets_shown="~/.interlock/secrets"))
    assert gone(moved, "claude-desktop") == ["s"]


def test_rules_that_speak_of_old_names_are_told(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CLAUDE, {"mcpServers": {"s": {"command": "c"}, "t": {"command": "t"}}})
    put(on, "/home/ada/.claude/settings.json", {"permissions": {"allow": ["mcp__s__get"]}})
    made = make(on)
    assert made.imported.servers[0].document["tools"] == {"get": {"approval": "auto"}}
    assert any("rules for tools of s speak of their old names" in note for note in of(made, "claude-code").notes)


def test_one_file_of_two_hosts_gets_one_entry(tmp_path: Path) -> None:
    on = machine(tmp_path)
    file = on.join(on.folder, ".mcp.json")
    put(on, file, servers({"s": {"type": "stdio", "command": "c", "args": []}}))
    put(
        on, CLAUDE,
        {"projects": {on.folder: {"hasTrustDialogAccepted": True, "enabledMcpjsonServers": ["s"]}}},
    )  # fmt: skip
    put(on, "/home/ada/.copilot/config.json", {"trusted_folders": [on.folder], "trustedFolders": [on.folder]})
    made = make(on, "project", Target(Path(on.folder) / "interlock.yaml", "project"))
    readers = [host.adapter.id for host in made.hosts if host.goes and host.file == file]
    assert "claude-code" in readers
    assert len(readers) > 1, "this test is about a file that two hosts read"
    carry_out(made, on)
    entries = json.loads(Path(on.real(file)).read_text())["mcpServers"]
    assert list(entries) == ["interlock"]
    assert any("is for both" in note for host in made.hosts for note in host.notes)


@pytest.mark.parametrize("field", ["enabled: false\n", "isolation: {tenantFrom: x}\n"])
def test_what_the_manifest_does_not_run_is_not_adopted(tmp_path: Path, field: str) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"s": {"command": "c"}}))
    text = "schemaVersion: agent-routing/v1\nintegrationId: a.s\ntransports: {stdio: {command: [c]}}\n" + field
    made = make(on, manifest=_target(text.encode(), on))
    assert made.adopted == []
    assert "does not run it" in kept(made, "cursor")["s"]


def test_entries_that_generate_wrote_are_no_longer_interlocks(tmp_path: Path) -> None:
    from interlock.hosts import generated, generating, wanting

    on = machine(tmp_path)
    put(on, CODEX, 'model = "x"\n')
    text = "schemaVersion: agent-routing/v1\nintegrationId: a.s\ntransports: {stdio: {command: [c]}}\n"
    manifest = _target(text.encode(), on)
    codex = registry.find("codex")
    assert codex is not None
    direct = generating.plan(codex, on, [wanting.direct(manifest.servers["s"], codex, on, "user", None)], scope="user")
    for each in planned(on, [*direct.edits, *generated.edits(HOME, direct.owned)]):
        put(on, each.file, each.after.decode())
    ledger = generated.read(HOME, on)
    made = plan.make(
        inventory.take(on, plugins=False).declarations, on, home=HOME, target=manifest,
        connect=lambda host: ("/x/interlock", "connect", "--host", host), ledger=ledger,
    )  # fmt: skip
    assert gone(made, "codex") == ["s"]
    carry_out(made, on)
    names = {owned.server for _file, _where, owned in generated.read(HOME, on).of_host("codex")}
    assert names == {"interlock"}
    assert "mcp_servers.s]" not in Path(on.real(CODEX)).read_text()
