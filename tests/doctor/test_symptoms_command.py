"""`interlock doctor` as a command: its subjects, what it prints, its exit codes, and that it changes and starts nothing unasked."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from interlock.cli.main import main

from .ward import tool

if TYPE_CHECKING:
    from .ward import Ward

Run = Callable[..., tuple[int, Any]]


@pytest.fixture
def run(ward: Ward, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`doctor` with these words, in the machine's folder: exit code, and what its JSON says."""
    monkeypatch.chdir(ward.folder)

    def go(*words: str) -> tuple[int, Any]:
        code = main(["doctor", "--json", *words])
        return code, json.loads(capsys.readouterr().out)

    return go


def checks(rows: list[dict[str, Any]], severity: str = "problem") -> list[str]:
    return [row["check"] for row in rows if row["severity"] == severity]


def sick(ward: Ward) -> Path:
    """One server that may not run, one tool that is denied, and one call that was slow."""
    path = ward.manifest(ward.server("notes", more="capability: {tools: {deny: [write]}}\n"), ward.server("off"))
    ward.knows("notes", [tool("search"), tool("write")])
    ward.called("notes/search", execute=9.0)
    ward.write("~/.codex/config.toml", "[mcp_servers.bad]\ncommand = 1\n")
    return path


def test_everything_in_the_order_of_the_stages(ward: Ward, run: Run) -> None:
    sick(ward)
    code, rows = run()
    assert code == 1
    stages = [row["stage"] for row in rows]
    order = ["discover", "describe", "select", "authorize", "execute", "validate", "observe"]
    assert stages == sorted(stages, key=order.index)
    assert {"host-entry", "host-connects"} <= set(checks(rows))
    assert "time-by-stage" in checks(rows, "warning")  # nobody complained of it
    assert set(rows[0]) == {"check", "stage", "severity", "seen", "where", "why", "todo", "server", "host"}


def test_a_healthy_machine(ward: Ward, run: Run) -> None:
    ward.manifest(ward.server("notes"))
    program = ward.write("~/bin/interlock", "#!/bin/sh\n")
    program.chmod(0o755)
    ward.write(
        "~/.codex/config.toml", f'[mcp_servers.il]\ncommand = "{program}"\nargs = ["connect", "--host", "codex"]\n'
    )
    code, rows = run()
    assert (code, checks(rows), checks(rows, "warning")) == (0, [], [])


def test_a_symptom_by_slug_and_in_plain_words(ward: Ward, run: Run) -> None:
    sick(ward)
    by_slug, by_words = run("slow-calls"), run("calls", "are", "slow")
    assert by_slug == by_words
    assert (by_slug[0], checks(by_slug[1])) == (1, ["time-by-stage"])
    assert run("tool-missing", "--server", "notes", "--tool", "write", "--timeout", "10")[0] == 1


def test_narrowed_to_a_host_and_a_server(ward: Ward, run: Run) -> None:
    sick(ward)
    _, rows = run("codex")
    assert {row["host"] for row in rows if row["check"] == "host-entry"} == {"codex"}
    assert "time-by-stage" not in checks(rows, "warning")
    _, rows = run("notes")
    assert "time-by-stage" in checks(rows, "warning")
    assert "bad" not in {row["server"] for row in rows}
    assert run("bad")[0] == 1
    _, rows = run("codex", "--server", "nowhere")
    assert "declared" in checks(rows)
    assert run("server-not-visible", "--host", "cursor", "--server", "notes")[0] == 1


def test_nothing_is_started_or_written(
    ward: Ward, run: Run, tmp_path: Path, snapshot: Callable[[Path], Mapping[str, object]]
) -> None:
    sign = tmp_path / "started"
    ward.manifest(f"integrationId: a.x\ntransports: {{stdio: {{command: [touch, '{sign}']}}}}\n")
    before = snapshot(ward.user)
    for words in ((), ("x",), ("codex",), ("does-not-start",), ("slow-first-call",), ("tool-missing",)):
        run(*words)
    assert not sign.exists()
    assert snapshot(ward.user) == before
    run("does-not-start", "--server", "x")
    assert sign.exists()
    assert snapshot(ward.user) == before
    sign.unlink()
    run("does-not-start", "--start")
    assert sign.exists()


@pytest.mark.parametrize(
    ("words", "guess"),
    [
        (("tool-mising",), "tool-missing"),
        (("ntoes",), "notes"),
        (("coedx",), "codex"),
        (("oauth",), "oauth-loop"),
        (("zzzz",), "`interlock doctor --list`"),
    ],
)
def test_what_is_nothing_is_answered_with_what_may_have_been_meant(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], guess: str
) -> None:
    monkeypatch.chdir(ward.folder)
    ward.manifest(ward.server("notes"))
    assert main(["doctor", *words]) == 2
    assert guess in capsys.readouterr().err


def test_help_and_a_mistyped_flag_show_the_commands_own_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["--mistyped"], ["codex", "--mistyped"]):
        with pytest.raises(SystemExit) as ended:
            main(["doctor", *words])
        assert ended.value.code == (0 if words == ["--help"] else 2)
        out, err = capsys.readouterr()
        assert (out or err).startswith("usage: interlock doctor [symptom | server | host | bridge [URL]]\n")
        assert ("unrecognized arguments: --mistyped" in err) is (words != ["--help"])


@pytest.mark.parametrize("words", [("--timeout", "0"), ("--host", "nope")])
def test_usage(ward: Ward, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.chdir(ward.folder)
    assert main(["doctor", *words]) == 2


def test_the_list(ward: Ward, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    code, rows = run("--list")
    assert (code, len(rows), rows[0]["symptom"]) == (0, 11, "server-not-visible")
    assert main(["doctor", "--list"]) == 0
    assert "one-broke-all" in capsys.readouterr().out


def test_for_people(ward: Ward, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ward.folder)
    sick(ward)
    assert main(["doctor", "slow-calls"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("slow-calls\nEXECUTE\n  problem time-by-stage: 1 of 1 call of `notes`")
    assert "[~/.interlock/interlock.yaml:2]" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    assert "1 problem. Nothing was changed.\n" in out
    following = " ".join(out[out.index("Next: ") :].split())
    assert following.startswith("Next: `notes`, ~/.interlock/interlock.yaml:2: 1 of 1 call of `notes` took 9.00 s")
    assert "Look at what the tool waits for" in following
    assert main(["doctor", "tool-missing", "--tool", "search"]) == 1  # no host starts Interlock
    assert main(["doctor", "--all", "slow-calls"]) == 1
    assert main(["doctor", "slow-calls", "--quiet"]) == 1
