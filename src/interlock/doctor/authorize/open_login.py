"""A login that is open, its URL and whether somebody listens for its end; or the pause after one that nobody finished."""

from __future__ import annotations

import time

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.times import span, until
from interlock.model.stage import Stage
from interlock.upstream.oauth.flow_note import FlowNote
from interlock.upstream.oauth.identity import Identity, ask


async def check(case: Case) -> list[Finding]:
    filed = await case.filed() if await case.uses_oauth() else None
    if filed is None:
        return []
    now = time.time()
    if filed.note is not None:
        return [await _open(filed.note, now, case)]
    if filed.snooze is not None and filed.snooze.unfinished_until > now:
        return [
            _finding(
                "note", f"a sign-in that was offered {until(filed.snooze.offered_at, now)} was not finished",
                why=f"No call offers one for {span(filed.snooze.unfinished_until - now)}.", todo=f"{case.login} does.",
            )
        ]  # fmt: skip
    return [_finding("ok", "no sign-in is open")]


async def _open(note: FlowNote, now: float, case: Case) -> Finding:
    age = f"opened {until(note.created, now)} by process {note.pid}"
    if note.kind == "device":
        code = f" with the code {note.user_code}" if note.user_code else ""
        return _finding("note", f"a sign-in at {note.url}{code} is open, {age}", todo="Finish it there.")
    held = await ask(note.port, lambda id: note.key, min(case.seconds, 2.0))
    if isinstance(held, Identity) and held.flow == note.flow_id:
        return _finding(
            "note", f"a sign-in is open, {age}: {note.url}", f"127.0.0.1:{note.port}", todo="Finish it there."
        )
    return _finding(
        "warning", f"a sign-in was {age}, and nobody listens for its end", f"127.0.0.1:{note.port}",
        "A click on its URL finds no one now; the next call takes it over, and the old URL works again.",
        case.login,
    )  # fmt: skip


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(
        check="open-login", stage=Stage.AUTHORIZE, severity=severity, seen=seen, where=where, why=why, todo=todo
    )
