"""Who this machine is to the authorization server: a configured client, a metadata document, or a registration that is kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from interlock.doctor import kept
from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.times import until
from interlock.model.stage import Stage
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Registration
from interlock.upstream.oauth.issuer_binding import same
from interlock.upstream.oauth.refresh_words import command
from interlock.wire.address import shown

MARGIN_DAYS = 7


async def check(case: Case) -> list[Finding]:
    found = await case.found() if await case.uses_oauth() else None
    if found is None:
        return []
    known = await asyncio.to_thread(kept.registrations, case.machine.home, found.issuer)
    return list(_look(found, case, known))


def _look(found: Discovered, case: Case, known: list[Registration]) -> Iterator[Finding]:
    settings, metadata, where = case.settings, found.metadata, shown(found.issuer)
    preset = case.preset()
    if settings.client_id is not None or settings.client_id_env is not None:
        if preset is None:
            yield _finding(
                "problem", f"the client id should stand in ${settings.client_id_env}, which is not set here", where,
                "No sign-in can begin.", "Set it in the environment of the host that starts Interlock.",
            )  # fmt: skip
            return
        bound = case.bound_issuer()
        if bound is not None and not same(bound, found.issuer):
            yield _finding(
                "problem",
                f"the server names another authorization server, {shown(found.issuer)}, than the configured client "
                f"{preset[:120]} belongs to, {shown(bound)}",
                where, "Neither the id nor the secret is sent to it, so no sign-in and no renewal can begin.",
                f"Ask the server's operator. If it has moved, `{command('logout', case.name)}` forgets the old one, or set "
                "oauth.issuer (--issuer).",
            )  # fmt: skip
            return
        yield _finding("ok", f"the configured client {preset[:120]} is used", where)
        return
    dynamic = next((each for each in known if each.source == "dynamic"), None)
    if settings.client_metadata_url is not None and metadata.client_id_metadata_document_supported:
        yield _finding("ok", f"it takes the client metadata document {shown(settings.client_metadata_url)}", where)
    elif dynamic is not None:
        yield _registered(dynamic, where)
    elif metadata.registration_endpoint is not None:
        yield _finding("ok", "this machine is not registered yet; the first sign-in registers it", where)
    else:
        documents = " It takes client metadata documents." if metadata.client_id_metadata_document_supported else ""
        yield _finding(
            "problem", f"it lets no client register itself, and none is configured.{documents}", where,
            "No sign-in can begin.", "Register a client there by hand and set oauth.clientId (--client-id).",
        )  # fmt: skip


def _registered(registration: Registration, where: str) -> Finding:
    seen = f"registered as {registration.client_id[:120]}"
    end = registration.secret_expires_at
    if registration.redirect_uri is not None:
        seen += f", with {shown(registration.redirect_uri)}"
    if end is not None and end - time.time() < MARGIN_DAYS * 86400:
        return _finding(
            "note", f"{seen}; its secret ends {until(end, time.time())}", where,
            "Then the next sign-in registers anew, by itself.",
        )  # fmt: skip
    return _finding("ok", seen, where)


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(
        check="registration", stage=Stage.AUTHORIZE, severity=severity, seen=seen, where=where, why=why, todo=todo
    )
