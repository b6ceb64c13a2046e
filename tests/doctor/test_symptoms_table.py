"""The table of symptoms, plain words for them, the order of findings, and what no finding may say first."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import interlock.doctor
from interlock.doctor import symptoms
from interlock.doctor.examining import next_step, ordered
from interlock.doctor.finding import Check, Finding, Severity
from interlock.hosts import registry
from interlock.model.stage import Stage

SLUGS = (
    "server-not-visible", "tool-missing", "wrong-tool", "no-approval", "oauth-loop", "does-not-start", "windows-not-wsl",
    "slow-first-call", "slow-calls", "old-plugin", "one-broke-all",
)  # fmt: skip
ORDER = {stage: number for number, stage in enumerate(Stage)}


def test_the_symptoms() -> None:
    assert tuple(symptoms.BY_SLUG) == SLUGS


@pytest.mark.parametrize("slug", SLUGS)
def test_no_symptom_is_named_like_a_host(slug: str) -> None:
    assert registry.find(slug) is None


@pytest.mark.parametrize("slug", [*SLUGS, "everything", "server", "host"])
def test_checks_are_in_the_order_of_the_stages(slug: str) -> None:
    steps = {"everything": symptoms.EVERYTHING, "server": symptoms.OF_SERVER, "host": symptoms.OF_HOST}.get(slug)
    stages = [ORDER[stage] for _, stage, _ in steps or symptoms.BY_SLUG[slug].steps]
    assert stages == sorted(stages)


WORDS = {
    "server not visible": "server-not-visible",
    "my server is not visible in codex": "server-not-visible",
    "Server_Not_Visible": "server-not-visible",
    "tool missing": "tool-missing",
    "the tool is missing": "tool-missing",
    "wrong tool chosen": "wrong-tool",
    "no approval": "no-approval",
    "oauth loops": "oauth-loop",
    "server doesn't start": "does-not-start",
    "does not start": "does-not-start",
    "works on windows, not in wsl": "windows-not-wsl",
    "slow first call": "slow-first-call",
    "calls are slow": "slow-calls",
    "slow calls": "slow-calls",
    "old plugin": "old-plugin",
    "plugin updated but old behaviour": "old-plugin",
    "one server broke everything": "one-broke-all",
    "banana": None,
    "server": None,
    "": None,
}


@pytest.mark.parametrize(("words", "slug"), WORDS.items())
def test_a_few_plain_words(words: str, slug: str | None) -> None:
    found = symptoms.named(words)
    assert (found.slug if found is not None else None) == slug


@pytest.mark.parametrize(
    ("typed", "slug"),
    [("tool-mising", "tool-missing"), ("oauth", "oauth-loop"), ("slow", "slow-calls"), ("plugin", "old-plugin")],
)
def test_near_matches(typed: str, slug: str) -> None:
    assert slug in symptoms.meant(typed)


def finding(stage: Stage, severity: Severity, todo: str = "x") -> Finding:
    return Check("c", stage).found(severity, f"{stage} {severity}", todo=todo)


def test_findings_come_by_stage_and_the_worst_first_inside_of_one() -> None:
    mixed = [
        finding(Stage.OBSERVE, "problem"),
        finding(Stage.DISCOVER, "note"),
        finding(Stage.EXECUTE, "warning"),
        finding(Stage.DISCOVER, "problem"),
        finding(Stage.EXECUTE, "ok"),
        finding(Stage.EXECUTE, "problem"),
        finding(Stage.DISCOVER, "problem"),
    ]
    assert [each.seen for each in ordered(mixed)] == [
        "discover problem", "discover note", "execute problem", "execute warning", "execute ok", "observe problem",
    ]  # fmt: skip


def test_the_next_step_is_that_of_the_earliest_problem() -> None:
    late, early = finding(Stage.EXECUTE, "problem", "late"), finding(Stage.DISCOVER, "warning", "early")
    silent = finding(Stage.DISCOVER, "problem", "")
    assert next_step([early, late, silent]) is late
    assert next_step([early]) is early
    assert next_step([finding(Stage.DISCOVER, "note")]) is None


DOCTOR = Path(interlock.doctor.__file__).parent


def texts() -> Iterator[tuple[str, str]]:
    """Every text that a check can put into a finding: file, and each string without its variable parts."""
    for path in sorted(DOCTOR.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
                yield str(path.relative_to(DOCTOR)), node.value


_RAISE = re.compile(
    r"\b(?:raise|increase|longer|higher|bump|extend|larger)\b[^.]{0,40}\b(?:time-?out|limit|deadline)", re.IGNORECASE
)
_SETTING = re.compile(r"timeoutSeconds|TimeoutSeconds|startup_timeout|tool_timeout|--timeout")


def test_no_finding_begins_with_the_timeout() -> None:
    found = dict.fromkeys(texts())
    assert len(found) > 500
    assert [each for each in found if _RAISE.search(each[1])] == []
    assert {file for file, text in found if _SETTING.search(text)} == {
        "execute/timeouts.py",
        "shown.py",  # which takes such a sentence out of an error's words
    }


def test_every_check_has_a_file_of_its_own_and_a_stable_name() -> None:
    names: dict[str, str] = {}
    for path in sorted(DOCTOR.glob("*/*.py")):
        match = re.search(
            r'^CHECK = Check\("([a-z-]+)", Stage\.([A-Z]+)\)$', path.read_text(encoding="utf-8"), re.MULTILINE
        )
        if match is not None:
            assert match[1] not in names
            names[match[1]] = path.name
            assert match[2].lower() == path.parent.name
    assert len(names) >= 25
