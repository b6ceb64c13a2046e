"""The comparison itself must not be blind: lost checks, new warnings and empty runs are differences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .checks import CheckId, Difference, Outcome, compare, faults_of, read_outcome
from .exclusions import EXCLUSIONS, Exclusion, judge
from .legs import LEGS, SCENARIOS
from .run import Report, judge_run

Record = tuple[str, str, str]


def outcome(*records: Record) -> Outcome:
    made = Outcome()
    for scenario, check, status in records:
        made.add(CheckId(scenario, check), status, f"message of {check}")
    return made


@pytest.mark.parametrize(
    ("direct", "through", "expected"),
    [
        ([("s", "a", "SUCCESS")], [("s", "a", "SUCCESS")], []),
        ([("s", "a", "SUCCESS")], [("s", "a", "FAILURE")], [("s", "a", "lost", 1), ("s", "a", "FAILURE", 1)]),
        ([("s", "a", "SUCCESS")], [("s", "b", "INFO")], [("s", "a", "lost", 1)]),
        ([("s", "a", "SUCCESS")], [], [("s", "a", "lost", 1)]),
        ([("s", "a", "SUCCESS")], [("s", "a", "SUCCESS"), ("s", "b", "WARNING")], [("s", "b", "WARNING", 1)]),
        ([("s", "a", "SUCCESS")], [("s", "a", "SKIPPED")], [("s", "a", "lost", 1), ("s", "a", "SKIPPED", 1)]),
        # The same check several times: three passed, one of them no longer does.
        ([("s", "a", "SUCCESS")] * 3, [("s", "a", "SUCCESS")] * 2, [("s", "a", "lost", 1)]),
        # The same check in another scenario is another check.
        ([("s", "a", "SUCCESS")], [("t", "a", "SUCCESS")], [("s", "a", "lost", 1)]),
        # What already failed without Interlock may fail with it, and may pass.
        ([("s", "a", "FAILURE")], [("s", "a", "FAILURE")], []),
        ([("s", "a", "FAILURE")], [("s", "a", "SUCCESS")], []),
        ([("s", "a", "INFO")] * 5, [("s", "a", "INFO")], []),
    ],
)
def test_compare(direct: list[Record], through: list[Record], expected: list[tuple[str, str, str, int]]) -> None:
    differences = compare(outcome(*direct), outcome(*through))
    assert [(one.check.scenario, one.check.check, one.kind, one.count) for one in differences] == expected


def test_a_difference_carries_the_suites_message() -> None:
    differences = compare(outcome(("s", "a", "SUCCESS")), outcome(("s", "a", "FAILURE")))
    assert [one.message for one in differences] == ["", "message of a"]


def write_checks(folder: Path, name: str, *records: tuple[str, str]) -> None:
    target = folder / name
    target.mkdir()
    checks = [{"id": check, "status": status, "name": "n", "errorMessage": "why"} for check, status in records]
    (target / "checks.json").write_text(json.dumps(checks), encoding="utf-8")


def test_results_are_read_from_the_suites_files(tmp_path: Path) -> None:
    write_checks(tmp_path, "server-tools-list-2026-11-30T11-33-20-354Z", ("tools-list", "SUCCESS"), ("x", "FAILURE"))
    write_checks(tmp_path, "server-server-initialize-2026-11-30T11-33-20-999Z", ("log", "INFO"))
    read = read_outcome(tmp_path, "server-")
    assert read.scenarios == {"tools-list", "server-initialize"}
    assert dict(read.counts) == {
        (CheckId("tools-list", "tools-list"), "SUCCESS"): 1,
        (CheckId("tools-list", "x"), "FAILURE"): 1,
    }
    assert read.messages[CheckId("tools-list", "x"), "FAILURE"] == "why"


def test_a_scenario_that_passes_without_checks_is_a_loss(tmp_path: Path) -> None:
    """The suite calls a scenario passed that reported nothing: the false green that its exit code cannot show."""
    (tmp_path / "direct").mkdir()
    (tmp_path / "through").mkdir()
    write_checks(tmp_path / "direct", "server-server-sse-polling-2026-11-30T11-33-20-354Z", ("retry", "SUCCESS"))
    write_checks(tmp_path / "through", "server-server-sse-polling-2026-11-30T11-34-20-354Z", ("event", "INFO"))
    report = Report("sdk-http@2025-11-25")
    judge_run(report, read_outcome(tmp_path / "direct", "server-"), read_outcome(tmp_path / "through", "server-"))
    assert not report.ok
    assert report.problems == ["server-sse-polling: retry lost x1 "]
    assert report.scenarios == (0, 1)
    assert report.checks == (0, 1)


def test_a_direct_run_with_faults_is_no_baseline() -> None:
    direct = outcome(("s", "a", "SUCCESS"), ("t", "b", "WARNING"))
    assert faults_of(direct, ["s", "t", "u"]) == ["u did not run", "t: b WARNING message of b"]


def test_exclusions_cover_what_they_name_and_nothing_else() -> None:
    exclusion = Exclusion("legacy-*@2026-07-28", "s", "a-*", "because")
    lost = Difference(CheckId("s", "a-1"), "lost", 1, "")
    other = Difference(CheckId("s", "b"), "lost", 1, "")
    verdict = judge("legacy-http@2026-07-28", [lost, other], [exclusion])
    assert verdict.excused == [(lost, exclusion)]
    assert verdict.unexplained == [other]
    assert verdict.stale == []
    assert judge("modern-http@2026-07-28", [lost], [exclusion]).unexplained == [lost]


def test_an_exclusion_that_is_not_needed_is_reported() -> None:
    exclusion = Exclusion("legacy-*", "s", "a", "because")
    assert judge("legacy-http@2026-07-28", [], [exclusion]).stale == [exclusion]
    assert judge("modern-http@2026-07-28", [], [exclusion]).stale == []


def test_every_scenario_of_both_revisions_is_expected() -> None:
    counts = {revision: len(set(names)) for revision, names in SCENARIOS.items()}
    assert counts == {"2025-06-18": 27, "2025-11-25": 33, "2026-07-28": 40}


def test_every_exclusion_names_a_run_that_exists_and_says_why() -> None:
    names = [leg.name for leg in LEGS]
    for exclusion in EXCLUSIONS:
        assert any(exclusion.covers(name, CheckId(exclusion.scenario, exclusion.check)) for name in names), exclusion
        assert len(exclusion.reason) > 20, exclusion
    assert len(names) == len(set(names))
