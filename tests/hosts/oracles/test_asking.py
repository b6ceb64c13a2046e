"""Hosts' answers are read right, compared right, and shown without secrets; their programs cannot hang or flood us."""

from __future__ import annotations

import dataclasses
import os
import sys
from pathlib import Path

import pytest

from interlock.hosts import reading, registry
from interlock.hosts.machine import Machine, here
from interlock.hosts.oracles import (
    asking,
    claude_code,
    codex,
    copilot_cli,
    cursor,
    gemini_family,
    goose,
    opencode,
    running,
)
from interlock.hosts.oracles.asked import Asked, OracleSays
from interlock.hosts.oracles.running import Output
from interlock.hosts.reading import Reading

posix = pytest.mark.skipif(sys.platform == "win32", reason="the fake hosts are scripts")


def _states(asked: Asked) -> dict[str, str]:
    return {name: says.state for name, says in asked.servers.items()}


def test_claude_code() -> None:
    asked = Asked(host="claude-code")
    text = """Checking MCP server health…

one: run x - ✔ Connected
plugin:fine:ps: run - with dash - ✔ Connected
gone: no-such  - ✘ Failed to connect — ENOENT
lst: run - ⊘ Disabled for this project (re-enable via /mcp)
pp: run - ⏸ Pending approval (run `claude` to approve)
no: run - ✘ Rejected (see disabledMcpjsonServers)
web: https://a.example/mcp (HTTP) - ! Needs authentication
 ├ [Warning] [bad] mcpServers.bad: Skipped — invalid MCP server config
 └ [Warning] [one] mcpServers.one: Missing environment variables: NOPE
"""
    claude_code.parsed(Output(0, text, ""), asked, ())
    assert _states(asked) == {
        "one": "connected", "plugin:fine:ps": "connected", "gone": "failed", "lst": "disabled", "pp": "pending",
        "no": "blocked", "web": "needs-login", "bad": "invalid",
    }  # fmt: skip
    assert asked.servers["web"].runs == "https://a.example/mcp"
    assert len(asked.notes) == 2


def test_claude_code_with_a_broken_file() -> None:
    asked = Asked(host="claude-code")
    claude_code.parsed(Output(1, "", "Claude configuration file at /x is corrupted: JSON Parse error"), asked, ())
    assert asked.refuses


def test_gemini() -> None:
    asked = Asked(host="gemini-cli")
    text = """Configured MCP servers:

✓ one: run x (stdio) - Connected
✗ web: https://a (http) - Disconnected
○ off: run (stdio) - Disabled
⛔ ex: run (stdio) - Blocked
✓ es (from fine): run (stdio) - Connected
"""
    gemini_family.parsed(Output(0, text, "Warning: MCP servers are untrusted"), asked, ())
    assert _states(asked) == {
        "one": "connected",
        "web": "failed",
        "off": "disabled",
        "ex": "blocked",
        "es": "connected",
    }
    assert asked.servers["es"].scope == "extension fine"
    refused = Asked(host="gemini-cli")
    gemini_family.parsed(Output(52, "", "Error in settings.json"), refused, ())
    assert refused.refuses


def test_codex_list() -> None:
    asked = Asked(host="codex")
    text = '[{"name": "a", "enabled": true, "transport": {"command": "run", "args": ["x"]}}, {"name": "b", "enabled": false}]'
    codex.parsed(Output(0, text, ""), asked, ())
    assert _states(asked) == {"a": "enabled", "b": "disabled"}
    assert asked.servers["a"].runs == "run x"
    broken = Asked(host="codex")
    codex.parsed(Output(1, "", "Error: failed to load"), broken, ())
    assert broken.refuses


def test_opencode() -> None:
    asked = Asked(host="opencode")
    config = '{"mcp": {"a": {"type": "local", "command": ["run", "x"]}, "off": {"enabled": false}, "gone": {"command": ["no"]}}}'
    assert opencode.of_config(Output(0, config, ""), asked, ())
    listed = (
        "┌ MCP Servers\n│\n●  ✓ a connected\n│      run x\n│\n"
        "●  ✗ gone failed\n│      Executable not found\n│      no\n●  ○ off disabled\n└\n"
    )
    opencode.of_list(Output(0, listed, ""), asked, ())
    assert _states(asked) == {"a": "connected", "off": "disabled", "gone": "failed"}
    assert asked.servers["gone"].detail == "Executable not found"
    assert asked.servers["a"].runs == "run x"


