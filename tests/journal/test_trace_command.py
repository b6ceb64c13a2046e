"""`interlock trace` as a person or a script meets it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from interlock.cli import common, trace
from interlock.journal.record import to_row
from interlock.journal.trace import STATUSES
from interlock.model.trace import RouteTrace
from interlock.store.interface import Gap
from interlock.store.sqlite import SqliteStore

MakeTrace = Callable[..., RouteTrace]
Result = tuple[int, str, str]
Run = Callable[..., Result]
HOUR_NS = 3600 * 10**9
T0 = 1_735_689_600_000_000_000


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> Result:
        parser = argparse.ArgumentParser()
        subparsers = parser.add_subparsers()
        trace.add(subparsers)
        for each in subparsers.choices.values():
            common.add_common(each)
        args = parser.parse_args(["trace", *words, "--home", str(home)])
        code = args.run(args)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def recorded(home: Path, make_trace: MakeTrace) -> Sequence[RouteTrace]:
    traces = [
        make_trace(id="0000000000aaaaa", at_ns=T0),
        make_trace(id="0000000100aaaaa", at_ns=T0 + HOUR_NS, status="denied", name="git/push", micros=7),
        make_trace(
            id="0000000200aaaaa", at_ns=T0 + 2 * HOUR_NS, server="time", name="time/now", host=None, micros=2_500_000
        ),
        make_trace(id="0000000300aaaaa", at_ns=T0 + 3 * HOUR_NS, server=None, name=None, method="ping"),
    ]
    store = SqliteStore(home)
    store.append_calls([to_row(each) for each in traces])
    store.close()
    return traces


def shown_ids(out: str) -> list[str]:
    return [word for word in out.split() if len(word) == 15 and word.endswith("aaaaa")]


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], ["0000000300aaaaa", "0000000200aaaaa", "0000000100aaaaa", "0000000000aaaaa"]),
        (["--last", "2"], ["0000000300aaaaa", "0000000200aaaaa"]),
        (["--server", "git"], ["0000000100aaaaa", "0000000000aaaaa"]),
        (["--server", "git", "--last", "1"], ["0000000100aaaaa"]),
        (["--status", "denied"], ["0000000100aaaaa"]),
        (["--server", "time", "--status", "denied"], []),
    ],
)
def test_recent_calls(run: Run, words: list[str], expected: list[str]) -> None:
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert shown_ids(out) == expected
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, "")
    assert [each["id"] for each in json.loads(out)] == expected


@pytest.mark.usefixtures("recorded")
def test_the_table_says_what_happened(run: Run) -> None:
    _, out, _ = run()
    lines = {line.split()[2]: line for line in out.splitlines() if "aaaaa" in line}
    assert "denied" in lines["0000000100aaaaa"]
    assert "git/push (tools/call)" in lines["0000000100aaaaa"]
    assert lines["0000000100aaaaa"].rstrip().endswith("7 µs")
    assert "tester/1.0" in lines["0000000200aaaaa"]
    assert lines["0000000200aaaaa"].rstrip().endswith("2.50 s")
    assert "ping" in lines["0000000300aaaaa"]


def test_one_call(run: Run, recorded: Sequence[RouteTrace]) -> None:
    code, out, err = run("0000000100aaaaa")
    assert (code, err) == (0, "")
    assert out.startswith("tools/call git/push\n  call    0000000100aaaaa  ")
    assert "  authorize  allow" in out
    assert run("00000001") == (code, out, err)
    assert run("00000001".upper()) == (code, out, err)
    code, out, err = run(recorded[1].id, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["name"] == "git/push"


@pytest.mark.usefixtures("recorded")
@pytest.mark.parametrize(
    ("id", "message"),
    [
        ("zzz", "no call whose id starts with 'zzz' is recorded in"),
        ("", "no call whose id starts with '' is recorded in"),
        ("0000000100aaaaab", "no call whose id starts with"),
        ("\x1b[2J", r"starts with '\x1b[2j'"),
        ("0000000", "'0000000' is the beginning of several ids: 0000000000aaaaa, 0000000100aaaaa, "),
    ],
)
def test_an_id_that_names_no_call(run: Run, id: str, message: str) -> None:
    code, out, err = run(id)
    assert (code, out) == (2, "")
    assert message in err


@pytest.mark.parametrize("words", [["abc", "--last", "3"], ["abc", "--server", "git"], ["abc", "--status", "ok"]])
def test_an_id_and_a_filter_are_one_too_many(run: Run, words: list[str]) -> None:
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert "not both" in err


@pytest.mark.parametrize("number", ["0", "-1", "x", "1.5", "", "٣", "9999999"])
def test_a_number_that_is_none_is_a_usage_error(run: Run, number: str) -> None:
    with pytest.raises(SystemExit) as left:
        run("--last", number)
    assert left.value.code == 2


def test_a_status_that_is_none_is_a_usage_error(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("--status", "okay")
    assert ended.value.code == 2
    assert "write one of ok, tool_error, error, denied, needs_approval" in capsys.readouterr().err


def test_every_status_is_in_the_help_and_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/cli.md").read_text(encoding="utf-8")
    parser = argparse.ArgumentParser()
    trace.add(parser.add_subparsers())
    for status in STATUSES:
        assert f"`{status}`" in page


def test_before_any_call(run: Run, home: Path) -> None:
    assert run() == (0, f"No calls are recorded in {home / 'interlock.db'}.\n", "")
    assert run("--json") == (0, "[]\n", "")
    assert run("abc")[0] == 2
    assert not home.exists()


@pytest.mark.usefixtures("recorded")
def test_gaps_are_told(run: Run, home: Path) -> None:
    store = SqliteStore(home)
    store.append_gap(Gap(0, T0 + 1, None, "the file was damaged"))
    store.append_gap(Gap(T0, T0 + HOUR_NS, 37, "the disk is full\x1b"))
    store.close()
    code, out, err = run("--json")
    assert code == 0
    assert len(json.loads(out)) == 4
    first, second = err.splitlines()
    assert first.startswith("Missing: an unknown number of calls before 20")
    assert first.endswith(": the file was damaged.")
    assert second.startswith("Missing: 37 calls between 20")
    assert second.endswith(": the disk is full\\x1b.")
    assert run("--last", "1")[2] == "", "only gaps in the time that is shown"


def test_a_damaged_file_is_named_and_left_alone(run: Run, home: Path) -> None:
    home.mkdir()
    path = home / "interlock.db"
    path.write_bytes(b"junk" * 2000)
    code, out, err = run()
    assert (code, out) == (8, "")
    assert f"{path}: the file is damaged" in err
    assert path.read_bytes() == b"junk" * 2000
