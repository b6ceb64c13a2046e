"""Starts that failed when somebody called: what the audit records say, where no later call came through."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import count, shown, without_limits
from interlock.doctor.times import moment
from interlock.model.stage import Stage
from interlock.model.trace import RouteTrace

CHECK = Check("recorded-starts", Stage.DISCOVER)
_FAILED = frozenset(
    (
        "command-not-found", "cwd-missing", "env-missing", "spawn-failed", "server-exited", "crash-loop", "startup-timeout",
        "handshake-failed", "unreachable", "tls-failed",
    )
)  # fmt: skip


async def check(examination: Examination) -> list[Finding]:
    latest: dict[str, list[RouteTrace]] = {}
    for trace in await examination.traces_or_none():
        if trace.server is not None:
            latest.setdefault(trace.server, []).append(trace)
    findings = []
    known = {config.key for config in examination.configs()}
    for server, traces in latest.items():
        failed = []
        for trace in traces:  # newest first, up to one that reached the server
            if trace.slug not in _FAILED:
                break
            failed.append(trace)
        if failed and server in known:
            findings.append(_of(server, failed))
    return findings


def _of(server: str, failed: list[RouteTrace]) -> Finding:
    last = failed[0]
    reason = next((mark.reason for mark in reversed(last.marks) if mark.stage is Stage.DISCOVER), last.slug or "")
    return CHECK.found(
        "problem", f"the last {count(len(failed), 'call')} of `{server}` did not reach it, {moment(last.at_ns / 1e9)}",
        f"call {last.id}", shown(without_limits(reason), 500), f"`interlock doctor does-not-start --server {server}`", server=server,
    )  # fmt: skip
