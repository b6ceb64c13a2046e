"""The machine's grant for this server: its state, its times on the server's clock, its scopes, and whom its token is for."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.doctor import kept
from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.probe import Unreached
from interlock.doctor.times import moment, until
from interlock.model.stage import Stage
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_log import mask
from interlock.upstream.oauth.moved import sentence
from interlock.upstream.oauth.refresh import usable
from interlock.upstream.oauth.scopes import wanted
from interlock.upstream.oauth.tokens import claims, wrong_audience
from interlock.wire.address import shown


async def check(case: Case) -> list[Finding]:
    if not await case.uses_oauth():
        return []
    filed = await case.filed()
    folder = kept.folder_of(case.machine.home)
    findings = [
        _finding(
            "problem", f"others may get at the grants: {reason}", str(path), "Whoever has them acts as you.",
            "Interlock takes the access away at its next start; sign in anew if others had it.",
        )
        for path in (folder, *((filed.path,) if filed is not None else ()))
        if (reason := kept.width(path)) is not None
    ]  # fmt: skip
    if filed is not None and filed.trouble is not None:
        findings.append(
            _finding(
                "problem", f"the grant's file cannot be read: {filed.trouble}", str(filed.path),
                "The next start keeps it under another name and asks for a sign-in.", case.login,
            )
        )  # fmt: skip
    if filed is None or filed.grant is None:
        severity: Severity = "warning" if case.settings.flow != "client-credentials" else "note"
        seen, why = "this machine has no grant for it", "Calls ask for a sign-in."
        former, found = await case.former_issuer(), await case.found()
        if former is not None and found is not None:
            why = f"Calls ask for a sign-in: {sentence(former, found)}."
        findings.append(_finding(severity, seen, str(folder), why, case.login))
        return findings
    grant = filed.grant
    now = await case.server_time(grant)
    findings += _times(grant, now, str(filed.path), case.login)
    found = await case.found()
    if found is not None:
        missing = [scope for scope in wanted(found, case.settings) if grant.scope and scope not in grant.scope]
        if missing:
            findings.append(
                _finding(
                    "note", f"scopes that are asked for and were not granted: {' '.join(missing)[:200]}", str(filed.path),
                    "Calls that need them end in 403.", f"{case.login[:-1]} --again`",
                )
            )  # fmt: skip
    findings += _audience(grant, str(filed.path))
    if usable(grant, now):
        findings.append(await _tried(case, grant))
    return findings


def _times(grant: Grant, now: float, where: str, login: str) -> Iterator[Finding]:
    scope = f" for {' '.join(grant.scope)[:200]}" if grant.scope else ""
    refusal = grant.refusal
    words = ""
    if refusal is not None:
        said = mask(f"{refusal.error} {refusal.description}".strip())
        words = f"; refused {refusal.count} times, last {until(refusal.last_at, now)}: {said}"
    if grant.state == "dead":
        yield _finding("problem", f"the grant{scope} has ended{words}", where, "Only a sign-in helps.", login)
    elif grant.state == "spent":
        yield _finding(
            "warning", f"the refresh token was presented {until(grant.presented_at or now, now)} and no answer came", where,
            "It is presented once more; after that only a sign-in helps.", "Nothing yet: make a call.",
        )  # fmt: skip
    elif grant.state == "refused":
        yield _finding(
            "warning", f"the grant's renewal was refused{words}", where,
            "A refusal is not believed at once. It is tried again for two minutes before a sign-in is offered.",
            f"Wait, or {login[:-1]} --again`.",
        )  # fmt: skip
    else:
        yield _finding(
            "ok", f"a grant{scope}, generation {grant.generation}, obtained {until(grant.obtained_at, now)}", where
        )
    yield _access(grant, now, where)
    if grant.refresh_token is None:
        yield _finding("note", "it has no refresh token", where, "A person has to sign in when the access token ends.")
    elif grant.refresh_expires_at is not None:
        over = grant.refresh_expires_at <= now
        yield _finding(
            "problem" if over else "ok",
            f"the refresh token {'ended' if over else 'ends'} {until(grant.refresh_expires_at, now)} on the server's clock",
            where, "It cannot be renewed any more." if over else "", login if over else "",
        )  # fmt: skip
    else:
        yield _finding("ok", "the refresh token does not say when it ends", where)
    if grant.refresh_not_before is not None and grant.refresh_not_before > now:
        yield _finding("note", f"it may be renewed from {moment(grant.refresh_not_before)} on (server's clock)", where)


def _access(grant: Grant, now: float, where: str) -> Finding:
    if grant.access_token is None:
        return _finding("warning", "there is no access token in it", where)
    if grant.expires_at is None:
        return _finding("note", "the access token does not say when it ends", where)
    over = grant.expires_at <= now
    seen = f"the access token {'ended' if over else 'ends'} {until(grant.expires_at, now)} on the server's clock"
    renewed = over and grant.refresh_token is not None
    return _finding("note" if over else "ok", seen, where, "The next call renews it." if renewed else "")


def _audience(grant: Grant, where: str) -> Iterator[Finding]:
    if grant.access_token is None:
        return
    payload = claims(grant.access_token)
    if payload is None:
        yield _finding("note", "the access token is opaque, so whom it is meant for cannot be read", where)
        return
    odd = wrong_audience(grant.access_token, grant.resource)
    if odd is not None:
        yield _finding("warning", odd, where, "A server that checks the audience refuses it.")
    elif "aud" in payload:
        yield _finding("ok", f"the access token is meant for {grant.resource[:300]} (its `aud`)", where)
    issuer = payload.get("iss")
    if isinstance(issuer, str) and issuer != grant.issuer:
        yield _finding("note", f"the access token names another issuer: {mask(issuer)}", where)


async def _tried(case: Case, grant: Grant) -> Finding:
    where = shown(case.url)
    try:
        status = (await case.spoken()).heard.status
    except Unreached as failure:
        return _finding("unknown", f"whether the server takes the access token could not be tried: {failure}", where)
    if status == 401:
        renewed = " The next call renews it." if grant.refresh_token is not None else ""
        return _finding(
            "warning", "the server rejects the access token, which should still be good", where,
            f"It may have been revoked, or be meant for somebody else.{renewed}", "Make a call; if it stays so, sign in anew.",
        )  # fmt: skip
    if status == 403:
        return _finding("warning", "the server wants wider scopes, or refuses this account (HTTP 403)", where)
    if status >= 400:
        return _finding("unknown", f"a request with the access token ended in HTTP {status}", where)
    return _finding("ok", "the server takes the access token", where)


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(check="grant", stage=Stage.AUTHORIZE, severity=severity, seen=seen, where=where, why=why, todo=todo)
