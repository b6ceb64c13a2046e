"""The authorization server's metadata: its issuer, the endpoints that a login needs, PKCE, and the issuer in answers."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.model.stage import Stage
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.registration import DEVICE_GRANT
from interlock.wire.address import shown


async def check(case: Case) -> list[Finding]:
    found = await case.found() if await case.uses_oauth() else None
    return [] if found is None else list(_look(found, case))


def _look(found: Discovered, case: Case) -> Iterator[Finding]:
    metadata, where = found.metadata, shown(found.issuer)
    if found.conventional and metadata.code_challenge_methods_supported is None:
        yield _finding("note", f"nothing is known of it but its address, {found.issuer[:300]}", where)
    else:
        yield _finding("ok", f"its metadata names the issuer {found.issuer[:300]}, as it must", where)
    flow = case.settings.flow
    needed = {"token_endpoint": metadata.token_endpoint}
    if flow == "browser":
        needed["authorization_endpoint"] = metadata.authorization_endpoint
    elif flow == "device":
        needed["device_authorization_endpoint"] = metadata.device_authorization_endpoint
    absent = [name for name, value in needed.items() if value is None]
    if absent:
        yield _finding(
            "problem", f"its metadata names no {' and no '.join(absent)}", where, f"The flow `{flow}` needs it.",
            "Set another oauth.flow (--flow), or tell those who run it.",
        )  # fmt: skip
    if flow == "browser":
        yield from _pkce(found, case, where)
        if not metadata.authorization_response_iss_parameter_supported:
            yield _finding(
                "note", "it does not say that its answers carry `iss` (RFC 9207)", where,
                "An answer without it is taken; one of another server is still told apart by `state`.",
            )  # fmt: skip
    grants = metadata.grant_types_supported
    wanted = {"device": DEVICE_GRANT, "client-credentials": "client_credentials"}.get(flow)
    if grants is not None and wanted is not None and wanted not in grants:
        yield _finding("warning", f"it does not list the grant type {wanted}", where, f"`flow: {flow}` may be refused.")
    if grants is not None and flow != "client-credentials" and "refresh_token" not in grants:
        yield _finding(
            "note", "it does not list the grant type refresh_token", where,
            "Without refresh tokens a person has to sign in each time the access token ends.",
        )  # fmt: skip
    if metadata.revocation_endpoint is None:
        yield _finding("note", "it cannot revoke tokens", where, "`interlock logout` only forgets the grant here.")


def _pkce(found: Discovered, case: Case, where: str) -> Iterator[Finding]:
    methods = found.metadata.code_challenge_methods_supported
    if methods is not None and "S256" in methods:
        yield _finding("ok", "it checks PKCE with S256", where)
        return
    # Discovery refuses this (2026-07-28), so it was tolerated: by a setting, or for a server of 2025-03-26 on this machine.
    waived = (
        "A setting, oauth.allowMissingPkce (--allow-missing-pkce), goes on nevertheless."
        if case.settings.allow_missing_pkce
        else ""
    )
    yield _finding(
        "warning",
        "it does not say that it checks PKCE with S256; a sign-in there is not conforming",
        where,
        f"A code that is stolen on its way could be redeemed. {waived}".strip(),
        "Tell those who run it.",
    )


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(
        check="authorization-server",
        stage=Stage.AUTHORIZE,
        severity=severity,
        seen=seen,
        where=where,
        why=why,
        todo=todo,
    )
