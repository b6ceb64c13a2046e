"""Calls that ended because a person had to be asked and could not be: what the audit records say of it."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import count, shown
from interlock.doctor.times import moment
from interlock.model.stage import Stage
from interlock.model.trace import RouteTrace

CHECK = Check("asked", Stage.OBSERVE)


async def check(examination: Examination) -> list[Finding]:
    unasked: dict[tuple[str, str], list[RouteTrace]] = {}
    for trace in await examination.traces_or_none():
        if trace.status == "needs_approval" and trace.server is not None:
            unasked.setdefault((trace.server, trace.host or trace.client), []).append(trace)
    findings = []
    for (server, who), traces in unasked.items():
        last = traces[0]
        rule = next((mark.rule for mark in last.marks if mark.stage is Stage.AUTHORIZE and mark.rule), None)
        name = last.name or server
        findings.append(
            CHECK.found(
                "problem", f"{count(len(traces), 'call')} of `{server}` by {shown(who) or 'a host'} had to be approved and "
                "nobody could be asked, "
                f"last {moment(last.at_ns / 1e9)}",
                rule or f"call {last.id}",
                "The manifest asks, and the host shows no question: it has no elicitation, or answered with an error.",
                f"`interlock call {shown(name, 120)}` asks at the terminal. For a tool that you trust: `approval: auto` for it in the "
                "manifest.",
                server=server,
            )
        )  # fmt: skip
    return findings
