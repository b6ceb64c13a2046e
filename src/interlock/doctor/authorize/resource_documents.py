"""The documents that say how callers are authorized: the resource's metadata, and which name of the resource is asked for."""

from __future__ import annotations

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.model.stage import Stage
from interlock.upstream.oauth.discovery import DiscoveryFailed
from interlock.wire.address import shown


async def check(case: Case) -> list[Finding]:
    if not await case.uses_oauth():
        return []
    where = shown(case.url)
    try:
        found = await case.discovered()
    except DiscoveryFailed as failure:
        return [
            _finding(
                "problem", failure.problem, where,
                "No sign-in can begin, and no grant can be renewed without what is kept from before.",
                failure.todo or "It may pass by itself; try again later.",
            )
        ]  # fmt: skip
    findings = []
    if found.conventional:
        findings.append(
            _finding(
                "note", "it has no protected resource metadata; its own origin is taken for the authorization server", where,
                "So did servers of revision 2025-03-26. Newer ones have the document (RFC 9728).",
            )
        )  # fmt: skip
    else:
        scopes = f", scopes {' '.join(found.scopes_supported)[:200]}" if found.scopes_supported else ""
        findings.append(_finding("ok", f"its metadata names the resource {found.resource[:300]}{scopes}", where))
    if case.settings.resource is not None:
        findings.append(
            _finding(
                "note", f"tokens are asked for {case.settings.resource[:300]}, because a setting says so", where,
                "The setting replaces what the server's own metadata says.",
            )
        )  # fmt: skip
    findings += [
        _finding("warning", remark, where, "It is tolerated, and does not conform.") for remark in found.remarks
    ]
    return findings


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(
        check="resource-metadata", stage=Stage.AUTHORIZE, severity=severity, seen=seen, where=where, why=why, todo=todo
    )
