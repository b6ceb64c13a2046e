"""Authorizes the requests to one server with the machine's grant: the token now, a refresh, or where a person signs in.

Nothing here waits for a person: where only a sign-in helps, the caller is told so at once, with the address, and the next
call after the click goes through.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Coroutine, Mapping

import msgspec

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.oauth.challenge import Bearer, bearer
from interlock.upstream.oauth.client_credentials import obtain
from interlock.upstream.oauth.clock import skew_of
from interlock.upstream.oauth.discovery import DiscoveryFailed, discover
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_store import grant_id, token_hash
from interlock.upstream.oauth.refresh import NeedLogin, misconfigured, refresh_at, renew, usable
from interlock.upstream.oauth.registration import RegistrationFailed
from interlock.upstream.oauth.scopes import union, wanted
from interlock.upstream.oauth.shared import Shared
from interlock.upstream.oauth.tokens import wrong_audience

LOOK_SECONDS = 0.25
"""How often the grant's file is looked at, so that a sign-in of another process is seen."""
WATCH_SECONDS = 0.5
"""The same while a sign-in is open and nothing else goes on."""
MAX_PATIENCE = 25.0
"""The longest that a request waits for discovery and a refresh."""
IDLE_CHECK_SECONDS = 300.0
"""How far ahead a refresh is planned in one step: a machine that slept must not wait for a timer of before."""
MAX_STEP_UPS = 3
"""How often wider scopes are asked for before the server is told to be at fault (2026-07-28, Step-Up Authorization)."""


