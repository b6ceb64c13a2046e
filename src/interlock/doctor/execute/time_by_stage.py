"""In which of the seven stages the time of slow calls goes, by the route traces; and whether calls wait for each other."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import count, listed
from interlock.journal.trace import seconds
from interlock.manifest.config import ServerConfig
from interlock.model.stage import Stage
from interlock.model.trace import RouteTrace

CHECK = Check("time-by-stage", Stage.EXECUTE)
SLOW_MICROS = 2_000_000
"""A call that takes as long is worth asking about."""
SHARE = 0.1
"""Or a tenth of a server's calls."""
QUEUED = 2.0
"""Calls that meet others take that many times as long as those that do not: they wait for each other."""
LEAST = 3


@dataclass(frozen=True, slots=True)
class _Time:
    """The sum over some calls."""

    total: int
    stages: dict[Stage, int]

    def share(self, stage: Stage) -> float:
        return self.stages.get(stage, 0) / self.total if self.total else 0.0


async def check(examination: Examination) -> list[Finding]:
    by_server: dict[str, list[RouteTrace]] = {}
    for trace in await examination.traces_or_none():
        if trace.server is not None and trace.method == "tools/call" and trace.marks:
            by_server.setdefault(trace.server, []).append(trace)
    configs = examination.loaded.gateway.servers
    findings: list[Finding] = []
    for server, traces in by_server.items():
        answered = [trace for trace in traces if trace.status in ("ok", "tool_error", "error")]
        slow = [trace for trace in answered if trace.micros >= SLOW_MICROS]
        if not slow or len(slow) < max(1, len(answered) * SHARE):
            continue
        findings += _of(server, configs.get(server), answered, slow)
    return findings


def _of(server: str, config: ServerConfig | None, answered: list[RouteTrace], slow: list[RouteTrace]) -> list[Finding]:
    time = _sum(slow)
    stage = max(Stage, key=lambda each: time.stages.get(each, 0))
    parts = ", ".join(
        f"{each.upper()} {time.share(each):.0%}" for each in Stage if time.share(each) >= 0.01
    )  # fmt: skip
    worst = max(slow, key=lambda trace: trace.micros)
    seen = (
        f"{len(slow)} of {count(len(answered), 'call')} of `{server}` took {seconds(min(trace.micros for trace in slow))} or more; "
        f"the time goes in {stage.upper()} ({parts})"
    )
    where = str(config.origin) if config is not None else f"call {worst.id}"
    why, todo = _advice(stage, server, config, answered, slow)
    return [
        Check(CHECK.name, stage).found(
            "problem", seen, where, why, f"{todo} `interlock trace {worst.id}` shows the slowest.", server=server
        )
    ]


def _sum(traces: Sequence[RouteTrace]) -> _Time:
    stages: dict[Stage, int] = {}
    for trace in traces:
        for mark in trace.marks:
            stages[mark.stage] = stages.get(mark.stage, 0) + mark.micros
    return _Time(sum(trace.micros for trace in traces), stages)


def _advice(
    stage: Stage, server: str, config: ServerConfig | None, answered: list[RouteTrace], slow: list[RouteTrace]
) -> tuple[str, str]:
    if stage in (Stage.DISCOVER, Stage.DESCRIBE, Stage.SELECT):
        return (
            "These calls waited for the server to be started and listed before they could be sent.",
            f"`interlock doctor slow-first-call --server {server}` says which part of the start; `start: always` in its entry "
            "starts it before anybody calls.",
        )
    if stage is Stage.AUTHORIZE:
        return (
            "These calls waited for a person to answer.",
            "Nothing is slow. For a tool that you trust: `approval: auto` for it in its entry.",
        )
    if stage is Stage.VALIDATE:
        return (
            "These answers are so large that looking them through takes the time.",
            "Ask the tool for less at a time, where it has pages or filters.",
        )
    if stage is Stage.EXECUTE:
        return _executing(config, answered, slow)
    return "That is the time to write them down.", "See docs/audit.md."


def _executing(config: ServerConfig | None, answered: list[RouteTrace], slow: list[RouteTrace]) -> tuple[str, str]:
    met = _overlapping(answered)
    together = [trace.micros for trace in answered if trace.id in met]
    alone = [trace.micros for trace in answered if trace.id not in met]
    if (
        len(together) >= LEAST
        and len(alone) >= LEAST
        and statistics.median(together) >= QUEUED * statistics.median(alone)
    ):
        shared = config is not None and config.processes == "shared"
        return (
            f"Calls that run beside others take {seconds(int(statistics.median(together)))} in the median, those that run alone "
            f"{seconds(int(statistics.median(alone)))}: they queue in the server, which serves one at a time.",
            "`processes: per-client` in its entry gives each client a process of its own." if shared
            else "Let the server serve calls side by side, or let the host make fewer at once.",
        )  # fmt: skip
    names = dict.fromkeys(
        (trace.name or "").partition("/")[2] for trace in sorted(slow, key=lambda trace: -trace.micros)
    )
    return (
        f"It is the server's own work, most of it in {listed((f'`{name}`' for name in names if name), 3)}: Interlock only waits.",
        "Look at what the tool waits for: the server's log, its network, the amount that it is asked for.",
    )


def _overlapping(traces: Sequence[RouteTrace]) -> set[str]:
    """Ids of calls that were open while another call of the server was."""
    met: set[str] = set()
    latest: RouteTrace | None = None
    until = 0
    for trace in sorted(traces, key=lambda each: each.at_ns):
        if latest is not None and trace.at_ns < until:
            met |= {trace.id, latest.id}
        end = trace.at_ns + trace.micros * 1000
        if end > until:
            latest, until = trace, end
    return met
