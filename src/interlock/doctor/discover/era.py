"""Which era and revision the server speaks. A session that has to be opened to learn it is ended again."""

from __future__ import annotations

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.probe import Spoken, Unreached
from interlock.model.stage import Stage
from interlock.wire.address import shown


async def check(case: Case) -> list[Finding]:
    where = shown(case.url)
    try:
        spoken = await case.spoken()
    except Unreached as failure:
        return [_finding("unknown", f"which protocol it speaks could not be found out: {failure}", where)]
    if spoken.era == "unsettled":
        return [_unsettled(spoken, where, case.login)]
    name = f", it calls itself {_printable(spoken.server)}" if spoken.server else ""
    findings = [_finding("ok", f"{spoken.era} era, revision {_printable(spoken.version or 'unnamed')}{name}", where)]
    if spoken.kept_session:
        findings.append(
            _finding(
                "note", "the session that was opened for this question could not be ended; it will time out", where
            )
        )
    return findings


def _unsettled(spoken: Spoken, where: str, login: str) -> Finding:
    status = spoken.heard.status
    if status in (401, 403):
        return _finding(
            "unknown", f"which protocol it speaks cannot be told before a sign-in (HTTP {status})", where,
            todo=f"{login}, then again.",
        )  # fmt: skip
    if spoken.offers:
        named = _printable(", ".join(spoken.offers))
        return _finding(
            "problem", f"it speaks only {named}, which this Interlock does not", where,
            "No request can be made.", "`interlock update`",
        )  # fmt: skip
    return _finding(
        "problem", f"it answers neither `server/discover` nor `initialize` (HTTP {status})", where,
        "This does not look like an MCP endpoint.", "Check the URL's path; for the transport of 2024-11-05, use sse.",
    )  # fmt: skip


def _printable(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text[:160])


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(check="era", stage=Stage.DISCOVER, severity=severity, seen=seen, where=where, why=why, todo=todo)