def test_copilot_goose_and_cursor() -> None:
    asked = Asked(host="copilot-cli")
    copilot_cli.parsed(
        Output(0, 'x\n{"mcpServers": {"a": {"command": "run", "args": [], "source": "user", "enabled": false}}}', ""),
        asked,
        (),
    )
    assert (_states(asked), asked.servers["a"].scope) == ({"a": "disabled"}, "user")
    asked = Asked(host="goose")
    goose.parsed(
        Output(
            0,
            "Config:\n  extensions:\n    a:\n      enabled: true\n      cmd: run\n    b:\n      cmd: x\n  other: 1\n",
            "",
        ),
        asked,
        (),
    )
    assert _states(asked) == {"a": "enabled", "b": "disabled"}
    asked = Asked(host="cursor")
    cursor.parsed(Output(0, "a: ready\nb: not loaded (needs approval)\nc: Error: x\n", ""), asked, ())
    assert _states(asked) == {"a": "connected", "b": "pending", "c": "failed"}


# Comparing


def _reading(folder: Path, config: str) -> Reading:
    home = folder / "home"
    (home / ".codex").mkdir(parents=True)
    (home / "code").mkdir()
    (home / ".codex/config.toml").write_text(config)
    adapter = registry.find("codex")
    assert adapter is not None
    on = dataclasses.replace(here({}), home=str(home), folder=str(home / "code"))
    return reading.read(adapter, on)


ENTRY = '[mcp_servers.one]\ncommand = "run"\nargs = ["x"]\n'
COMPARED = [
    (ENTRY, OracleSays(state="connected", runs="run x"), []),
    (ENTRY, OracleSays(state="failed"), []),
    (ENTRY, OracleSays(state="connected", runs="run y"), ["runs"]),
    (ENTRY, OracleSays(state="disabled"), ["state"]),
    (ENTRY, OracleSays(state="absent"), ["state"]),
    (ENTRY + "enabled = false\n", OracleSays(state="disabled"), []),
    (ENTRY + "enabled = false\n", OracleSays(state="connected"), ["state"]),
    (ENTRY + 'url = "https://a"\n', OracleSays(state="absent"), []),
    (ENTRY + 'url = "https://a"\n', OracleSays(state="connected"), ["state"]),
    ("", OracleSays(state="connected"), ["state"]),
]


@pytest.mark.parametrize(("config", "says", "what"), COMPARED)
def test_where_the_two_differ(tmp_path: Path, config: str, says: OracleSays, what: list[str]) -> None:
    asked = Asked(host="codex", live=True, servers={"one": says} if says.state != "absent" else {})
    assert [each.what for each in asking.compare(_reading(tmp_path, config), asked)] == what


def test_a_host_that_refuses_its_files_runs_nothing(tmp_path: Path) -> None:
    read = _reading(tmp_path, ENTRY)
    (found,) = asking.compare(read, Asked(host="codex", refuses=True, trouble="no"))
    assert (found.server, found.theirs) == ("one", "absent: no")


def test_without_an_answer_there_is_nothing_to_compare(tmp_path: Path) -> None:
    assert asking.compare(_reading(tmp_path, ENTRY), Asked(host="codex", trouble="it did not answer in time")) == []


def test_a_known_difference_has_its_reason(tmp_path: Path) -> None:
    read = _reading(tmp_path, '[mcp_servers."my server"]\ncommand = "run"\n')
    (found,) = asking.compare(read, Asked(host="codex", servers={"my server": OracleSays(state="enabled")}))
    assert "only reads files" in found.reason


# Running


def _fake(folder: Path, name: str, script: str) -> Machine:
    programs = folder / "bin"
    programs.mkdir()
    file = programs / name
    file.write_text(f"#!{sys.executable}\n{script}")
    file.chmod(0o755)
    return dataclasses.replace(
        here({"PATH": str(programs)}), home=str(folder / "home"), folder=str(folder), surrounding="native"
    )


@posix
def test_a_host_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    script = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print('started', child.pid, flush=True)\ntime.sleep(600)\n"
    )
    on = _fake(tmp_path, "slow", script)
    output = running.run([running.program(on, "slow")], on, 3)
    assert output.code is None
    child = int(output.out.split()[1])
    state = Path(f"/proc/{child}/stat")
    if state.exists():
        assert state.read_text().rpartition(")")[2].split()[0] == "Z"
    else:
        with pytest.raises(ProcessLookupError):
            os.kill(child, 0)


@posix
def test_a_flood_is_cut_and_standard_input_is_empty(tmp_path: Path) -> None:
    on = _fake(tmp_path, "flood", "import sys\nprint(len(sys.stdin.read()))\nsys.stdout.write('x' * 5_000_000)\n")
    output = running.run([running.program(on, "flood")], on, 60)
    assert output.code == 0
    assert output.out.startswith("0\n")
    assert len(output.out) == running.MOST_BYTES


