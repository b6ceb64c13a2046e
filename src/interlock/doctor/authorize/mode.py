"""How Interlock logs in here, and whether that fits what the server asks for."""

from __future__ import annotations

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.probe import Unreached
from interlock.manifest.config import HttpTransport
from interlock.model.stage import Stage
from interlock.wire.address import shown


async def check(case: Case) -> list[Finding]:
    where = str(case.declared) if case.declared is not None else shown(case.url)
    findings = [_finding("ok", f"{_name(case.transport)}", where), *_unset(case, where)]
    try:
        status = (await case.first()).status
    except Unreached:
        return findings
    logs_in = case.transport.oauth is not None or case.transport.token is not None
    if status == 401 and not logs_in:
        findings.append(
            _finding(
                "problem", "the server asks for a sign-in, and none is set", where, "Every call is refused.",
                "Set `auth: oauth` (or `auth: token`) in the manifest's entry; with a URL, leave out --no-auth, or give --token-env.",
            )
        )  # fmt: skip
    elif status == 401 and await case.challenge() is None:
        findings.append(
            _finding(
                "note", "it answers 401 without a Bearer challenge", shown(case.url),
                "RFC 9728 wants one with the address of the resource metadata; the usual addresses are tried instead.",
            )
        )  # fmt: skip
    elif status < 300 and case.transport.oauth is not None and case.declared is not None:
        findings.append(
            _finding(
                "note", "the server answers a first request without a sign-in", shown(case.url),
                "It may ask for one later, for single tools.",
            )
        )  # fmt: skip
    return findings


def _name(transport: HttpTransport) -> str:
    if transport.token is not None:
        named = [f"${transport.token.env}" if transport.token.env else "", str(transport.token.file or "")]
        return f"personal access token from {' or '.join(filter(None, named))}"
    if transport.oauth is not None:
        return f"OAuth, {transport.oauth.flow}"
    if any(header.name.lower() == "authorization" for header in transport.headers):
        return "the manifest's own Authorization header"
    return "none"


def _unset(case: Case, where: str) -> list[Finding]:
    names = [header.source for header in (*case.transport.headers, *case.transport.session_headers)]
    names += [case.settings.client_id_env, case.settings.client_secret_env]
    absent = sorted({name for name in names if name is not None and not case.machine.environ.get(name)})
    if not absent:
        return []
    return [
        _finding(
            "problem", f"not set in this environment: {', '.join(absent)}", where,
            "What it stands for is not sent. The environment of a host that starts Interlock may differ from this one.",
            "Set it where the host is started.",
        )
    ]  # fmt: skip


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(check="log-in", stage=Stage.AUTHORIZE, severity=severity, seen=seen, where=where, why=why, todo=todo)
