"""Calls that ended at their deadline: whose time it was, before anybody touches the limit."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import count, listed, shown
from interlock.journal.trace import seconds
from interlock.manifest.config import ServerConfig
from interlock.model.stage import Stage
from interlock.model.trace import RouteTrace

CHECK = Check("ended-at-deadline", Stage.EXECUTE)
_SECOND = 1_000_000


async def check(examination: Examination) -> list[Finding]:
    by_server: dict[str, list[RouteTrace]] = {}
    answered: dict[str, int] = {}
    for trace in await examination.traces_or_none():
        if trace.server is None or trace.method != "tools/call":
            continue
        if trace.slug == "timeout":
            by_server.setdefault(trace.server, []).append(trace)
        elif trace.status == "ok" and trace.name is not None:
            answered[trace.name] = max(answered.get(trace.name, 0), trace.micros)
    configs = examination.loaded.gateway.servers
    return [_of(server, traces, answered, configs.get(server)) for server, traces in by_server.items()]


def _of(server: str, traces: list[RouteTrace], answered: dict[str, int], config: ServerConfig | None) -> Finding:
    names = list(dict.fromkeys(trace.name or server for trace in traces))
    longest = max(answered.get(name, 0) for name in names)
    limit = max(trace.micros for trace in traces)
    where = str(config.origin) if config is not None else f"call {traces[0].id}"
    why = (
        f"The server had them and did not answer within {seconds(limit)}: all of that time is in EXECUTE, and none of it is "
        f"Interlock's. What they may have done is unknown."
    )
    todo = (
        "Look first at what the tool waits for: the server's log, its network, the amount that it is asked for. A server that reports "
        "progress shows that it is alive."
    )
    if longest >= limit // 2 and longest > _SECOND:
        tool = names[0].partition("/")[2]
        todo += (
            f" Calls of it that came through took up to {seconds(longest)}: if that is its honest time, it alone may be given more "
            f"(`tools: {{{shown(tool, 80)}: {{timeoutSeconds: N}}}}` in its entry)."
        )
    return CHECK.found(
        "problem", f"{count(len(traces), 'call')} of {listed(f'`{name}`' for name in names)} got no answer from the server in time",
        where, why, todo, server=server,
    )  # fmt: skip
