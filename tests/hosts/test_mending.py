"""Adoption of what is not as it should be: files that cannot be changed, references that no host fills in, `~`, and keys."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.hosts.adapters.fake import machine, put
from tests.hosts.test_importing import CODEX, CURSOR, DESKTOP, VSCODE, servers
from tests.hosts.test_plan import CLAUDE, FILE, HOME, carry_out, gone, kept, make, of

from interlock.hosts import importing, inventory, registry
from interlock.hosts.changes import applying, restoring
from interlock.hosts.changes.refused import Refused
from interlock.hosts.machine import Machine
from interlock.hosts.shown_paths import shortened, with_tilde

OPENCODE = "/home/ada/.config/opencode/opencode.json"
ANTIGRAVITY = "/home/ada/.gemini/config/mcp_config.json"


def imported(on: Machine) -> importing.Import:
    return importing.take(inventory.take(on, plugins=False).declarations, on, target=FILE)


# One host's file


def read_only(real: Path) -> None:
    real.chmod(0o444)


def in_a_read_only_folder(real: Path) -> None:
    real.parent.chmod(0o555)


@pytest.mark.skipif(sys.platform == "win32", reason="modes")
@pytest.mark.parametrize("spoil", [read_only, in_a_read_only_folder])
def test_a_file_that_cannot_be_written_keeps_its_host_out_and_no_other(tmp_path: Path, spoil: Any) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"a": {"command": "a"}}))
    put(on, DESKTOP, servers({"b": {"command": "b"}}))
    real = Path(on.real(CURSOR))
    try:
        spoil(real)
        made = make(on)
        with pytest.raises(Refused):
            applying.planned(on, [*_written(CURSOR)])
    finally:
        real.parent.chmod(0o755)
    assert made.adopted == ["b"]
    assert gone(made, "cursor") == []
    assert "read-only" in kept(made, "cursor")["a"]
    assert of(made, "cursor").entry is None
    assert all(each.file != CURSOR for each in made.edits())
    assert b"local.a" not in (made.content or b"")


def _written(file: str) -> list[Any]:
    from interlock.hosts.writing import Edit, FileEdits

    return [FileEdits(file=file, format="json", comments=True, edits=(Edit(("x",), 1),))]


@pytest.mark.skipif(sys.platform == "win32", reason="pipes")
def test_a_pipe_in_the_place_of_a_file_is_never_opened(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, DESKTOP, servers({"b": {"command": "b"}}))
    real = Path(on.real(CURSOR))
    real.parent.mkdir(parents=True)
    os.mkfifo(real)
    made = make(on)
    assert made.adopted == ["b"]
    assert "regular" in str([each.why for each in of(made, "cursor").stays])
    with pytest.raises(Refused, match="regular"):
        applying.planned(on, _written(CURSOR))


def test_a_second_file_of_a_host_that_cannot_be_written_keeps_only_its_own_entries(tmp_path: Path) -> None:
    on = machine(tmp_path)
    trusted = f'[projects."{on.folder}"]\ntrust_level = "trusted"\n'
    put(on, CODEX, f'{trusted}\n[mcp_servers.user]\ncommand = "u"\n')
    other = on.join(on.folder, ".codex", "config.toml")
    put(on, other, '[mcp_servers.here]\ncommand = "h"\n')
    Path(on.real(other)).chmod(0o444)
    made = make(on)
    assert gone(made, "codex") == ["user"]


@pytest.mark.parametrize("path", [CURSOR, DESKTOP, ANTIGRAVITY])
def test_what_a_host_is_not_known_to_refuse_may_stay_in_its_file(tmp_path: Path, path: str) -> None:
    on = machine(tmp_path)
    put(on, path, '{\n  // mine\n  "mcpServers": {\n    "a": {"command": "a"},\n  },\n}\n')
    made = make(on)
    assert made.adopted == ["a"]
    carry_out(made, on)
    after = Path(on.real(path)).read_text()
    assert "// mine" in after
    assert '"interlock"' in after
    assert '"a"' not in after


def test_what_a_host_is_known_to_refuse_is_a_fault(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CLAUDE, '{\n  // mine\n  "mcpServers": {"a": {"command": "a"}}\n}\n')
    made = make(on)
    assert made.adopted == []
    (left,) = of(made, "claude-code").stays
    assert "comment" in left.why
    assert "comment" in left.todo
    assert left.spot is not None
    assert left.spot.line == 2 or left.server == "a"


# References


TEXT = {
    "codex": (CODEX, '[mcp_servers.s]\ncommand = "c"\nenv = { TZ = "${TZ}" }\n', 'env_vars = ["TZ"]'),
    "cursor": (CURSOR, servers({"s": {"command": "c", "env": {"TZ": "${TZ}"}}}), "${env:TZ}"),
    "opencode": (
        OPENCODE,
        {"mcp": {"s": {"type": "local", "command": ["c"], "environment": {"TZ": "${TZ}"}}}},
        "{env:TZ}",
    ),
}


@pytest.mark.parametrize("host", TEXT)
def test_a_reference_that_stays_text_keeps_its_server_where_the_variable_is_not_set(tmp_path: Path, host: str) -> None:
    path, content, mend = TEXT[host]
    on = machine(tmp_path)
    put(on, path, content)
    before = Path(on.real(path)).read_bytes()
    made = make(on)
    assert made.adopted == []
    (left,) = of(made, host).stays
    assert left.server == "s"
    assert "TZ is not set here" in left.why
    assert mend in left.todo
    assert "set TZ where" in left.todo.lower().replace("set tz", "set TZ")
    carry_out(made, on)
    assert Path(on.real(path)).read_bytes() == before


@pytest.mark.parametrize("host", TEXT)
def test_a_reference_that_stays_text_is_mended_where_the_variable_is_set(tmp_path: Path, host: str) -> None:
    path, content, _mend = TEXT[host]
    on = machine(tmp_path, environ={"TZ": "UTC"})
    put(on, path, content)
    made = make(on)
    assert gone(made, host) == ["s"]
    assert made.imported.servers[0].document["transports"] == {"stdio": {"command": ["c"], "envNames": ["TZ"]}}
    ((_key, _host, note),) = made.imported.notes
    assert note.mends
    assert "mended" in note.text


def test_import_takes_it_and_says_so(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, *TEXT["codex"][:2])
    made = imported(on)
    assert [each.key for each in made.servers] == ["s"]
    assert "which is not set" in made.notes[0][2].text


def test_a_reference_that_the_host_fills_in_is_adopted_with_a_warning(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"s": {"command": "c", "env": {"A": "${env:UNSET_HERE}"}}}))
    made = make(on)
    assert gone(made, "cursor") == ["s"]
    assert any("UNSET_HERE" in note for note in of(made, "cursor").notes)


@pytest.mark.parametrize(("environ", "goes"), [({}, []), ({"API_KEY": "x"}, ["s"])])
def test_what_a_person_is_asked_for_stays_until_a_variable_holds_it(
    tmp_path: Path, environ: dict[str, str], goes: list[str]
) -> None:
    on = machine(tmp_path, environ=environ)
    entry = {"command": "c", "env": {"KEY": "${input:api-key}"}}
    put(on, VSCODE, {"servers": {"s": entry}, "inputs": [{"id": "api-key", "type": "promptString"}]})
    made = make(on)
    assert gone(made, "vscode") == goes
    assert goes or "API_KEY is not set" in kept(made, "vscode")["s"]


def test_the_mistake_of_one_host_does_not_touch_the_others(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, DESKTOP, servers({"time": {"command": "c"}}))
    put(on, CODEX, '[mcp_servers.time]\ncommand = "c"\nenv = { TZ = "${TZ}" }\n')
    made = make(on)
    assert gone(made, "claude-desktop") == ["time"]
    assert gone(made, "codex") == []
    assert [each.server for each in of(made, "codex").stays] == ["time"]
    assert made.imported.servers[0].document["transports"] == {"stdio": {"command": ["c"]}}


@pytest.mark.parametrize(
    ("hosts", "keys"),
    [
        # A mistake makes the two differ: no host's name.
        ({CLAUDE: {"type": "stdio", "command": "a"}, CODEX: 'command = "b"\nenv = { TZ = "${TZ}" }'}, {"time", "time-2"}),
        # Two that differ because people want them to.
        ({CLAUDE: {"type": "stdio", "command": "a"}, CODEX: 'command = "b"'}, {"time", "time-codex"}),
        # More than one host has the second.
        ({CLAUDE: {"type": "stdio", "command": "a"}, CODEX: 'command = "b"', CURSOR: {"command": "b"}}, {"time", "time-2"}),
    ],
    ids=["mistake", "wanted", "shared"],
)  # fmt: skip
def test_keys_stay_natural(tmp_path: Path, hosts: dict[str, Any], keys: set[str]) -> None:
    on = machine(tmp_path, environ={"TZ": "UTC"})
    for path, entry in hosts.items():
        put(on, path, f"[mcp_servers.time]\n{entry}\n" if path == CODEX else servers({"time": entry}))
    assert set(make(on).adopted) == keys


# The home


@pytest.mark.parametrize(
    ("entry", "field", "expected"),
    [
        ('args = ["~/data"]', "args.0", {"command": ["c", "/home/ada/data"]}),
        ('args = ["--dir=~/data"]', "args.0", {"command": ["c", "--dir=/home/ada/data"]}),
        ('args = ["a~/b", "~ada/x"]', None, {"command": ["c", "a~/b", "~ada/x"]}),
        ('cwd = "~/data"', "cwd", {"command": ["c"], "cwd": "/home/ada/data"}),
    ],
)
def test_a_tilde_that_the_host_passes_on_is_mended(
    tmp_path: Path, entry: str, field: str | None, expected: dict[str, Any]
) -> None:
    on = machine(tmp_path)
    put(on, CODEX, f'[mcp_servers.s]\ncommand = "c"\n{entry}\n')
    made = make(on)
    assert made.imported.servers[0].document["transports"] == {"stdio": expected}
    mended = [(note.field, note.text) for _key, _host, note in made.imported.notes if note.mends]
    assert [name for name, _text in mended] == ([] if field is None else [field])
    assert all("passed on as it stands" in text or "passes `~` on as it stands" in text for _name, text in mended)


def test_a_tilde_of_which_nothing_is_known_is_written_out_and_said(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"s": {"command": "~/bin/s"}}))
    made = make(on)
    assert made.imported.servers[0].document["transports"] == {"stdio": {"command": ["/home/ada/bin/s"]}}
    assert "not known" in made.imported.notes[0][2].text


# Paths


@pytest.mark.parametrize(
    ("text", "here", "kept_text"),
    [
        ("a (/home/ada/.x:4)", "a (~/.x:4)", "a (~/.x:4)"),
        ("/home/ada/code/app/.mcp.json:1: b", ".mcp.json:1: b", "~/code/app/.mcp.json:1: b"),
        ("the project /home/ada/code/app; from", "the project ~/code/app; from", "the project ~/code/app; from"),
        ("in /home/ada.", "in ~.", "in ~."),
        ("/home/adam/x /mnt/home/ada/x", "/home/adam/x /mnt/home/ada/x", "/home/adam/x /mnt/home/ada/x"),
    ],
)
def test_paths_are_short(tmp_path: Path, text: str, here: str, kept_text: str) -> None:
    on = machine(tmp_path)
    assert on.folder == "/home/ada/code/app"
    assert shortened(text, on) == here
    assert with_tilde(text, on) == kept_text


def test_the_manifest_names_no_home(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"s": {"command": "c"}}))
    made = make(on)
    assert b"# From Cursor: ~/.cursor/mcp.json:3\n" in (made.content or b"")
    assert b"/home/ada" not in (made.content or b"")


# And back


def test_restore_after_the_host_wrote_its_file_anew(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"a": {"command": "a", "args": ["1"]}, "bad": {"command": "./x"}}))
    put(on, CODEX, '# mine\nmodel = "x"\n\n[mcp_servers.c]\ncommand = "c" # why\n')
    old = {path: Path(on.real(path)).read_bytes() for path in (CURSOR, CODEX)}
    home = tmp_path / "interlock-home"
    applied = applying.apply(home, on, make(on).edits(), command="adopt")
    file = Path(on.real(CURSOR))
    now = json.loads(file.read_text())
    assert set(now["mcpServers"]) == {"bad", "interlock"}
    now["mcpServers"]["later"] = {"command": "l"}
    now["theme"] = "dark"
    file.write_text(json.dumps(now, indent="\t"))
    done = restoring.restore(home, on, applied.id, force=False)
    assert done.complete
    after = json.loads(file.read_text())
    assert after == {
        "mcpServers": {
            "a": {"command": "a", "args": ["1"]}, "bad": {"command": "./x"}, "later": {"command": "l"},
        },
        "theme": "dark",
    }  # fmt: skip
    assert "\n\t" in file.read_text()
    assert Path(on.real(CODEX)).read_bytes() == old[CODEX]
    assert HOME.name == ".interlock"


@pytest.mark.parametrize("id", registry.IDS)
def test_every_host_s_tolerance_says_what_may_stay(id: str) -> None:
    adapter = registry.find(id)
    assert adapter is not None
    assert adapter.tolerance.leaves_comments is (adapter.tolerance.comments.value is not False)


# Interlock's own entry under another name


@pytest.mark.parametrize(
    ("args", "goes"),
    [(["connect"], True), (["connect", "--host", "cursor"], True), (["connect", "--manifest", "x.yaml"], False)],
)
def test_a_second_way_to_interlock_goes_where_it_is_a_plain_one(tmp_path: Path, args: list[str], goes: bool) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"mine": {"command": "interlock", "args": args}, "a": {"command": "a"}}))
    made = make(on)
    carry_out(made, on)
    left = json.loads(Path(on.real(CURSOR)).read_text())["mcpServers"]
    assert set(left) == ({"interlock"} if goes else {"interlock", "mine"})
    assert ("mine" in kept(made, "cursor")) is not goes
    assert any("twice" in note for note in of(made, "cursor").notes) is not goes


def test_alone_it_stays_as_it_is(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"mine": {"command": "interlock", "args": ["connect"]}}))
    assert make(on).edits() == []


# Entries side by side


def test_two_entries_of_one_host_with_other_variables_are_two_servers(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"home": {"command": "c", "env": {"A": "1"}}, "work": {"command": "c", "env": {"B": "2"}}}))
    made = make(on)
    found = {each.key: each.document["transports"] for each in made.imported.servers}
    assert found == {
        "home": {"stdio": {"command": ["c"], "env": {"A": "1"}}},
        "work": {"stdio": {"command": ["c"], "env": {"B": "2"}}},
    }


def test_a_mistake_in_one_hosts_entry_does_not_keep_the_others_of_that_server(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, CURSOR, servers({"s": {"command": "c", "env": {"": "v"}}}))
    put(on, DESKTOP, servers({"s": {"command": "c"}}))
    put(on, VSCODE, servers({"s": {"command": "c", "env": {"LEVEL": "1"}}}, "servers"))
    made = make(on)
    assert (gone(made, "cursor"), gone(made, "claude-desktop"), gone(made, "vscode")) == ([], ["s"], ["s"])
    assert "empty" in kept(made, "cursor")["s"]
    (server,) = made.imported.servers
    assert (server.key, server.document["integrationId"]) == ("s", "local.s")
    assert server.document["transports"] == {"stdio": {"command": ["c"], "env": {"LEVEL": "1"}}}


# In the home itself


@pytest.mark.parametrize("host", ["cursor", "codex", "gemini-cli", "qwen-code"])
def test_in_the_home_itself_the_users_files_are_the_users(tmp_path: Path, host: str) -> None:
    """There a project's file of some hosts is the same as the user's."""
    from dataclasses import replace

    on = machine(tmp_path)
    path = {
        "cursor": CURSOR, "codex": CODEX, "gemini-cli": "/home/ada/.gemini/settings.json",
        "qwen-code": "/home/ada/.qwen/settings.json",
    }[host]  # fmt: skip
    put(on, path, '[mcp_servers.a]\ncommand = "a"\n' if host == "codex" else servers({"a": {"command": "a"}}))
    made = make(replace(on, folder="/home/ada"))
    assert gone(made, host) == ["a"]
    assert {each.declaration.scope for each in of(made, host).goes} == {"user"}
