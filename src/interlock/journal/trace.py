"""One call's route, for people and for machines: the seven stages in order, also those that did not run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from interlock.journal.clean import Cleaner
from interlock.journal.printable import printable
from interlock.journal.trace_id import new_trace_id
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace

__all__ = [
    "STATUSES",
    "local_time",
    "new_trace_id",
    "not_run",
    "render",
    "seconds",
    "status_text",
    "to_json",
    "utc_time",
]

_STATUS_TEXTS = {
    "ok": "answered",
    "tool_error": "the tool answered with an error",
    "error": "answered with an error",
    "denied": "refused; the server did not get it",
    "needs_approval": "a person has to allow it first",
    "input_required": "the server asks for input first",
    "cancelled": "cancelled by the client",
    "never_reached": "failed; the server did not act on it",
    "wait": "refused for now",
    "outcome_unknown": "no answer; it may have taken effect",
    "open": "not finished",
}
STATUSES: Final = tuple(status for status in _STATUS_TEXTS if status != "open")
"""How a recorded call can have ended."""
_ADVICE = {
    "never_reached": "the server did not act on the request",
    "wait": "refused for now; it clears by time or by the act that the error names",
    "outcome_unknown": "it left and no answer came; look at the target before trying again",
}


def status_text(status: str) -> str:
    """The status in words."""
    return _STATUS_TEXTS.get(status, status)


def seconds(micros: int) -> str:
    """A duration for people: `412 µs`, `1.24 ms`, `3.10 s`."""
    if micros < 1000:
        return f"{micros} µs"
    if micros < 1_000_000:
        return f"{micros / 1000:.2f} ms"
    return f"{micros / 1_000_000:.2f} s"


def not_run(trace: RouteTrace) -> dict[Stage, str]:
    """The stages without a mark, in order, and why: the route ended before them, or went past them."""
    order = list(Stage)
    ran = {mark.stage for mark in trace.marks}
    if not ran:
        return dict.fromkeys(order, "no record of it")
    # A route that ends early is observed all the same, so OBSERVE is no sign of how far it came.
    last = max((order.index(stage) for stage in ran - {Stage.OBSERVE}), default=len(order))
    missing: dict[Stage, str] = {}
    for place, stage in enumerate(order):
        if stage not in ran:
            missing[stage] = "did not run" if place < last else f"not reached: the route ended at {order[last]}"
    return missing


def render(trace: RouteTrace) -> str:
    """Plain text of several lines, without a newline at the end. Texts of others are redacted and made printable."""
    trace = Cleaner().clean(trace)
    what = trace.name or trace.server or ""
    facts = [
        ("call", f"{trace.id}  {local_time(trace.at_ns)}"),
        ("status", f"{trace.status}: {status_text(trace.status)}"),
    ]
    if trace.verdict:
        facts.append(("verdict", f"{trace.verdict}: {_ADVICE.get(trace.verdict, 'see docs/errors.md')}"))
    if trace.slug:
        facts.append(("error", f"{trace.slug} (docs/errors.md#{trace.slug})"))
    executed = any(mark.stage is Stage.EXECUTE for mark in trace.marks)
    facts += [
        ("caller", f"{trace.principal}, client {trace.client or 'unknown'}, host {trace.host or 'unknown'}"),
        (
            "eras",
            f"client {trace.era_down or 'unknown'}, server {trace.era_up or ('no answer' if executed else 'not asked')}",
        ),
        ("bytes", f"{trace.bytes_in:,} in, {trace.bytes_out:,} out"),
    ]
    lines = [printable(f"{trace.method} {what}".rstrip())]
    lines += [f"  {label:<8}{printable(text)}" for label, text in facts]
    lines += ["", *_table(trace), "", f"  total   {seconds(trace.micros)}{_outside(trace)}"]
    return "\n".join(lines)


def _table(trace: RouteTrace) -> list[str]:
    missing = not_run(trace)
    rows: list[tuple[str, str, str, str]] = [("stage", "decision", "µs", "reason")]
    for stage in Stage:
        marks = [mark for mark in trace.marks if mark.stage == stage]
        rows += [(str(stage), printable(mark.decision), f"{mark.micros:,}", _reason(mark)) for mark in marks]
        if stage in missing:
            rows.append((str(stage), "-", "-", missing[stage]))
    first, second, third = (max(len(row[column]) for row in rows) for column in range(3))
    return [f"  {row[0]:<{first}}  {row[1]:<{second}}  {row[2]:>{third}}  {row[3]}".rstrip() for row in rows]


def _reason(mark: Mark) -> str:
    reason = printable(mark.reason)
    return f"{reason} ({printable(mark.rule)})" if mark.rule else reason


def _outside(trace: RouteTrace) -> str:
    rest = trace.micros - sum(mark.micros for mark in trace.marks)
    return f", of which {seconds(rest)} between stages" if trace.marks and rest > 0 else ""


def local_time(at_ns: int) -> str:
    """A time of day for people, in their time zone, to the millisecond: `2026-02-03 10:11:12.345+01:00`."""
    try:
        return datetime.fromtimestamp(at_ns / 1e9).astimezone().isoformat(" ", "milliseconds")
    except (OverflowError, OSError, ValueError):
        return "unknown time"


def utc_time(at_ns: int) -> str | None:
    """RFC 3339 in UTC to the microsecond, or None for a time out of range."""
    try:
        return datetime.fromtimestamp(at_ns / 1e9, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    except (OverflowError, OSError, ValueError):
        return None


def to_json(trace: RouteTrace) -> dict[str, object]:
    """The trace as plain values, redacted. `stages` has an entry for each mark and for each stage that did not run."""
    trace = Cleaner().clean(trace)
    missing = not_run(trace)
    stages: list[dict[str, object]] = []
    for stage in Stage:
        for mark in trace.marks:
            if mark.stage == stage:
                stages.append(
                    {
                        "stage": str(stage),
                        "ran": True,
                        "decision": mark.decision,
                        "reason": mark.reason,
                        "rule": mark.rule,
                        "micros": mark.micros,
                    }
                )
        if stage in missing:
            stages.append({"stage": str(stage), "ran": False, "reason": missing[stage]})
    return {
        "id": trace.id,
        "at": utc_time(trace.at_ns),
        "at_ns": trace.at_ns,
        "method": trace.method,
        "server": trace.server,
        "name": trace.name,
        "status": trace.status,
        "verdict": trace.verdict,
        "slug": trace.slug,
        "principal": trace.principal,
        "client": trace.client,
        "host": trace.host,
        "era_down": trace.era_down,
        "era_up": trace.era_up,
        "bytes_in": trace.bytes_in,
        "bytes_out": trace.bytes_out,
        "micros": trace.micros,
        "stages": stages,
    }
