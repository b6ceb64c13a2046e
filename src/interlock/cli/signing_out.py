"""Revokes what a grant holds (RFC 7009), and forgets it, under the grant's lock: no process renews it meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from interlock.upstream.oauth.client_auth import signed
from interlock.upstream.oauth.discovery import DiscoveryFailed, issuer_metadata
from interlock.upstream.oauth.fetch import Fetcher, FetchFailed
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_log import GrantLog
from interlock.upstream.oauth.grant_store import GrantStore
from interlock.wire.address import shown

LOCK_SECONDS = 30.0
CALL_SECONDS = 8.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done. `left`: the server may still take a token of it."""

    text: str
    revoked: bool
    left: bool


class SignOut:
    def __init__(self, store: GrantStore, fetch: Fetcher, log: GrantLog, *, tell: bool) -> None:
        self._store = store
        self._fetch = fetch
        self._log = log
        self._tell = tell

    async def run(self, id: str) -> Outcome:
        """Raises Busy and StoreTrouble; the grant is still there then."""
        async with self._store.locked(id, LOCK_SECONDS) as held:
            grant = held.read()
            if grant is None:
                held.remove()
                return Outcome("the sign-in that was open is given up; there was no grant", False, False)
            trouble = await self._revoke(grant) if self._tell else "it was not told"
            held.remove()
        host = grant.resource.partition("//")[2].partition("/")[0] or "unknown"
        if trouble is None:
            self._log.write("logged-out", host, "revoked and forgotten")
            return Outcome(f"revoked at {shown(grant.issuer)} and forgotten here", True, False)
        self._log.write("logged-out", host, f"forgotten; not revoked: {trouble}", _secrets(grant))
        text = f"forgotten here; {shown(grant.issuer)} did not revoke it: {trouble}. Its tokens stay good there until they end"
        return Outcome(text, False, self._tell)

    async def _revoke(self, grant: Grant) -> str | None:
        """None where it is done, else why not. The refresh token first: it is what lives long."""
        if grant.registration.issuer != grant.issuer:
            return "the client that it was given to belongs to another authorization server"
        try:
            endpoint = await self._endpoint(grant)
        except DiscoveryFailed as failure:
            return f"its metadata could not be read. {failure.problem}".rstrip(".")
        if endpoint is None:
            return "it has no revocation endpoint"
        troubles = [
            trouble
            for token, hint in ((grant.refresh_token, "refresh_token"), (grant.access_token, "access_token"))
            if token is not None and (trouble := await self._present(endpoint, grant, token, hint)) is not None
        ]
        return troubles[0] if troubles else None

    async def _present(self, endpoint: str, grant: Grant, token: str, hint: str) -> str | None:
        form, basic = signed(grant.registration, {"token": token, "token_type_hint": hint})
        try:
            answer = await self._fetch.post_form(endpoint, form, CALL_SECONDS, basic)
        except FetchFailed as failure:
            return failure.what.rstrip(".")
        # RFC 7009, section 2.2: 200 also for a token that is none any more. A refusal to take this kind leaves it be.
        return None if answer.status == 200 else f"HTTP {answer.status} for the {hint.replace('_', ' ')}"

    async def _endpoint(self, grant: Grant) -> str | None:
        """A token goes to nobody but its own issuer, whichever the server names now. Raises DiscoveryFailed."""
        found = self._store.recalled(grant.server_url, None) or self._store.recalled(grant.server_url, grant.resource)
        if found is not None and found.issuer == grant.issuer:
            return found.metadata.revocation_endpoint
        told = await issuer_metadata(self._fetch, grant.issuer, grant.server_url, CALL_SECONDS)
        return told.revocation_endpoint


def _secrets(grant: Grant) -> list[str]:
    return [token for token in (grant.refresh_token, grant.access_token) if token is not None]
