"""Answers that were no valid MCP, or so large that hosts cut them."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import count, listed, shown
from interlock.hosts.fact import Fact
from interlock.model.stage import Stage
from interlock.model.trace import RouteTrace

CHECK = Check("answers", Stage.VALIDATE)
INLINE = Fact(20_000, "O", "characters that most hosts pass on whole; beyond, they cut or put a file in its place")
_BAD = frozenset(("bad-answer", "too-large"))
SHARE = 0.1


async def check(examination: Examination) -> list[Finding]:
    by_name: dict[str, list[RouteTrace]] = {}
    for trace in await examination.traces_or_none():
        if trace.method == "tools/call" and trace.name is not None:
            by_name.setdefault(trace.name, []).append(trace)
    return [*_broken(by_name), *_large(by_name)]


def _broken(by_name: dict[str, list[RouteTrace]]) -> list[Finding]:
    findings = []
    for name, traces in by_name.items():
        bad = [trace for trace in traces if trace.slug in _BAD]
        if bad:
            reason = next(
                (mark.reason for mark in reversed(bad[0].marks) if mark.decision != "recorded"), bad[0].slug or ""
            )
            findings.append(
                CHECK.found(
                    "problem", f"{len(bad)} of {count(len(traces), 'answer')} of `{shown(name, 120)}` could not be passed on",
                    f"call {bad[0].id}",
                    shown(reason, 400), f"`interlock trace {bad[0].id}` shows the route; tell those who make the server.",
                    server=bad[0].server or "",
                )
            )  # fmt: skip
    return findings


def _large(by_name: dict[str, list[RouteTrace]]) -> list[Finding]:
    limit = INLINE.value or 0
    large = {
        name: max(trace.bytes_out for trace in over)
        for name, traces in by_name.items()
        if len(over := [trace for trace in traces if trace.bytes_out > limit]) >= max(1, len(traces) * SHARE)
    }
    if not large:
        return []
    names = sorted(large, key=lambda name: -large[name])
    return [
        CHECK.found(
            "warning", f"answers larger than most hosts pass on: {listed((f'`{name}` ({large[name]:,} bytes)' for name in names), 4)}",
            why=f"Of more than about {limit:,} characters hosts cut the middle, or put a file in its place.",
            todo="Ask for less at a time, where the tool has pages or filters.", code="large-results",
        )
    ]  # fmt: skip
