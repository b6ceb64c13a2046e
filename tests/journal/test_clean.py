"""What is stored of a trace holds no secret, and a trace without one is not even copied."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from interlock.journal import clean
from interlock.journal.clean import TEXT_LIMIT, Cleaner
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace

MakeTrace = Callable[..., RouteTrace]
GITHUB = "ghp_" + "a1b2c3d4e5f6g7h8i9j0"


def test_a_clean_trace_is_given_back_itself(make_trace: MakeTrace) -> None:
    cleaner = Cleaner()
    trace = make_trace()
    assert cleaner.clean(trace) is trace
    assert cleaner.clean(trace) is trace


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("client", f"tester token={GITHUB}", "tester token=[redacted]"),
        ("name", f"git/{GITHUB}", "git/[redacted]"),
        ("name", "git/secrets:list", "git/secrets:list"),
        ("method", f"x/{GITHUB}", "x/[redacted]"),
        ("slug", "password=hunter2", "password=[redacted]"),
        ("principal", "credential:claude-code", "credential:claude-code"),
        ("name", "n" * 5000, "n" * (TEXT_LIMIT - 6) + " [cut]"),
        ("client", "c" * 5000, "c" * (TEXT_LIMIT - 6) + " [cut]"),
    ],
)
def test_texts_of_others(make_trace: MakeTrace, field: str, text: str, expected: str) -> None:
    trace = make_trace(**{field: text})
    cleaner = Cleaner()
    for _ in range(2):
        assert cleaner.clean(trace) == replace(trace, **{field: expected})
    assert getattr(trace, field) == text, "the pipeline's own trace stays as it is"


def test_reasons(make_trace: MakeTrace) -> None:
    marks = [
        Mark(Stage.EXECUTE, "error", f"server said: Authorization: Bearer {GITHUB}", None, 1),
        Mark(Stage.OBSERVE, "ok", "recorded", None, 1),
    ]
    cleaned = Cleaner().clean(make_trace(marks=marks))
    assert [mark.reason for mark in cleaned.marks] == ["server said: Authorization: [redacted]", "recorded"]
    assert cleaned.marks[1] is marks[1]


def test_what_passes_as_a_name_does_not_pass_as_a_text(make_trace: MakeTrace) -> None:
    cleaner = Cleaner()
    assert cleaner.clean(make_trace(name="password:hunter2")).name == "password:hunter2"
    mark = Mark(Stage.EXECUTE, "error", "password:hunter2", None, 1)
    assert cleaner.clean(make_trace(marks=[mark])).marks[0].reason == "password:[redacted]"


def test_a_flood_of_new_texts_is_not_all_remembered(make_trace: MakeTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clean, "_REMEMBERED", 10)
    cleaner = Cleaner()
    for number in range(500):
        trace = make_trace(name=f"git/n{number}", client=f"c{number}")
        assert cleaner.clean(trace) is trace
        assert len(cleaner._known_texts) < 20
        assert len(cleaner._known_names) < 20
