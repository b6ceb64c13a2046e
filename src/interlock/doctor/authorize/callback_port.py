"""Who holds the loopback port that a login of this server would listen on."""

from __future__ import annotations

import asyncio

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.kept import key_of
from interlock.model.stage import Stage
from interlock.upstream.oauth.grant_ids import filed_under
from interlock.upstream.oauth.identity import Identity, ask
from interlock.upstream.oauth.ports import candidates, owner_of


async def check(case: Case) -> list[Finding]:
    if case.settings.flow != "browser" or not await case.uses_oauth():
        return []
    filed, found = await case.filed(), await case.found()
    if found is not None:
        id = filed_under(found, case.preset())
    elif filed is not None:
        id = filed.id
    else:
        return []
    noted = filed.note.port if filed is not None and filed.note is not None and filed.note.kind == "browser" else None
    if case.settings.callback_port is not None:
        noted = None  # a setting leaves no other port, wherever an earlier sign-in listened
    ports = candidates(id, case.settings)
    port = noted if noted is not None else ports[0]
    where = f"127.0.0.1:{port}"
    held = await ask(port, key_of(case.machine.home), min(case.seconds, 2.0))
    if held is None:
        return [_finding("ok", f"the callback port {port} is free", where)]
    if isinstance(held, Identity):
        mine = "this sign-in" if held.grant == id else "another sign-in"
        if held.grant != id and len(ports) == 1:
            return [
                _finding(
                    "problem", f"process {held.pid} ({held.build[:60]}) holds the callback port {port} for {mine}", where,
                    "A sign-in cannot end there before that one has.",
                    "Finish that one, or wait: it lets the port go when it is done, two minutes after its host has ended at the "
                    "latest. Or set another oauth.callbackPort (--callback-port).",
                )
            ]  # fmt: skip
        return [_finding("ok", f"process {held.pid} ({held.build[:60]}) listens there for {mine}", where)]
    owner = await asyncio.to_thread(owner_of, port) or "a process that does not show"
    if len(ports) > 1 and noted is None:
        return [
            _finding(
                "note", f"{owner} holds the first callback port {port}", where,
                f"A sign-in takes the next one ({', '.join(map(str, ports[1:4]))}), unless its registration is bound to this one.",
            )
        ]  # fmt: skip
    return [
        _finding(
            "problem", f"{owner} holds the callback port {port}", where, "A sign-in cannot end there.",
            "End that program, or set another oauth.callbackPort (--callback-port) that the authorization server knows.",
        )
    ]  # fmt: skip


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(
        check="callback-port", stage=Stage.AUTHORIZE, severity=severity, seen=seen, where=where, why=why, todo=todo
    )