@posix
def test_a_host_that_writes_while_it_is_asked_is_told_of(tmp_path: Path) -> None:
    on = _fake(tmp_path, "copilot", (
        "import os, pathlib\nfile = pathlib.Path(os.environ['HOME'], '.copilot/mcp-config.json')\n"
        "file.write_text(file.read_text() + ' ')\nprint('{\"mcpServers\": {}}')\n"
    ))  # fmt: skip
    file = tmp_path / "home/.copilot/mcp-config.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"mcpServers": {}}')
    adapter = registry.find("copilot-cli")
    assert adapter is not None
    asked = asking.ask(reading.read(adapter, on), 60)
    assert asked.trouble is None
    assert asked.wrote == [str(file)]


def test_a_host_that_is_not_here(tmp_path: Path) -> None:
    read = _reading(tmp_path, ENTRY)
    read.machine = dataclasses.replace(read.machine, environ={"PATH": str(tmp_path)}, surrounding="native")
    assert asking.ask(read).trouble == "`codex` is not on the PATH"
    read.machine = dataclasses.replace(read.machine, root=str(tmp_path))
    assert asking.ask(read).trouble == "the host is on another machine than this process"


def test_secrets_in_what_a_host_says_are_blacked_out(tmp_path: Path) -> None:
    token, plain = "gh" + "p_" + "A" * 36, "correct" + "horse"
    read = _reading(tmp_path, ENTRY + f'[mcp_servers.one.env]\nAPI_TOKEN = "{plain}"\n')
    known = running.known_secrets(read)
    shown = running.shown(f"run --password hunter2hunter2 TOKEN={token} said {plain} and \x1b more", known)
    assert not [each for each in (token, plain, "hunter2", "\x1b") if each in shown]
    asked = Asked(host="codex")
    codex.parsed(
        Output(0, f'[{{"name": "a", "transport": {{"command": "run", "args": ["{plain}"], "env": {{"T": "{token}"}}}}}}]', ""),
        asked, known,
    )  # fmt: skip
    assert plain not in repr(asked)
    assert token not in repr(asked)


APP_SERVER = """\
import json, sys
answers = {
    "initialize": {},
    "config/read": {
        "config": {"mcp_servers": {"a": {"command": "run", "args": ["x"]}, "off": {"enabled": False}, "gone": {"command": "no"}}},
        "origins": {"mcp_servers.a.command": {"name": {"type": "user", "file": "/u/config.toml"}}},
        "layers": [{"name": {"type": "project"}, "disabledReason": "not trusted"}, {"name": {"type": "user"}}],
    },
    "mcpServerStatus/list": {"data": [
        {"name": "a", "serverInfo": {"name": "x"}, "tools": {"echo": {}}},
        {"name": "off", "tools": {}},
        {"name": "gone", "tools": {}, "toolsError": "MCP startup failed"},
        {"name": "p", "pluginId": "fine@m", "serverInfo": {"name": "x"}, "tools": {}},
    ]},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"method": "some/notification"}), flush=True)
        print(json.dumps({"id": message["id"], "result": answers[message["method"]]}), flush=True)
"""


@posix
def test_the_app_server_of_codex(tmp_path: Path) -> None:
    read = _reading(tmp_path, "")
    read.machine = _fake(tmp_path, "codex", APP_SERVER)
    asked = asking.ask(read, 30)
    assert asked.trouble is None
    assert _states(asked) == {"a": "connected", "off": "disabled", "gone": "failed", "p": "connected"}
    assert (asked.servers["a"].tools, asked.servers["a"].origins) == (("echo",), {"command": "/u/config.toml"})
    assert asked.servers["p"].scope == "plugin"
    assert asked.notes == ["not trusted"], "a thread was not started: the project is not trusted"


@posix
def test_a_codex_whose_app_server_does_not_answer_is_asked_for_its_list(tmp_path: Path) -> None:
    read = _reading(tmp_path, "")
    script = (
        "import sys\nif sys.argv[1] == 'app-server': sys.exit(2)\n"
        'print(\'[{"name": "a", "enabled": true, "transport": {}}]\')\n'
    )
    read.machine = _fake(tmp_path, "codex", script)
    asked = asking.ask(read, 30)
    assert (_states(asked), asked.live, asked.command[1:]) == ({"a": "enabled"}, False, ("mcp", "list", "--json"))


# Programs that answer nothing of use


