"""hosts/generating.py and what it stands on: exact files, ownership, losses, and what is left alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.hosts.tiny import RULES, carry_out, gateway, machine, put, tiny

from interlock.hosts import generated
from interlock.hosts.adapter import Adapter
from interlock.hosts.fact import Fact
from interlock.hosts.generating import Generated, plan
from interlock.hosts.machine import Machine
from interlock.hosts.place import PROJECT, Place
from interlock.hosts.wanting import WriteScope, candidates, connect, direct, variables
from interlock.hosts.writing import Rendered
from interlock.manifest.config import Gateway

HOME = "/home/ada/.interlock"
FILE = "/home/ada/.tiny/servers.json"
NOTES = "integrationId: a.notes\ntransports: {stdio: {command: [uvx, notes]}}\n"
TIME = "integrationId: a.time\ntransports: {stdio: {command: [uvx, time-server]}}\n"


def generate(
    here: Machine, found: Gateway, *, adapter: Adapter | None = None, scope: WriteScope = "user",
    write: bool = True, keys: Sequence[str] | None = None, **more: object,
) -> Generated:  # fmt: skip
    """One run as the command does it: plan, write, and keep in mind what was written."""
    adapter = adapter or tiny()
    chosen, _skipped = candidates(found, keys)
    prepared = [direct(config, adapter, here, scope, "/home/ada/code") for config in chosen]
    ledger = generated.read(HOME, here)
    made = plan(adapter, here, prepared, scope=scope, ledger=ledger, **more)  # type: ignore[arg-type]
    if write:
        carry_out(here, [*made.edits, *generated.edits(HOME, made.owned)])
    return made


def text(here: Machine, file: str = FILE) -> str:
    return Path(here.real(file)).read_text()


def states(made: Generated) -> dict[str, str]:
    return {item.server: item.state for item in made.entries}


@pytest.fixture
def here(tmp_path: Path) -> Machine:
    (tmp_path / "root" / "home" / "ada" / "code" / ".git").mkdir(parents=True)
    return machine(tmp_path / "root")


def test_an_exact_file_and_a_second_run_that_changes_nothing(here: Machine, tmp_path: Path) -> None:
    found = gateway(tmp_path / "m", NOTES, TIME)
    made = generate(here, found)
    assert states(made) == {"notes": "new", "time": "new"}
    assert text(here) == (
        '{\n  "servers": {\n    "notes": {\n      "command": "uvx",\n      "args": [\n        "notes"\n      ]\n    },\n'
        '    "time": {\n      "command": "uvx",\n      "args": [\n        "time-server"\n      ]\n    }\n  }\n}\n'
    )
    before, ledger = text(here), text(here, f"{HOME}/generated.json")
    again = generate(here, found)
    assert again.edits == ()
    assert again.owned == {}
    assert states(again) == {"notes": "same", "time": "same"}
    assert (text(here), text(here, f"{HOME}/generated.json")) == (before, ledger)


def test_foreign_entries_and_comments_stay(here: Machine, tmp_path: Path) -> None:
    before = '{\n  // mine\n  "theme": "dark",\n  "servers": {\n    "other": {"url": "https://x.example.com"}, // keep\n  },\n}\n'
    put(here, FILE, before)
    generate(here, gateway(tmp_path / "m", NOTES))
    after = text(here)
    assert "// mine" in after
    assert "// keep" in after
    assert '"other": {"url": "https://x.example.com"}' in after
    generate(here, gateway(tmp_path / "m2", TIME))
    assert "notes" not in text(here)
    assert '"time"' in text(here)
    assert '"other"' in text(here)


def test_an_entry_that_is_not_ours_is_refused_by_name_until_it_is_taken_over(here: Machine, tmp_path: Path) -> None:
    before = '{"servers": {"notes": {"command": "mine", "args": []}}}'
    put(here, FILE, before)
    found = gateway(tmp_path / "m", NOTES, TIME)
    made = generate(here, found)
    assert [(each.server, "--replace" in each.todo) for each in made.refused] == [("notes", True)]
    assert states(made) == {"time": "new"}
    assert json.loads(text(here))["servers"]["notes"] == {"command": "mine", "args": []}
    assert states(generate(here, found, replacing=True)) == {"notes": "replaced", "time": "same"}
    assert json.loads(text(here))["servers"]["notes"] == {"command": "uvx", "args": ["notes"]}
    assert states(generate(here, found)) == {"notes": "same", "time": "same"}


def test_a_foreign_entry_that_says_the_same_is_left_to_its_owner(here: Machine, tmp_path: Path) -> None:
    put(here, FILE, '{"servers": {"notes": {"command": "uvx", "args": ["notes"]}}}')
    made = generate(here, gateway(tmp_path / "m", NOTES))
    assert states(made) == {"notes": "same"}
    assert made.owned == {}
    generate(here, gateway(tmp_path / "m2", TIME))
    assert set(json.loads(text(here))["servers"]) == {"notes", "time"}


def test_what_a_person_added_to_our_entry_stays_and_what_was_ours_goes(here: Machine, tmp_path: Path) -> None:
    env = "integrationId: a.notes\ntransports: {stdio: {command: [uvx, notes], env: {MODE: a, LEVEL: b}}}\n"
    generate(here, gateway(tmp_path / "m", env))
    value = json.loads(text(here))
    value["servers"]["notes"]["timeout"] = 5
    value["servers"]["notes"]["env"]["MINE"] = "x"
    put(here, FILE, json.dumps(value, indent=2))
    less = "integrationId: a.notes\ntransports: {stdio: {command: [uvx, notes], env: {MODE: c}}}\n"
    assert states(generate(here, gateway(tmp_path / "m2", less))) == {"notes": "changed"}
    notes = json.loads(text(here))["servers"]["notes"]
    assert notes == {"command": "uvx", "args": ["notes"], "env": {"MODE": "c", "MINE": "x"}, "timeout": 5}
    generate(here, gateway(tmp_path / "m3", NOTES))
    assert json.loads(text(here))["servers"]["notes"]["env"] == {"MINE": "x"}


def test_what_was_changed_by_hand_is_said(here: Machine, tmp_path: Path) -> None:
    found = gateway(tmp_path / "m", NOTES)
    generate(here, found)
    put(here, FILE, text(here).replace("uvx", "npx"))
    made = generate(here, found)
    assert states(made) == {"notes": "changed"}
    assert any("by hand" in note for note in made.notes)
    assert json.loads(text(here))["servers"]["notes"]["command"] == "uvx"


def test_an_entry_that_is_gone_from_the_manifest_is_removed_with_its_rules(here: Machine, tmp_path: Path) -> None:
    ruled = NOTES + "tools: {read: {approval: auto}, list: {approval: auto}}\n"
    put(here, RULES, '{"allow": ["mine:x", "notes:list"]}')
    made = generate(here, gateway(tmp_path / "m", ruled, TIME + "tools: {now: {approval: auto}}\n"))
    assert states(made) == {"notes": "new", "time": "new"}
    assert json.loads(text(here, RULES)) == {"allow": ["mine:x", "notes:list", "notes:read", "time:now"]}

    fewer = gateway(tmp_path / "m2", NOTES + "tools: {list: {approval: auto}}\n", TIME)
    generate(here, fewer)
    # `notes:list` stood there before, so it is a person's; `notes:read` and `time:now` were ours.
    assert json.loads(text(here, RULES)) == {"allow": ["mine:x", "notes:list"]}
    assert generate(here, fewer).edits == ()

    generate(here, gateway(tmp_path / "m3", ruled))
    gone = generate(here, gateway(tmp_path / "m4", TIME))
    assert states(gone)["notes"] == "removed"
    assert json.loads(text(here, RULES)) == {"allow": ["mine:x", "notes:list"]}
    assert set(json.loads(text(here))["servers"]) == {"time"}
    assert "notes" not in text(here, f"{HOME}/generated.json")


def test_only_what_was_asked_for_is_touched(here: Machine, tmp_path: Path) -> None:
    found = gateway(tmp_path / "m", NOTES, TIME)
    generate(here, found)
    made = generate(here, found, keys=["time"], keeping=None)
    assert states(made) == {"time": "same"}
    assert made.edits == ()


def test_a_loss_that_weakens_is_refused_by_name_and_the_others_go(here: Machine, tmp_path: Path) -> None:
    denied = NOTES + "capability: {tools: {deny: [delete]}}\n"
    made = generate(here, gateway(tmp_path / "m", denied, TIME))
    assert states(made) == {"time": "new"}
    (refused,) = made.refused
    assert refused.server == "notes"
    assert "capability.tools.deny" in refused.why
    assert "no list of tools" in refused.why

    for found, more in (
        (gateway(tmp_path / "m2", "lossy: warn\n" + denied), {}),
        (gateway(tmp_path / "m3", denied), {"lossy": "warn"}),
    ):
        made = generate(here, found, write=False, **more)
        assert made.refused == ()
        assert [item.lossy for item in made.entries if item.server == "notes"] == [True]
        assert [(each.server, each.loss.field) for each in made.losses] == [("notes", "capability.tools.deny")]
    strict = generate(here, gateway(tmp_path / "m4", "lossy: warn\n" + denied), write=False, lossy="error")
    assert [each.server for each in strict.refused] == ["notes"]


def test_a_refused_server_keeps_what_stands_there(here: Machine, tmp_path: Path) -> None:
    generate(here, gateway(tmp_path / "m", NOTES))
    made = generate(here, gateway(tmp_path / "m2", NOTES + "capability: {tools: {deny: [x]}}\n"))
    assert [each.server for each in made.refused] == ["notes"]
    assert set(json.loads(text(here))["servers"]) == {"notes"}


def test_servers_that_may_not_start_are_not_generated(tmp_path: Path) -> None:
    tenant = "integrationId: a.multi\ntransports: {stdio: {command: [x]}}\nisolation: {tenantFrom: t}\n"
    found = gateway(tmp_path / "m", NOTES, tenant, "enabled: false\n" + TIME)
    chosen, skipped = candidates(found)
    assert [config.key for config in chosen] == ["notes"]
    assert [(each.server, each.off) for each in skipped] == [("multi", False), ("time", True)]
    assert all(each.why for each in skipped)


def test_secrets_stay_references(here: Machine, tmp_path: Path) -> None:
    held = "integrationId: a.notes\ntransports: {stdio: {command: [x], env: {API_TOKEN: {fromEnv: MY_TOKEN}}}}\n"
    found = gateway(tmp_path / "m", held)
    assert variables(found.servers["notes"]) == ("MY_TOKEN",)
    generate(here, found)
    assert json.loads(text(here))["servers"]["notes"]["env"] == {"API_TOKEN": "${MY_TOKEN}"}
    own = connect(("interlock", "connect", "--host", "tiny"), found, "user", None)
    assert own.pass_names == ("MY_TOKEN",)
    made = plan(tiny(), here, [own], ledger=generated.read(HOME, here))
    assert states(made) == {"interlock": "new", "notes": "removed"}


def test_interlocks_own_entry_needs_no_record_to_be_ours(here: Machine) -> None:
    put(here, FILE, '{"servers": {"interlock": {"command": "/old/interlock", "args": ["connect", "--host", "tiny"]}}}')
    own = connect(("interlock", "connect", "--host", "tiny"), Gateway({}, (), ""), "user", None)
    assert states(plan(tiny(), here, [own])) == {"interlock": "changed"}


@pytest.mark.parametrize(
    ("adapter", "key", "said"),
    [
        (tiny(), "Notes Two", "has to match"),
        (tiny(reserved=frozenset(("notes",))), "notes", "keeps this name"),
        (tiny(transports=Fact(frozenset(("http",)), "O")), "notes", "no stdio server"),
        (tiny(write=lambda wanted, machine: Rendered(entry={})), "notes", "no form"),
    ],
)
def test_what_the_host_cannot_take_is_refused_by_name(
    here: Machine, tmp_path: Path, adapter: Adapter, key: str, said: str
) -> None:
    made = generate(here, gateway(tmp_path / "m", f"key: {key}\n{NOTES}"), adapter=adapter, lossy="warn")
    assert made.edits == ()
    assert [each.server for each in made.refused] == [key]
    assert said in made.refused[0].why


def test_names_that_differ_only_in_case(here: Machine, tmp_path: Path) -> None:
    folding = tiny(folds_case=True, server_names=Fact(None, "U"))
    put(here, FILE, '{"servers": {"NOTES": {"command": "mine"}}}')
    made = generate(here, gateway(tmp_path / "m", NOTES, "key: Time\n" + NOTES, TIME), adapter=folding)
    assert sorted(each.server for each in made.refused) == ["notes", "time"]


def test_a_file_that_cannot_be_read_is_left_alone(here: Machine, tmp_path: Path) -> None:
    put(here, FILE, '{"servers": {')
    made = generate(here, gateway(tmp_path / "m", NOTES))
    assert made.edits == ()
    assert made.entries == ()
    assert made.refused[0].server == ""
    assert FILE in made.refused[0].why
    assert text(here) == '{"servers": {'


def test_a_scope_that_the_host_has_not(here: Machine, tmp_path: Path) -> None:
    made = generate(here, gateway(tmp_path / "m", NOTES), scope="local")
    assert made.file is None
    assert "local scope" in made.refused[0].why


def test_the_first_file_that_exists_else_the_first(here: Machine, tmp_path: Path) -> None:
    def two(other: str) -> Adapter:
        return tiny(
            places=(
                Place(
                    scope="user", find=lambda machine: [machine.user("a.json"), machine.user("b.json")], format="jsonc",
                    tables=(("servers",),), rank=1, shown="", known=Fact(True, "O"), writes=True,
                ),
            )
        )  # fmt: skip

    assert generate(here, gateway(tmp_path / "m", NOTES), adapter=two(""), write=False).file == "/home/ada/a.json"
    put(here, "/home/ada/b.json", "{}")
    assert generate(here, gateway(tmp_path / "m", NOTES), adapter=two(""), write=False).file == "/home/ada/b.json"


def test_an_entry_under_the_projects_own_key(here: Machine, tmp_path: Path) -> None:
    keyed = tiny(
        places=(
            Place(
                scope="local", find=lambda machine: [machine.user("all.json")], format="jsonc",
                tables=(("projects", PROJECT, "servers"),), rank=1, shown="", known=Fact(True, "O"), writes=True,
            ),
        )
    )  # fmt: skip
    deep = machine(Path(here.root or ""), "/home/ada/code/sub")
    found = gateway(tmp_path / "m", NOTES)
    generate(deep, found, adapter=keyed, scope="local")
    assert list(json.loads(text(here, "/home/ada/all.json"))["projects"]) == ["/home/ada/code"]
    assert generate(deep, found, adapter=keyed, scope="local").edits == ()


def test_a_list_of_entries(here: Machine, tmp_path: Path) -> None:
    listed = tiny(
        id="continue",
        places=(
            Place(
                scope="user", find=lambda machine: [machine.user("c.yaml")], format="yaml", tables=(("mcpServers",),),
                rank=1, shown="", known=Fact(True, "O"), writes=True, listed=True,
            ),
        ),
        read=lambda raw: tiny().read(raw),
        write=lambda wanted, machine: Rendered(entry={"name": wanted.name, **tiny().write(wanted, machine).entry}),
    )  # fmt: skip
    put(here, "/home/ada/c.yaml", "# mine\nmcpServers:\n  - name: other\n    url: https://x.example.com\n")
    generate(here, gateway(tmp_path / "m", NOTES, TIME), adapter=listed)
    after = text(here, "/home/ada/c.yaml")
    assert after.startswith("# mine\n")
    assert "name: other" in after
    assert "name: notes" in after
    assert generate(here, gateway(tmp_path / "m", NOTES, TIME), adapter=listed).edits == ()
    generate(here, gateway(tmp_path / "m2", TIME), adapter=listed)
    assert "notes" not in text(here, "/home/ada/c.yaml")
    assert "name: other" in text(here, "/home/ada/c.yaml")


# Commands and paths


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "tools").mkdir()
    (root / "tools" / "server.js").write_text("")
    (root / "bin").mkdir()
    for name in ("node", "npx"):
        (root / "bin" / name).write_text("#!/bin/sh\n")
        (root / "bin" / name).chmod(0o755)
    return root


def entry_of(
    project: Path, stdio: str, adapter: Adapter, scope: WriteScope, platform: str = "linux"
) -> tuple[dict[str, object], Generated]:
    where = Machine(
        platform=platform,
        home="/home/ada",
        folder=str(project),
        environ={},
        root=str(project / "none"),  # type: ignore[arg-type]
    )
    document = f"integrationId: a.notes\ntransports: {{stdio: {{{stdio}}}}}\n"
    found = gateway(project, document, environ={"PATH": str(project / "bin")})
    made = generate(where, found, adapter=adapter, scope=scope, write=False)
    assert made.refused == ()
    return dict(made.entries[0].entry), made


def test_the_program_as_the_host_will_find_it(project: Path) -> None:
    plain, desktop = tiny(), tiny(gui=True)
    node = str(project / "bin" / "node")
    assert entry_of(project, "command: [node, -v]", plain, "user")[0]["command"] == "node"
    assert entry_of(project, "command: [node, -v]", desktop, "user")[0]["command"] == node
    assert entry_of(project, "command: [node, -v]", desktop, "project")[0]["command"] == "node"
    assert entry_of(project, "command: [bin/node, -v]", plain, "user")[0]["command"] == node


def test_batch_files_on_windows(project: Path) -> None:
    windows, _made = entry_of(project, "command: [npx, -y, x]", tiny(), "user", "windows")
    assert (windows["command"], windows["args"]) == ("cmd", ["/c", "npx", "-y", "x"])
    shared, made = entry_of(project, "command: [npx, -y, x]", tiny(), "project", "windows")
    assert (shared["command"], shared["args"]) == ("npx", ["-y", "x"])
    assert any("cmd /c npx" in note for note in made.notes)


def test_the_working_directory(project: Path) -> None:
    knows, not_so = tiny(), tiny(fields=frozenset(("command", "args")))
    server = str(project / "tools" / "server.js")
    assert "cwd" not in entry_of(project, "command: [node, -v]", knows, "user")[0]
    relative, _ = entry_of(project, "command: [node, tools/server.js]", knows, "user")
    assert (relative["cwd"], relative["args"]) == (str(project), ["tools/server.js"])
    made_absolute, _ = entry_of(project, "command: [node, tools/server.js]", not_so, "user")
    assert made_absolute == {"command": "node", "args": [server]}
    lost, made = entry_of(project, "command: [node, server.js], cwd: tools", not_so, "user")
    assert lost["args"] == [server]
    assert [(each.loss.field, each.loss.weakens) for each in made.losses] == [("transports.stdio.cwd", False)]


@pytest.mark.parametrize(
    ("id", "form", "note"),
    [
        ("vscode", "${workspaceFolder}", ""),
        ("cursor", "${workspaceFolder}", ""),
        ("claude-code", "${CLAUDE_PROJECT_DIR:-.}", "start it in the project's root"),
        ("codex", ".", "start it in the project's root"),
        ("tiny", None, "wrong on every other"),
    ],
)
def test_the_projects_root_in_a_projects_file(project: Path, id: str, form: str | None, note: str) -> None:
    stdio = 'command: [node, "${projectRoot}/tools/server.js"], env: {CACHE: "${projectRoot}/.cache"}'
    form = form or str(project)
    entry, made = entry_of(project, stdio, tiny(id=id), "project")
    assert entry["args"] == [f"{form}/tools/server.js"]
    assert entry["env"] == {"CACHE": f"{form}/.cache"}
    assert note in " ".join(made.notes)
    assert bool(made.notes) == bool(note)
    mine, _made = entry_of(project, stdio, tiny(id=id), "user")
    assert mine["args"] == [f"{project}/tools/server.js"]


def test_a_relative_path_in_a_projects_file_stays_in_the_project(project: Path) -> None:
    entry, _made = entry_of(project, "command: [node, tools/server.js]", tiny(id="vscode"), "project")
    assert (entry["cwd"], entry["args"]) == ("${workspaceFolder}", ["tools/server.js"])


# What is remembered


def test_a_record_that_cannot_be_read_makes_nothing_ours(here: Machine, tmp_path: Path) -> None:
    generate(here, gateway(tmp_path / "m", NOTES))
    put(here, f"{HOME}/generated.json", "{")
    assert generated.read(HOME, here).fault
    made = generate(here, gateway(tmp_path / "m2", TIME), write=False)
    assert states(made) == {"time": "new"}


def test_pointers() -> None:
    for where in ((), ("a",), ("a/b", "c~d", ""), ("projects", "/home/ada", "servers", "x")):
        assert generated.from_pointer(generated.pointer(where)) == where
