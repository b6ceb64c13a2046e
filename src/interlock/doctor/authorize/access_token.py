"""A personal access token: whether it is there, is kept from others, and is taken by the server, by one real handshake."""

from __future__ import annotations

import time

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.probe import Unreached
from interlock.doctor.times import until
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.upstream.oauth.static_token import StaticToken
from interlock.upstream.oauth.tokens import claims, wrong_audience
from interlock.wire.address import shown


async def check(case: Case) -> list[Finding]:
    source = case.transport.token
    if source is None:
        return []
    token = StaticToken(case.name, source, case.machine.environ)
    try:
        value = await token.ready(case.seconds)
    except Fault as fault:
        todo = "Put the token there. A variable has to be set in the environment of the host that starts Interlock."
        return [_finding("problem", fault.message, token.name, "Every call is refused.", todo)]
    findings = _claimed(value.removeprefix("Bearer "), token.name, case)
    try:
        spoken = await case.spoken()
    except Unreached as failure:
        return [
            *findings,
            _finding("unknown", f"whether the server takes it could not be tried: {failure}", token.name),
        ]
    status = spoken.heard.status
    if status in (401, 403):
        what = "is rejected" if status == 401 else "is not enough for the first request"
        findings.append(
            _finding(
                "problem", f"the token from {token.name} {what} (HTTP {status})", shown(case.url),
                "Every call is refused. Nothing else is tried with a token.",
                "Make a new token at the server, with the scopes that it needs, and put it there.",
            )
        )  # fmt: skip
    elif spoken.era == "unsettled":
        findings.append(_finding("unknown", f"a handshake with the token ended in HTTP {status}", shown(case.url)))
    else:
        findings.append(_finding("ok", f"the server takes the token from {token.name}", shown(case.url)))
    return findings


def _claimed(token: str, where: str, case: Case) -> list[Finding]:
    """What a readable token says of itself."""
    found = []
    end = (claims(token) or {}).get("exp")
    if isinstance(end, int | float) and not isinstance(end, bool):
        over = end <= time.time()
        found.append(
            _finding(
                "problem" if over else "ok", f"the token says that it {'ended' if over else 'ends'} {until(end, time.time())}",
                where, "It is not taken any more." if over else "", "Make a new one." if over else "",
            )
        )  # fmt: skip
    expected = case.settings.resource or case.url
    odd = wrong_audience(token, expected)
    if odd is not None:
        found.append(_finding("note", odd, where))
    return found


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(
        check="access-token", stage=Stage.AUTHORIZE, severity=severity, seen=seen, where=where, why=why, todo=todo
    )
