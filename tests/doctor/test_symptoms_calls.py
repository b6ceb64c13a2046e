"""`slow-calls`: the stage in which the time goes, from the route traces; a limit is never the first thing to touch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interlock.model.stage import Stage

from .ward import causes, wrong

if TYPE_CHECKING:
    from .ward import Ward


async def test_fast_calls_are_nothing(ward: Ward) -> None:
    ward.manifest(ward.server("x"))
    for _ in range(20):
        ward.called("x/read", discover=0.0, describe=0.001, authorize=0.001, execute=0.2, validate=0.001)
    assert wrong(await ward.complain("slow-calls")) == []


async def test_without_records_that_is_said(ward: Ward) -> None:
    (finding,) = [each for each in await ward.complain("slow-calls") if each.check == "audit"]
    assert (finding.severity, finding.seen[:19]) == ("unknown", "no call is recorded")


async def test_without_records_nothing_is_claimed(ward: Ward) -> None:
    assert wrong(await ward.complain("slow-calls")) == []


SLOW = {
    "the server itself": ({"execute": 6.0}, Stage.EXECUTE, "It is the server's own work, most of it in `read`"),
    "a start before each": ({"describe": 7.0, "execute": 0.5}, Stage.DESCRIBE, "waited for the server to be started"),
    "a person": ({"authorize": 20.0, "execute": 0.1}, Stage.AUTHORIZE, "waited for a person"),
    "huge answers": ({"execute": 1.0, "validate": 3.0}, Stage.VALIDATE, "so large"),
}


@pytest.mark.parametrize(("seconds", "stage", "why"), SLOW.values(), ids=SLOW)
async def test_the_stage_is_named_and_only_that(ward: Ward, seconds: dict[str, float], stage: Stage, why: str) -> None:
    ward.manifest(ward.server("x"))
    for _ in range(5):
        ward.called("x/read", discover=0.0, **seconds)
    (finding,) = wrong(await ward.complain("slow-calls"))
    assert (finding.check, finding.stage, finding.severity) == ("time-by-stage", stage, "problem")
    assert f"the time goes in {stage.upper()}" in finding.seen
    assert why in finding.why
    assert "imeout" not in finding.todo
    assert finding.where.endswith("interlock.yaml:2")


async def test_calls_that_wait_for_each_other(ward: Ward) -> None:
    ward.manifest(ward.server("x", more="processes: shared\n"))
    for _ in range(4):
        ward.called("x/read", after=600, execute=2.0)
    for _ in range(3):
        ward.called("x/read", after=600, execute=9.0)
        ward.called("x/read", after=1, execute=8.0)
    (finding,) = wrong(await ward.complain("slow-calls"))
    assert "they queue in the server" in finding.why
    assert "processes: per-client" in finding.todo


async def test_a_slow_call_in_a_hundred_is_no_cause(ward: Ward) -> None:
    ward.manifest(ward.server("x"))
    for _ in range(99):
        ward.called("x/read", execute=0.1)
    ward.called("x/read", execute=5.0)
    assert wrong(await ward.complain("slow-calls")) == []


async def test_calls_that_ended_at_the_deadline(ward: Ward) -> None:
    ward.manifest(ward.server("x"))
    ward.called("x/build", "outcome_unknown", slug="timeout", execute=300.0)
    (finding,) = wrong(await ward.complain("slow-calls"))
    assert (finding.check, finding.stage) == ("ended-at-deadline", Stage.EXECUTE)
    assert "all of that time is in EXECUTE" in finding.why
    assert finding.todo.startswith("Look first at what the tool waits for")
    assert "timeoutSeconds" not in finding.todo


async def test_only_honest_time_may_be_given_more_and_comes_last(ward: Ward) -> None:
    ward.manifest(ward.server("x"))
    ward.called("x/build", execute=290.0)
    for _ in range(30):
        ward.called("x/build", execute=0.5)
    ward.called("x/build", "outcome_unknown", slug="timeout", execute=300.0)
    (finding,) = wrong(await ward.complain("slow-calls"))
    assert finding.todo.startswith("Look first at what the tool waits for")
    assert finding.todo.index("timeoutSeconds") > len(finding.todo) / 2
    assert "`tools: {build: {timeoutSeconds: N}}`" in finding.todo


async def test_large_and_broken_answers(ward: Ward) -> None:
    ward.manifest(ward.server("x"))
    for _ in range(3):
        ward.called("x/dump", bytes_out=90_000, execute=0.3)
    (finding,) = wrong(await ward.complain("slow-calls"))
    assert (finding.check, finding.stage, finding.severity) == ("large-results", Stage.VALIDATE, "warning")
    assert "`x/dump` (90,000 bytes)" in finding.seen
    ward.called("x/odd", "never_reached", slug="bad-answer", validate=0.1, reason="x: the result is no object")
    assert ("answers", "problem") in causes(await ward.complain("slow-calls"))


async def test_only_the_server_that_was_named(ward: Ward) -> None:
    ward.manifest(ward.server("x"), ward.server("y"))
    for name in ("x/a", "y/a"):
        ward.called(name, execute=8.0)
    findings = wrong(await ward.complain("slow-calls", server="y"))
    assert [each.server for each in findings] == ["y"]


async def test_records_that_cannot_be_read(ward: Ward) -> None:
    (ward.home / "interlock.db").write_bytes(b"SQLite format 3\0" + b"x" * 4096)
    assert causes(await ward.complain("slow-calls")) == [("audit", "problem")]


async def test_calls_that_meet_and_are_no_slower_do_not_queue(ward: Ward) -> None:
    ward.manifest(ward.server("x"))
    for _ in range(4):
        ward.called("x/read", after=600, execute=5.0)
    for _ in range(3):
        ward.called("x/read", after=600, execute=5.0)
        ward.called("x/read", after=1, execute=5.0)
    (finding,) = wrong(await ward.complain("slow-calls"))
    assert "It is the server's own work" in finding.why


async def test_short_calls_are_no_reason_for_a_longer_limit(ward: Ward) -> None:
    ward.manifest(ward.server("x"))
    for _ in range(30):
        ward.called("x/build", execute=1.5)
    ward.called("x/build", "outcome_unknown", slug="timeout", execute=300.0)
    (finding,) = wrong(await ward.complain("slow-calls"))
    assert finding.check == "ended-at-deadline"
    assert "timeoutSeconds" not in finding.todo


async def test_one_large_answer_in_many_is_nothing(ward: Ward) -> None:
    ward.manifest(ward.server("x"))
    for _ in range(20):
        ward.called("x/dump", execute=0.1)
    ward.called("x/dump", bytes_out=90_000, execute=0.1)
    assert wrong(await ward.complain("slow-calls")) == []


async def test_what_was_slow_long_ago_does_not_count(ward: Ward) -> None:
    ward.manifest(ward.server("x"))
    for _ in range(5):
        ward.called("x/read", execute=9.0)
    ward.called("x/read", after=8 * 86_400, execute=0.1)
    assert wrong(await ward.complain("slow-calls")) == []
