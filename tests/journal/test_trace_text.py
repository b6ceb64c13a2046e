"""What a person and a machine see of one route."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pytest

from interlock.journal.trace import not_run, render, seconds, to_json
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace

MakeTrace = Callable[..., RouteTrace]
pytestmark = pytest.mark.skipif(not hasattr(time, "tzset"), reason="the time zone cannot be set here")


@pytest.fixture(autouse=True)
def _time_zone() -> Iterator[None]:
    """A zone of its own, so that local times are the same everywhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "XYZ-2")
        time.tzset()
        yield
    time.tzset()


def test_an_allowed_call(make_trace: MakeTrace) -> None:
    marks = [Mark(stage, "ok", f"about {stage}", None, 10 * n) for n, stage in enumerate(Stage, 1)]
    trace = make_trace(id="0b7k2m9q0000abc", marks=marks, micros=1500)
    assert render(trace).splitlines() == [
        "tools/call git/log",
        "  call    0b7k2m9q0000abc  2025-01-01 02:00:00.000+02:00",
        "  status  ok: answered",
        "  caller  local:1000, client tester/1.0, host claude-code",
        "  eras    client 2026-07-28, server 2025-11-25",
        "  bytes   120 in, 4,096 out",
        "",
        "  stage      decision  µs  reason",
        "  discover   ok        10  about discover",
        "  describe   ok        20  about describe",
        "  select     ok        30  about select",
        "  authorize  ok        40  about authorize",
        "  execute    ok        50  about execute",
        "  validate   ok        60  about validate",
        "  observe    ok        70  about observe",
        "",
        "  total   1.50 ms, of which 1.22 ms between stages",
    ]


def test_a_denied_call_says_what_did_not_run(make_trace: MakeTrace) -> None:
    marks = [
        Mark(Stage.DISCOVER, "found", "declared", None, 3),
        Mark(Stage.AUTHORIZE, "allow", "server enabled", None, 1),
        Mark(Stage.AUTHORIZE, "deny", "deny rule write_*", "interlock.yaml:12", 2),
        Mark(Stage.OBSERVE, "recorded", "", None, 0),
    ]
    text = render(make_trace(status="denied", verdict="never_reached", slug="denied", era_up="", marks=marks, micros=6))
    lines = text.splitlines()
    assert lines[2:5] == [
        "  status  denied: refused; the server did not get it",
        "  verdict never_reached: the server did not act on the request",
        "  error   denied (docs/errors.md#denied)",
    ]
    assert "  eras    client 2026-07-28, server not asked" in lines
    assert lines[lines.index("") + 1 :] == [
        "  stage      decision  µs  reason",
        "  discover   found      3  declared",
        "  describe   -          -  did not run",
        "  select     -          -  did not run",
        "  authorize  allow      1  server enabled",
        "  authorize  deny       2  deny rule write_* (interlock.yaml:12)",
        "  execute    -          -  not reached: the route ended at authorize",
        "  validate   -          -  not reached: the route ended at authorize",
        "  observe    recorded   0",
        "",
        "  total   6 µs",
    ]


def test_a_server_that_was_asked_and_did_not_answer(make_trace: MakeTrace) -> None:
    marks = [Mark(Stage.EXECUTE, "outcome_unknown", "the process ended", None, 3)]
    lines = render(make_trace(status="outcome_unknown", era_up="", marks=marks)).splitlines()
    assert "  eras    client 2026-07-28, server no answer" in lines


def test_a_trace_without_marks_claims_nothing(make_trace: MakeTrace) -> None:
    trace = make_trace(marks=[], server=None, name=None, method="ping", host=None, client="", status="open", bytes_in=0)
    lines = render(trace).splitlines()
    assert lines[0] == "ping"
    assert "  status  open: not finished" in lines
    assert "  caller  local:1000, client unknown, host unknown" in lines
    assert lines.count("  execute    -          -  no record of it") == 1
    assert lines[-1] == "  total   1.23 ms"


