"""The commands check, trust and schema: output, exit codes, and what a terminal is shown."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interlock.cli import check, common, schema, trust
from interlock.manifest.launch import LaunchPlan
from interlock.manifest.trust import Trust

if TYPE_CHECKING:
    from conftest import Desk

GOOD = """\
schemaVersion: agent-routing/v1
integrationId: acme.search
transports:
  stdio:
    command: [python3, -V]
policy: {maxResultBytes: 100}
"""


@pytest.fixture
def run(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    def call(*words: str | Path) -> int:
        monkeypatch.chdir(desk.project)
        parser = argparse.ArgumentParser()
        subparsers = parser.add_subparsers()
        for module in (check, trust, schema):
            module.add(subparsers)
        for each in subparsers.choices.values():
            common.add_common(each)
        args = parser.parse_args([*map(str, words), "--home", str(desk.home)])
        return args.run(args)

    return call


Run = Callable[..., int]


def test_check_of_a_right_manifest(run: Run, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.write("user", GOOD)
    assert run("check") == 0
    out = capsys.readouterr().out
    assert "search" in out
    assert "ready" in out
    assert "not enforced search: policy.maxResultBytes" in out
    assert "Every call to these servers asks first" in out
    assert "policy: {defaultApproval: writes}" in out


def test_check_names_file_line_field_and_advice(run: Run, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    file = desk.write("user", GOOD + "polcy: {}\n")
    assert run("check") == 8
    out = capsys.readouterr().out
    assert f"error {file}:7:1: polcy: There is no field `polcy`; did you mean `policy`? Write: policy:" in out
    assert "1 error" in out


def test_check_as_json(run: Run, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    desk.write("user", GOOD + "---\nx: 1\n")
    file = desk.write("project", GOOD.replace("acme.search", "acme.other"))
    assert run("check", "--json") == 8
    answer = json.loads(capsys.readouterr().out)
    assert answer["ok"] is False
    servers = {server["key"]: server for server in answer["servers"]}
    assert (servers["search"]["state"], servers["other"]["state"]) == ("ready", "blocked")
    assert (servers["other"]["scope"], servers["other"]["file"], servers["other"]["line"]) == ("project", str(file), 2)
    assert servers["search"]["unenforced"] == ["policy.maxResultBytes"]
    assert {problem["code"] for problem in answer["problems"]} == {"unknown-field", "missing"}
    assert [each["how"] for each in answer["trust"]] == ["never", "scope"]


@pytest.mark.parametrize(
    ("policy", "hint"),
    [
        ("{}", True),
        ("{defaultApproval: prompt}", True),
        ("{defaultApproval: auto}", False),
        ("{defaultApproval: writes}", False),
    ],
)
def test_a_newcomer_whose_calls_all_ask_is_told_the_line(
    run: Run, desk: Desk, capsys: pytest.CaptureFixture[str], policy: str, hint: bool
) -> None:
    desk.write("user", GOOD.replace("{maxResultBytes: 100}", policy))
    run("check", "--json")
    assert bool(json.loads(capsys.readouterr().out)["hints"]) is hint


def test_variables_that_are_not_set_are_named(
    run: Run, desk: Desk, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACME_TEST_A", raising=False)
    monkeypatch.setenv("ACME_TEST_B", "x")
    desk.write("user", GOOD.replace("-V]\n", "-V]\n    envNames: [ACME_TEST_A, ACME_TEST_B]\n"))
    run("check", "--json")
    assert json.loads(capsys.readouterr().out)["servers"][0]["missingVariables"] == ["ACME_TEST_A"]


def test_without_a_manifest_check_shows_a_first_one(run: Run, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check") == 0
    first = capsys.readouterr().out.partition("home:")[2]
    loaded = desk.load_text(first)
    assert loaded.errors == ()
    assert len(loaded.gateway.servers) == 1


def test_schema_prints_a_json_schema(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("schema") == 0
    assert json.loads(capsys.readouterr().out)["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_trust_refuses_without_a_terminal(run: Run, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    file = desk.write("project", GOOD)
    assert run("trust", file) == 2
    captured = capsys.readouterr()
    assert "python3 -V" in captured.out
    assert "terminal" in captured.err
    assert desk.load().trusts[0].how == "never"


@pytest.mark.parametrize(
    ("answer", "code", "how"), [("y", 0, "stored"), ("yes", 0, "stored"), ("", 8, "never"), ("n", 8, "never")]
)
def test_trust_asks_at_a_terminal(
    run: Run, desk: Desk, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, how: str
) -> None:
    file = desk.write("project", GOOD)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _question: answer)
    desk.environ["PATH"] = os.environ["PATH"]
    assert run("trust", file) == code
    assert desk.load().trusts[0].how == how


def test_the_printed_hash_is_the_accepted_one(run: Run, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    file = desk.write("project", GOOD)
    assert run("trust", "--hash", file) == 0
    digest = capsys.readouterr().out.strip()
    assert run("check", "--json", "--manifest", file, "--trusted-hash", digest) == 0
    assert json.loads(capsys.readouterr().out)["servers"][0]["state"] == "ready"


def test_several_hashes_are_printed_with_their_files(
    run: Run, desk: Desk, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    files = [tmp_path / "a.yaml", tmp_path / "b.yaml"]
    for name, file in zip(("acme.a", "acme.b"), files, strict=True):
        file.write_text(GOOD.replace("acme.search", name))
    assert run("trust", "--hash", *files) == 0
    lines = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    assert [Path(file) for _digest, file in lines] == files
    assert lines[0][0] != lines[1][0]
    assert run("trust", "--hash", "--json", *files) == 0
    assert [[each["hash"], each["file"]] for each in json.loads(capsys.readouterr().out)] == lines


def test_trust_as_json_says_what_would_run(run: Run, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    remote = "transports: {http: {endpoint: https://x.example/mcp, headers: {A: {fromEnv: T, prefix: P}}}}\n"
    file = desk.write("project", GOOD.partition("transports")[0] + remote)
    assert run("trust", "--json", file) == 8
    (answer,) = json.loads(capsys.readouterr().out)
    assert (answer["file"], answer["trusted"], answer["how"]) == (str(file), False, "never")
    assert (answer["servers"][0]["url"], answer["servers"][0]["headers"]) == ("https://x.example/mcp", ["A: P$T"])


def test_trust_of_what_needs_none_says_why(run: Run, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    file = desk.write("user", GOOD)
    assert run("trust") == 0
    assert f"{file}: yours or the administrator's" in capsys.readouterr().out
    file.unlink()
    assert run("trust") == 8
    assert "no manifest" in capsys.readouterr().out


def test_trust_of_a_broken_manifest_names_the_error(run: Run, desk: Desk, capsys: pytest.CaptureFixture[str]) -> None:
    file = desk.write("project", "x: [\n")
    assert run("trust", "--hash", file) == 8
    assert f"{file}:" in capsys.readouterr().err


def test_a_plan_shows_where_it_connects_and_what_it_sends() -> None:
    plan = LaunchPlan("k", "a.k", "http", url="$URL", headers=("Authorization: Bearer $T",), unasked=("x: auto",))
    lines = list(trust.description(Trust(Path("/m.yaml"), "sha256:0", (plan,), "never"), None))
    assert "    connects   $URL (a variable of your environment)" in lines
    assert "    sends      Authorization: Bearer $T" in lines
    assert "    no asking  x: auto" in lines


def test_a_plan_shows_which_tools_the_lists_leave() -> None:
    unasked = ("policy.defaultApproval: auto", "capability.tools.allow: [get_*]", "capability.tools.deny: [get_all]")
    plan = LaunchPlan("k", "a.k", "http", url="$URL", unasked=unasked)
    lines = list(trust.description(Trust(Path("/m.yaml"), "sha256:0", (plan,), "never"), None))
    assert "    no asking  policy.defaultApproval: auto" in lines
    assert "    only       capability.tools.allow: [get_*]" in lines
    assert "    never      capability.tools.deny: [get_all]" in lines


@pytest.mark.parametrize("bad", ["", "sha256:", "abc", "sha256:" + "G" * 64, "sha256:" + "0" * 63])
def test_a_malformed_hash_is_a_usage_error(run: Run, bad: str) -> None:
    with pytest.raises(SystemExit) as exit_:
        run("check", "--trusted-hash", bad)
    assert exit_.value.code == 2


def test_nothing_in_a_manifest_can_hide_from_the_person() -> None:
    plan = LaunchPlan(
        "k", "a.k", "stdio", ("/bin/sh", "-c", "evil\x1b[2K\r\u202egood\nx"), "/tmp", ("A=\x1b[8mhidden",)
    )
    lines = list(trust.description(Trust(Path("/m.yaml"), "sha256:0", (plan,), "never"), None))
    text = "\n".join(lines)
    assert "\x1b" not in text
    assert "\r" not in text
    assert "\u202e" not in text
    assert r"evil\x1b[2K\r\u202egood\nx" in text
    assert r"A=\x1b[8mhidden" in text


def test_a_changed_manifest_says_which_servers_changed(desk: Desk) -> None:
    from interlock.manifest import trust as store

    other = GOOD.replace("acme.search", "acme.other")
    third = GOOD.replace("acme.search", "acme.third")
    desk.write("project", GOOD + "---\n" + other + "---\n" + third)
    store.remember(desk.home, desk.load().trusts)
    desk.write(
        "project", GOOD + "---\n" + other.replace("-V", "-c") + "---\n" + GOOD.replace("acme.search", "acme.new")
    )
    standing = desk.load().trusts[0]
    text = "\n".join(trust.description(standing, store.read(desk.home).records[str(standing.file)]))
    for line in ("search (as before)", "other (changed)", "new (new)", "third (no longer)"):
        assert line in text


@pytest.mark.parametrize(
    ("flag", "variable", "expected"),
    [("/a/b", "/c", "/a/b"), (None, "/c", "/c"), (None, "", "~/.interlock"), (None, None, "~/.interlock")],
)
def test_home(flag: str | None, variable: str | None, expected: str) -> None:
    args = argparse.Namespace(home=Path(flag) if flag else None)
    environ = {} if variable is None else {"INTERLOCK_HOME": variable}
    assert common.home_from(args, environ) == Path(expected).expanduser()


def test_the_commands_import_nothing_heavy() -> None:
    code = (
        "import sys; import interlock.cli.check, interlock.cli.trust, interlock.cli.schema, interlock.cli.common; "
        "heavy = {'ruamel', 'rich', 'sqlite3', 'jsonschema', 'asyncio', 'msgspec'} & set(sys.modules); "
        "sys.exit(str(heavy) if heavy else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