ENTRIES = {
    "codex": (".codex/config.toml", ENTRY),
    "claude-code": (".claude.json", '{"mcpServers": {"one": {"command": "run"}}}'),
    "gemini-cli": (".gemini/settings.json", '{"mcpServers": {"one": {"command": "run"}}}'),
    "opencode": (".config/opencode/opencode.json", '{"mcp": {"one": {"type": "local", "command": ["run"]}}}'),
    "copilot-cli": (
        ".copilot/mcp-config.json",
        '{"mcpServers": {"one": {"type": "local", "command": "run", "tools": ["*"]}}}',
    ),
    "cursor": (".cursor/mcp.json", '{"mcpServers": {"one": {"command": "run"}}}'),
    "goose": (
        ".config/goose/config.yaml",
        "extensions:\n  one: {type: stdio, name: one, enabled: true, cmd: run, args: []}\n",
    ),
}
PROGRAMS = {"claude-code": "claude", "gemini-cli": "gemini", "copilot-cli": "copilot", "cursor": "cursor-agent"}
USELESS = {
    "nothing": "pass\n",
    "deep": "print('[' * 200_000)\nprint('{\"a\":' * 200_000)\n",
    "other shapes": 'print(\'{"mcp": {"one": [1]}, "mcpServers": {"one": 7}}\')\n',
    "a signal": "import os\nos.kill(os.getpid(), 11)\n",
    "an end of input": "raise SystemExit(0 if input() else 0)\n",
}


def _host(folder: Path, host: str, script: str) -> Reading:
    machine = _fake(folder, PROGRAMS.get(host, host), script)
    name, content = ENTRIES[host]
    file = folder / "home" / name
    file.parent.mkdir(parents=True)
    file.write_text(content)
    adapter = registry.find(host)
    assert adapter is not None
    return reading.read(adapter, machine)


@posix
@pytest.mark.parametrize("host", ENTRIES)
@pytest.mark.parametrize(
    "script", [USELESS[name] for name in ("nothing", "deep", "a signal")], ids=["nothing", "deep", "signal"]
)
def test_a_useless_answer_is_a_trouble_and_no_disagreement(tmp_path: Path, host: str, script: str) -> None:
    read = _host(tmp_path, host, script)
    asked = asking.ask(read, 30)
    assert asked.trouble
    assert not asked.refuses, "it did not say that it does not take its files"
    assert asking.compare(read, asked) == []


@posix
@pytest.mark.parametrize("host", ENTRIES)
@pytest.mark.parametrize("script", USELESS.values(), ids=USELESS.keys())
def test_no_answer_of_a_host_stops_the_inventory(tmp_path: Path, host: str, script: str) -> None:
    assert asking.ask(_host(tmp_path, host, script), 30).host == host


@posix
@pytest.mark.parametrize("host", ENTRIES)
def test_a_host_that_never_answers_is_left_after_the_time_it_has(tmp_path: Path, host: str) -> None:
    asked = asking.ask(_host(tmp_path, host, "import time\ntime.sleep(600)\n"), 0.5)
    assert asked.trouble is not None
    assert "in time" in asked.trouble


@posix
@pytest.mark.parametrize("line", ["'y' * 65536", "'{}\\n' * 1000"], ids=["no line end", "many lines"])
def test_an_app_server_that_floods_is_left(tmp_path: Path, line: str) -> None:
    script = f"import os\nwhile True:\n    os.write(1, ({line}).encode())\n"
    asked = asking.ask(_host(tmp_path, "codex", script), 2)
    assert asked.trouble is not None


def test_what_was_listed_before_the_time_was_over_says_nothing_of_the_rest(tmp_path: Path) -> None:
    read = _reading(tmp_path, ENTRY + '[mcp_servers.two]\ncommand = "run"\n')
    asked = Asked(
        host="codex", partial=True, trouble="it did not answer in time", servers={"one": OracleSays(state="connected")}
    )
    assert asking.compare(read, asked) == []


@pytest.mark.skipif(sys.platform != "linux", reason="found by /proc")
@pytest.mark.parametrize("own", ["start_new_session=True", "process_group=0"])
def test_servers_in_a_session_or_group_of_their_own_are_ended_too(tmp_path: Path, own: str) -> None:
    script = (
        f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], {own})\n"
        "print('started', child.pid)\n"
    )
    on = _fake(tmp_path, "leaves", script)
    output = running.run([running.program(on, "leaves")], on, 30)
    state = Path(f"/proc/{int(output.out.split()[1])}/stat")
    try:
        left = state.read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return
    assert left == "Z"


LONG = {
    "one word": "print('y' * 900_000)\n",
    "colons": "print('a: ' * 300_000)\n",
    "marks": "print('a: b - ' * 100_000)\n",
    "an error of one word": "import sys\nsys.stderr.write('y' * 900_000)\nsys.exit(1)\n",
    "names of variables": "print('TOKEN=' * 100_000)\n",
    "escapes": "print('\\x1b]' * 300_000)\n",
}


@posix
@pytest.mark.timeout(60)
@pytest.mark.parametrize("host", ENTRIES)
@pytest.mark.parametrize("script", LONG.values(), ids=LONG.keys())
def test_long_answers_are_soon_read(tmp_path: Path, host: str, script: str) -> None:
    asked = asking.ask(_host(tmp_path, host, script), 30)
    assert len(asked.trouble or "") <= 400