class OAuthAuthorization:
    """For one server of one process. The grant itself is shared: it is keyed by resource and issuer, never by server."""

    def __init__(self, server: str, url: str, settings: OAuth, shared: Shared) -> None:
        self.server = server
        self.url = url
        self.settings = settings
        self.shared = shared
        self.available: Callable[[], None] = lambda: None
        """Called when requests can be authorized again after a sign-in, whoever brought it about."""
        self.found: Discovered | None = None
        self.id: str | None = None
        self.grant: Grant | None = None
        self._preset = settings.client_id or shared.environ.get(settings.client_id_env or "") or None
        self._stamp: tuple[int, int] | None = None
        self._looked = 0.0
        self._skew: float | None = None
        self._date = b""
        self._refused: set[str] = set()
        """Hashes of tokens that the server would not take."""
        self._wanted: tuple[str, ...] = ()
        """Scopes that the server has asked for since."""
        self._step_ups: dict[tuple[str, ...], int] = {}
        self._asked_anew = False
        """True once discovery ran in this process: what was kept from earlier runs may be out of date."""
        self._outage: tuple[float, Fault] | None = None
        self._slow = asyncio.Lock()
        self._tasks: set[asyncio.Task[str]] = set()
        self._watching: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle: asyncio.Task[None] | None = None
        self._closed = False
        self._recall()

    # -- Authorization -----------------------------------------------------------------------------------------------

    def current(self) -> str | None:
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self.look()
        grant = self.grant
        if grant is None:
            # Nothing is known: the server's own challenge says what it wants. Where it is known, do not ask again.
            return "" if self.found is None else None
        if usable(grant, self.now()) and (
            not self._refused or token_hash(grant.access_token or "") not in self._refused
        ):
            return f"Bearer {grant.access_token}"
        return None

    async def ready(self, seconds: float) -> str:
        return await self._within(self._ready(), seconds)

    async def refused(self, used: str, status: int, headers: Mapping[bytes, bytes], seconds: float) -> str:
        challenge = bearer(headers.get(b"www-authenticate", b"").decode("latin-1"))
        work = self._step_up(used, challenge) if status == 403 else self._unauthorized(used, challenge)
        return await self._within(work, seconds)

    def heard(self, headers: Mapping[bytes, bytes]) -> None:
        date = headers.get(b"date", b"")
        if date == self._date:
            return
        self._date = date
        skew = skew_of(date.decode("latin-1"), time.time())
        if skew is None:
            return
        before = self._skew if self._skew is not None else (self.grant.skew if self.grant is not None else 0.0)
        self._skew = skew
        if abs(skew) > 30 and abs(skew - before) > 30 and self.found is not None:
            side = "behind" if skew > 0 else "ahead of"
            text = f"this machine's clock is {abs(skew):.0f} s {side} the server's; times are judged on the server's. Cure: NTP"
            self.shared.log.write("clock-skew", self.found.resource, text)

    def mask(self, text: str) -> str:
        grant = self.grant
        if grant is not None:
            for secret in (grant.access_token, grant.refresh_token, grant.registration.client_secret):
                if secret and len(secret) >= 6:
                    text = text.replace(secret, "[redacted]")
        return text

    # -- what is on disk ---------------------------------------------------------------------------------------------

    def now(self) -> float:
        """The time on the server's clock, as far as its `Date` headers tell."""
        if self._skew is not None:
            return time.time() + self._skew
        return time.time() + (self.grant.skew if self.grant is not None else 0.0)

    def look(self) -> None:
        """Read the grant again if its file has changed. A few microseconds where it has not."""
        self._looked = time.monotonic()
        if self.id is None:
            self._recall()
            return
        stamp = self.shared.store.stamp(self.id)
        if stamp != self._stamp:
            self._stamp = stamp
            self._take(self.shared.store.read(self.id))

    def _recall(self) -> None:
        found = self.shared.store.recalled(self.url, self.settings.resource)
        if found is not None:
            self._settle(found)

    def _settle(self, found: Discovered) -> None:
        """This is how the server wants to be asked; the grant for it may be there already."""
        self.found = found
        self.id = grant_id(found.resource, found.issuer, self._preset)
        self._stamp = self.shared.store.stamp(self.id)
        self._take(self.shared.store.read(self.id))

    def _take(self, grant: Grant | None) -> None:
        before, self.grant = self.grant, grant
        if grant is not None and (before is None or before.generation != grant.generation):
            self._outage = None
            self._plan()

    # -- the slow ways -----------------------------------------------------------------------------------------------

    async def _within(self, work: Coroutine[object, object, str], seconds: float) -> str:
        """Do it in a task of its own: a caller that gives up must not tear a refresh in two."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        patience = min(seconds, MAX_PATIENCE)
        done, _ = await asyncio.wait({task}, timeout=patience)
        if not done:
            raise Fault(
                "auth-unreachable",
                f"{self.server}: authorization took longer than {patience:.0f} s and goes on in the background. The server did "
                f"not get the request. Retry in {self.shared.timing.knock_seconds:.0f} s.",
                stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=self.server,
                wait_seconds=self.shared.timing.knock_seconds,
            )  # fmt: skip
        return task.result()

    def _done(self, task: asyncio.Task[str]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def _ready(self) -> str:
        async with self._slow:
            self.look()
            value = self.current()
            return value if value is not None else await self._renewed(None)

    async def _unauthorized(self, used: str, challenge: Bearer | None) -> str:
        token = used.removeprefix("Bearer ")
        async with self._slow:
            if challenge is not None and challenge.scope:
                self._wanted = union(self._wanted, challenge.scope)
            if self.found is None:
                await self._discover(challenge)
            self.look()
            if token:
                self._refused.add(token_hash(token))
            value = self.current()
            if value and value != used:
                return value  # another process was here first, or the grant was there all along
            grant = self.grant
            if token and grant is not None and self._is_fresh(grant, token):
                return await self._fresh_and_refused(token, challenge)
            return await self._renewed(token or None, challenge)

    def _is_fresh(self, grant: Grant, token: str) -> bool:
        """True for one that was fetched a moment ago in place of another that was refused: renewing once more changes nothing."""
        age = self.now() - grant.obtained_at
        return grant.after_rejection and grant.access_token == token and age < self.shared.timing.knock_seconds

    async def _fresh_and_refused(self, token: str, challenge: Bearer | None) -> str:
        """The server takes no token of this issuer, or not for this resource: perhaps it has moved to another."""
        before = self.id
        await self._discover(challenge)
        if self.id != before:
            return await self._renewed(None, challenge)
        found = self.found
        assert found is not None
        why = wrong_audience(token, found.resource)
        if why is None:
            why = (challenge.error_description if challenge is not None else None) or "it gave no reason"
        text = f"{self.server}: the server rejected a token that was issued to it a moment ago ({self.mask(why)[:300]})"
        self.shared.log.write("token-rejected", found.resource, why, (token,))
        raise Fault(
            "token-rejected",
            f"{text}. It did not act on the request. `interlock doctor bridge {self.url}` compares what the token says with what "
            "was expected; a setting `resource` overrides the resource that is asked for.",
            stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=self.server, http_status=401,
        )  # fmt: skip

    async def _step_up(self, used: str, challenge: Bearer | None) -> str:
        """403 with insufficient_scope: a sign-in for what is granted already and what is asked for now, together."""
        asked = (challenge.scope if challenge is not None else None) or ()
        async with self._slow:
            self.look()
            if self.found is None:
                await self._discover(challenge)
            value = self.current()
            grant = self.grant
            if value and value != used:
                return value
            self._wanted = union(self._wanted, asked)
            key = tuple(sorted(asked))
            tries = self._step_ups[key] = self._step_ups.get(key, 0) + 1
            if grant is not None and asked and set(asked) <= set(grant.scope) and tries > MAX_STEP_UPS:
                raise Fault(
                    "insufficient-scope",
                    f"{self.server}: the server keeps asking for {' '.join(asked)[:200]}, which was granted. It did not act on the "
                    "request.",
                    stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=self.server, retry="never", http_status=403,
                )  # fmt: skip
            words = f"the server wants wider consent for this call: {' '.join(asked)[:200] or 'scopes that it does not name'}"
            return await self._sign_in(words, slug="insufficient-scope")

    async def _renewed(self, rejected: str | None, challenge: Bearer | None = None) -> str:
        """A fresh token's header. Raises Fault, with the address of a sign-in where nothing else helps."""
        self._brake()
        found, id = self.found, self.id
        if found is None or id is None:
            return ""
        try:
            if self.settings.flow == "client-credentials":
                grant = await obtain(
                    self.shared, self.server, id, found, self.settings, self._scope(), rejected=rejected
                )
            else:
                grant = await renew(self.shared, self.server, id, found, rejected=rejected, waited=True)
        except NeedLogin as need:
            self.look()
            if not self._asked_anew:
                # What was kept may be out of date; a person's click must not be wasted on an old address.
                before = self.id
                await self._discover(challenge)
                if self.id != before and (value := self.current()):
                    return value
            return await self._sign_in(need.why)
        except Fault as fault:
            if fault.slug == "auth-unreachable":
                self._outage = (time.monotonic(), fault)
            raise
        self.look()
        if grant.not_before is not None and grant.not_before > self.now() + 1.0:
            raise self._held(grant)
        return f"Bearer {grant.access_token}"

    def _held(self, grant: Grant) -> Fault:
        """The access token is good from later on only."""
        wait = max((grant.not_before or 0.0) - self.now(), 1.0)
        return Fault(
            "grant-refused",
            f"{self.server}: the token that was issued is not good yet. The server did not get the request, and the grant is "
            f"intact. Retry in {wait:.0f} s.",
            stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=self.server, wait_seconds=round(wait, 1),
        )  # fmt: skip

    def _brake(self) -> None:
        """An authorization server that is down is not asked by every call of every tool."""
        if self._outage is None:
            return
        at, fault = self._outage
        if time.monotonic() - at < self.shared.timing.knock_seconds:
            raise fault.with_traceback(None)
        self._outage = None

    async def _discover(self, challenge: Bearer | None) -> None:
        """Ask the server and its authorization server how they want to be asked. Raises Fault."""
        self._brake()
        issuer = self.found.issuer if self.found is not None else None
        try:
            found = await discover(
                self.shared.fetch, self.url, challenge, self.settings, MAX_PATIENCE - 5.0, prefer_issuer=issuer
            )
        except DiscoveryFailed as failure:
            if not failure.unreachable:
                raise misconfigured(self.server, failure.what) from None
            fault = self._not_reached(failure.what)
            self._outage = (time.monotonic(), fault)
            raise fault from None
        for remark in found.remarks:
            self.shared.say(f"{self.server}: {remark}")
        self._asked_anew = True
        self.shared.store.remember(found)
        self._settle(found)

    # -- a person ----------------------------------------------------------------------------------------------------

    def _scope(self) -> tuple[str, ...]:
        """What to ask for: the setting, else what the server names, else nothing; always with what was granted before."""
        found, grant = self.found, self.grant
        if found is None:
            return self.settings.scopes
        if self._wanted and not self.settings.scopes:
            found = msgspec.structs.replace(found, challenge_scope=self._wanted)
        base = wanted(found, self.settings)
        if not self._step_ups:
            return base
        return union(grant.scope if grant is not None else (), base, self._wanted)

    async def _sign_in(self, why: str, slug: str = "login-needed") -> str:
        """Tell the caller that a person has to act: the same address for every process of this machine. Raises Fault.

        Returns the header's value where the grant has come in this very moment.
        """
        found, id = self.found, self.id
        assert found is not None
        assert id is not None
        if not self.shared.offers:
            raise Fault(
                slug,
                f"{self.server}: a person has to sign in: run `interlock login {self.server}`, then this again. The server did not "
                f"act on the request ({why}).",
                stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=self.server,
            )  # fmt: skip
        try:
            offer = await self.shared.logins.offer(
                id, found, self.settings, self.shared.environ, scope=self._scope(), seconds=MAX_PATIENCE - 5.0,
                seen=self.grant.generation if self.grant is not None else 0,
            )  # fmt: skip
        except RegistrationFailed as failure:
            if failure.unreachable:
                raise self._not_reached(failure.what) from None
            raise misconfigured(self.server, failure.what) from None
        except Fault as fault:
            if fault.server is None:
                fault.server, fault.message = self.server, f"{self.server}: {fault.message}"
            raise
        if offer.grant is not None:
            self.look()
            return f"Bearer {offer.grant.access_token}"
        self._watch()
        if not offer.url:
            wait = max((offer.snoozed_until or 0.0) - time.time(), 1.0)
            raise Fault(
                "login-unfinished",
                f"{self.server}: a sign-in was offered a while ago and not finished, so no new one is opened by itself. "
                f"`interlock login {self.url}` opens one now; else retry in {wait:.0f} s. The server did not act on the request.",
                stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=self.server, wait_seconds=round(wait, 1),
            )  # fmt: skip
        code = f" and enter the code {offer.user_code}" if offer.user_code else ""
        self.shared.say(f"{self.server}: sign in at {offer.url}{code}")
        raise Fault(
            slug,
            f"{self.server}: a person has to sign in: open {offer.url}{code}, then make the call again. The server did not act on "
            f"the request ({why}).",
            stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=self.server, authorize_url=offer.url,
        )  # fmt: skip

    def _not_reached(self, what: str) -> Fault:
        seconds = self.shared.timing.knock_seconds
        return Fault(
            "auth-unreachable",
            f"{self.server}: {what}. The server did not act on the request. Retry in {seconds:.0f} s.",
            stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=self.server, wait_seconds=seconds,
        )  # fmt: skip

    def _watch(self) -> None:
        """Look out for the click, so that what waits for it goes on without another call."""
        if self._watching is None or self._watching.done():
            self._watching = asyncio.get_running_loop().create_task(self._until_signed_in())

    async def _until_signed_in(self) -> None:
        until = time.monotonic() + self.shared.timing.login_seconds + self.shared.timing.snooze_seconds
        while time.monotonic() < until and not self._closed:
            await asyncio.sleep(WATCH_SECONDS)
            self.look()
            if self.current():
                self.available()
                return

    # -- ahead of need -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Keep the grant alive from now on, whether the server is used or not."""
        self._plan()

    def _plan(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        grant = self.grant
        due = refresh_at(grant, self.shared.timing.refresh_lead) if grant is not None else None
        if due is None or self._closed:
            return
        # Not all processes of the machine at the same moment: the first one does it, the others find it done.
        delay = max(due - self.now(), 0.0) + random.uniform(0.0, 2.0)
        if grant is not None and grant.refusal is not None:
            delay = max(delay, self.shared.timing.grace_seconds / 2)
        self._timer = asyncio.get_running_loop().call_later(min(delay, IDLE_CHECK_SECONDS), self._ahead)

    def _ahead(self) -> None:
        self._timer = None
        if not self._closed and (self._idle is None or self._idle.done()):
            self._idle = asyncio.get_running_loop().create_task(self._refresh_ahead())

    async def _refresh_ahead(self) -> None:
        async with self._slow:
            self.look()
            grant, found, id = self.grant, self.found, self.id
            due = refresh_at(grant, self.shared.timing.refresh_lead) if grant is not None else None
            if (
                grant is not None
                and found is not None
                and id is not None
                and due is not None
                and due <= self.now() + 0.5
            ):
                # Nobody waits for it: what goes wrong is in the log, and the next call says it.
                with contextlib.suppress(Fault, NeedLogin):
                    await renew(self.shared, self.server, id, found, rejected=grant.access_token, waited=False)
            self.look()
        self._plan()

    async def close(self) -> None:
        """A refresh that is under way may finish: what it brings is the machine's."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
        under_way = [task for task in (*self._tasks, self._idle) if task is not None and not task.done()]
        if under_way:
            await asyncio.wait(under_way, timeout=MAX_PATIENCE)