def test_text_of_others_cannot_move_the_cursor_or_pose_as_a_line(make_trace: MakeTrace) -> None:
    hostile = "git/\x1b[2Ja\r\n  total 0\u202eb\u200bc\u2028d\x9b"
    mark = Mark(Stage.EXECUTE, "o\x07k", hostile, None, 1)
    text = render(make_trace(name=hostile, client=hostile, status=hostile, slug="\x00", marks=[mark]))
    assert all(line.isprintable() for line in text.split("\n"))
    assert text.splitlines()[0] == r"tools/call git/\x1b[2Ja\r\n  total 0\u202eb\u200bc\u2028d\x9b"
    assert r"o\x07k" in text


def test_secrets_are_masked_where_a_route_is_shown(make_trace: MakeTrace) -> None:
    mark = Mark(Stage.EXECUTE, "error", "answered: token=hunter2hunter2", None, 1)
    trace = make_trace(marks=[mark])
    assert "answered: token=[redacted]" in render(trace)
    assert "hunter2" not in render(trace) + str(to_json(trace))


def test_json(make_trace: MakeTrace) -> None:
    trace = make_trace(id="x", at_ns=1_735_689_600_123_456_789)
    value = to_json(trace)
    stages = value.pop("stages")
    assert value == {
        "id": "x",
        "at": "2025-01-01T00:00:00.123457Z",
        "at_ns": 1_735_689_600_123_456_789,
        "method": "tools/call",
        "server": "git",
        "name": "git/log",
        "status": "ok",
        "verdict": None,
        "slug": None,
        "principal": "local:1000",
        "client": "tester/1.0",
        "host": "claude-code",
        "era_down": "2026-07-28",
        "era_up": "2025-11-25",
        "bytes_in": 120,
        "bytes_out": 4096,
        "micros": 1234,
    }
    assert isinstance(stages, list)
    assert [(stage["stage"], stage["ran"]) for stage in stages] == [
        ("discover", True),
        ("describe", False),
        ("select", False),
        ("authorize", True),
        ("execute", True),
        ("validate", False),
        ("observe", False),
    ]
    assert stages[3] == {
        "stage": "authorize",
        "ran": True,
        "decision": "allow",
        "reason": "allowed by glob",
        "rule": "/etc/interlock/interlock.yaml:7",
        "micros": 5,
    }
    assert stages[5] == {"stage": "validate", "ran": False, "reason": "not reached: the route ended at execute"}


def test_a_route_that_is_only_observed(make_trace: MakeTrace) -> None:
    missing = not_run(make_trace(marks=[Mark(Stage.OBSERVE, "recorded", "", None, 0)]))
    assert missing == dict.fromkeys(list(Stage)[:-1], "did not run")


def test_marks_out_of_order_are_shown_in_order(make_trace: MakeTrace) -> None:
    marks = [Mark(Stage.EXECUTE, "ok", "", None, 1), Mark(Stage.DISCOVER, "ok", "", None, 1)]
    assert list(not_run(make_trace(marks=marks))) == [
        Stage.DESCRIBE,
        Stage.SELECT,
        Stage.AUTHORIZE,
        Stage.VALIDATE,
        Stage.OBSERVE,
    ]


@pytest.mark.parametrize("at_ns", [0, -1, 2**63 - 1, 10**30])
def test_times_out_of_range_are_no_error(make_trace: MakeTrace, at_ns: int) -> None:
    trace = make_trace(at_ns=at_ns)
    assert render(trace)
    assert to_json(trace)["at_ns"] == at_ns


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "0 µs"),
        (999, "999 µs"),
        (1000, "1.00 ms"),
        (999_994, "999.99 ms"),
        (1_000_000, "1.00 s"),
        (61_500_000, "61.50 s"),
    ],
)
def test_durations(micros: int, text: str) -> None:
    assert seconds(micros) == text
