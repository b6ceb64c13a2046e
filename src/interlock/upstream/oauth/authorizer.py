"""Authorizes the requests to one server with the machine's grant: the token now, a refresh, or where a person signs in.

Nothing here waits for a person: where only a sign-in helps, the caller is told so at once, with the address, and the next
call after the click goes through.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.upstream.oauth import offers, signing_words
from interlock.upstream.oauth import refresh_words as words
from interlock.upstream.oauth.ahead import Ahead
from interlock.upstream.oauth.challenge import Bearer, bearer, without_secrets
from interlock.upstream.oauth.client_credentials import obtain
from interlock.upstream.oauth.discovery import DiscoveryFailed, discover
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_store import StoreTrouble
from interlock.upstream.oauth.ground import host_of
from interlock.upstream.oauth.held_token import HeldToken
from interlock.upstream.oauth.issuer_binding import bound_to, check
from interlock.upstream.oauth.known_grant import KnownGrant
from interlock.upstream.oauth.moved import former_issuer, neighbour, not_for_this, sentence
from interlock.upstream.oauth.refresh import NeedLogin, held_back, note_skew, renew, signed_in_at
from interlock.upstream.oauth.registration import RegistrationFailed
from interlock.upstream.oauth.renewals import Renewals
from interlock.upstream.oauth.scopes import union
from interlock.upstream.oauth.shared import Shared
from interlock.upstream.oauth.sign_in_watch import SignInWatch
from interlock.upstream.oauth.step_ups import StepUps
from interlock.upstream.oauth.tokens import wrong_audience

MAX_PATIENCE = 25.0
"""The longest that a request waits for discovery and a refresh."""
DISCOVERY_SECONDS = 20.0
SECOND_LOOK_SECONDS = 5.0
"""Of a discovery that only looks whether the server has moved, when its authorization server cannot be used."""
DISCOVERY_LASTS = 300.0
"""What was discovered longer ago is looked up again before a person's click is spent on it."""
TOGETHER_SECONDS = 24.0
"""Of discovery and registration for one request, together."""
MAX_AT_ONCE = 3
AT_ONCE_SECONDS = 60.0
"""For so long, at most so many tokens are renewed that were fetched a moment ago."""
SIGNED_IN_SECONDS = 60.0
"""For so long after a sign-in, another one is no cure for a token that the server does not take."""


class OAuthAuthorization:
    """For one server of one process. The grant itself is shared: it is keyed by resource and issuer, never by server."""

    def __init__(self, server: str, url: str, settings: OAuth, shared: Shared) -> None:
        self.server = server
        self.url = url
        self.settings = settings
        self.shared = shared
        self.available: Callable[[], None] = lambda: None
        """Called when requests can be authorized again after a sign-in, whoever brought it about."""
        self._known = KnownGrant(url, settings, shared, self._taken)
        self._ahead = Ahead(self._known, shared.timing, self._renew_ahead)
        self._step_ups = StepUps()
        self._discovered_at: float | None = None
        self._outage: tuple[float, Fault] | None = None
        self._slow = asyncio.Lock()
        self._tasks: set[asyncio.Task[str]] = set()
        self._renewals = Renewals()
        self._early = HeldToken(shared.timing.knock_seconds)
        self._until = 0.0
        """When the request that holds `_slow` has to be done with discovery and registration."""
        self._watch = SignInWatch(self._known, shared.timing)
        self._taken_by_server = ""
        """The value that the server took last: what it refuses later was good once."""
        self._at_once: list[float] = []
        """When a token that had just been fetched was renewed all the same."""
        self._told_of = ""
        """The token whose rejection is in the log already."""
        self._closed = False
        self._known.look()

    # -- Authorization -----------------------------------------------------------------------------------------------

    def current(self) -> str | None:
        return self._known.header()

    async def ready(self, seconds: float) -> str:
        return await self._within(self._ready(), seconds)

    async def refused(self, used: str, status: int, headers: Mapping[bytes, bytes], seconds: float) -> str:
        challenge = without_secrets(bearer(headers.get(b"www-authenticate", b"").decode("latin-1")), self.mask)
        work = self._step_up(used, challenge) if status == 403 else self._unauthorized(used, challenge)
        return await self._within(work, seconds)

    def doubted(self, used: str) -> None:
        if used:
            self._known.refuse(_token(used))

    def accepted(self, used: str) -> None:
        self._taken_by_server = used

    def heard(self, headers: Mapping[bytes, bytes]) -> None:
        skew = self._known.clock.heard(headers, time.time())
        if skew is not None and self._known.found is not None:
            note_skew(self.shared, self._known.found, skew)

    def mask(self, text: str) -> str:
        return self._known.mask(text)

    def secrets(self) -> Sequence[str]:
        return self._known.secrets()

    # -- the slow ways -----------------------------------------------------------------------------------------------

    async def _within(self, work: Coroutine[object, object, str], seconds: float) -> str:
        """Do it in a task of its own: a caller that gives up must not tear a refresh in two."""
        if self._closed:
            work.close()
            raise signing_words.leaving(self.server)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        # A little less than the caller has: its own deadline would know less of the cause.
        patience = min(seconds - min(0.3, seconds / 10), MAX_PATIENCE)
        done, _ = await asyncio.wait({task}, timeout=patience)
        if not done:
            raise signing_words.too_slow(self.server, patience, self.shared.timing.knock_seconds)
        if task.cancelled():
            raise signing_words.leaving(self.server)
        return task.result()

    def _done(self, task: asyncio.Task[str]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()

    async def _ready(self) -> str:
        async with self._slow:
            self._begin()
            self._look()
            value = self.current()
            if value is not None:
                return value
            grant = self._known.grant
            if grant is None or not self._known.was_refused(grant):
                return await self._renewed(None)
            if not self._in_vain(grant):
                return await self._renewed(grant.access_token)
            # Renewed a moment ago, and refused all the same: sent again as it is, for renewing it changes nothing.
            self._known.pardon(grant)
            value = self.current()
            return value if value is not None else await self._renewed(None)

    async def _unauthorized(self, used: str, challenge: Bearer | None) -> str:
        token = _token(used)
        async with self._slow:
            self._begin()
            self._too_early(token)
            if challenge is not None and challenge.scope:
                self._step_ups.also(challenge.scope)
            if self._known.found is None:
                await self._discover(challenge)
            if token:
                self._known.refuse(token)
            self._look()
            value = self.current()
            if value and value != used:
                return value  # another process was here first, or the grant was there all along
            grant = self._known.grant
            if token and grant is not None and grant.access_token == token and self._in_vain(grant):
                return await self._fresh_and_refused(token, challenge)
            return await self._renewed(token or None, challenge)

    def _in_vain(self, grant: Grant) -> bool:
        """True where renewing once more changes nothing: the token was fetched a moment ago in place of another that was refused.

        A server that has taken a token of this issuer before may also revoke two in a row: then it is tried a few times.
        """
        age = self._known.now() - grant.obtained_at
        if not grant.after_rejection or age >= self.shared.timing.knock_seconds:
            return False
        now = time.monotonic()
        self._at_once = [each for each in self._at_once if now - each < AT_ONCE_SECONDS]
        if not self._taken_by_server or len(self._at_once) >= MAX_AT_ONCE:
            return True
        self._at_once.append(now)
        return False

    async def _fresh_and_refused(self, token: str, challenge: Bearer | None) -> str:
        """The server takes no token of this issuer, or not for this resource: perhaps it has moved to another."""
        before = self._known.id
        await self._discover(challenge)
        if self._known.id != before:
            return await self._renewed(None, challenge)
        raise self._rejected(token, challenge)

    def _just_signed_in(self, rejected: str) -> bool:
        """True where the token came from a sign-in of a moment ago and was never taken: another would bring another like it."""
        grant = self._known.grant
        if grant is None or grant.access_token != rejected or grant.refusal is not None:
            return False
        if _token(self._taken_by_server) == rejected:
            return False
        return self._known.now() - signed_in_at(grant) < SIGNED_IN_SECONDS

    def _rejected(self, token: str, challenge: Bearer | None) -> Fault:
        """The server will not take what its issuer gives: what the token says, and what was expected."""
        found = self._known.found
        assert found is not None
        why = wrong_audience(token, found.resource)
        if why is None:
            why = (challenge.error_description if challenge is not None else None) or "it gave no reason"
        why = self.mask(why)[:400]
        if self._told_of != token:
            self._told_of = token
            self.shared.log.write("token-rejected", host_of(found), why, (token,))
        return signing_words.rejected(self.server, self.url, why)

    async def _step_up(self, used: str, challenge: Bearer | None) -> str:
        """403 with insufficient_scope: a sign-in for what is granted already and what is asked for now, together."""
        asked = union((challenge.scope if challenge is not None else None) or ())
        async with self._slow:
            self._begin()
            self._look()
            if self._known.found is None:
                await self._discover(challenge)
            value = self.current()
            if value and value != used:
                return value
            grant, shown = self._known.grant, self.mask(" ".join(asked))[:200]
            await self._not_too_often(asked, shown)
            if self._step_ups.another(asked, grant):
                granted = grant is not None and set(asked) <= set(grant.scope)
                raise signing_words.scopes_in_vain(self.server, shown, granted=granted)
            if self.settings.flow == "client-credentials":
                return await self._renewed(_token(used), challenge)
            why = f"the server wants wider consent for this call: {shown or 'scopes that it does not name'}"
            return await self._sign_in(why, slug="insufficient-scope")

    async def _not_too_often(self, asked: tuple[str, ...], shown: str) -> None:
        """Raises Fault where the server asks for other scopes with each call. Counted on disk, for the whole machine."""
        assert self._known.id is not None
        try:
            root, timing = self.shared.store.root, self.shared.timing
            seconds = await offers.step_up(root, self._known.id, timing, time.time(), asked)
        except StoreTrouble as trouble:
            raise words.not_kept(self.server, str(trouble)) from None
        if seconds > 0:
            raise signing_words.scopes_too_often(self.server, shown, seconds)

    # -- a token that is not good yet --------------------------------------------------------------------------------

    def _knock(self, grant: Grant) -> bool:
        """Whether it is sent all the same: once in a while, and always where the server has taken it before."""
        return _token(self._taken_by_server) == grant.access_token or self._early.may_knock(grant, self._known.now())

    def _held(self, grant: Grant) -> Fault:
        return words.held(self.server, grant, self._known.now(), self._early.seconds_left(grant))

    def _too_early(self, token: str) -> None:
        """A knock with a token that is not good yet was refused: that says nothing else. Raises Fault."""
        grant = self._known.grant
        if token and grant is not None and grant.access_token == token and held_back(grant, self._known.now()):
            if _token(self._taken_by_server) == token:
                self._taken_by_server = ""
                return  # it was good, so this refusal is about something else
            raise self._held(grant)

    # -- a fresh token -----------------------------------------------------------------------------------------------

    async def _renewed(self, rejected: str | None, challenge: Bearer | None = None, *, again: bool = True) -> str:
        """A fresh token's header. Raises Fault, with the address of a sign-in where nothing else helps.

        `again`: it may be tried once more, where the server turns out to have moved.
        """
        self._brake()
        found, id = self._known.found, self._known.id
        if found is None or id is None:
            return ""
        try:
            grant = await self._renew(id, found, rejected)
        except NeedLogin as need:
            self._look()
            # A server that takes its own issuer's token no longer may have moved to another since a moment ago.
            if again and (rejected is not None or self._is_stale()):
                if await self._has_moved(challenge, DISCOVERY_SECONDS):
                    return await self._renewed(None, challenge, again=False)
                if rejected is not None and self._just_signed_in(rejected):
                    raise self._rejected(rejected, challenge) from None
            self._look()
            value = self.current()
            if value and _token(value) != rejected:
                return value  # somebody has signed in since it was looked for
            return await self._sign_in(need.why)
        except Fault as fault:
            unusable = fault.slug in ("auth-unreachable", "auth-misconfigured")
            if (
                again
                and unusable
                and self._is_stale()
                and await self._has_moved(challenge, SECOND_LOOK_SECONDS, quiet=True)
            ):
                return await self._renewed(None, challenge, again=False)
            self._failed(fault)
            raise
        self._look()
        self._known.pardon(grant)
        if held_back(grant, self._known.now()) and not self._knock(grant):
            raise self._held(grant)
        return f"Bearer {grant.access_token}"

    async def _renew(self, id: str, found: Discovered, rejected: str | None) -> Grant:
        """One that is begun goes on to its end, whoever waits for it and whoever gives up."""
        if self.settings.flow == "client-credentials":
            scope = self._scope()
            work = obtain(self.shared, self.server, id, found, self.settings, scope, rejected=rejected)
        else:
            work = renew(
                self.shared, self.server, id, found, rejected=rejected, waited=True, settings=self.settings,
                presented=self._renewals.presented,
            )  # fmt: skip
        return await self._renewals.finished(work)

    async def _renew_ahead(self, grant: Grant) -> None:
        found, id = self._known.found, self._known.id
        if found is not None and id is not None:
            rejected = grant.access_token
            work = renew(
                self.shared, self.server, id, found, rejected=rejected, waited=False, settings=self.settings,
                presented=self._renewals.presented,
            )  # fmt: skip
            await self._renewals.finished(work)

    # -- how the server wants to be asked ----------------------------------------------------------------------------

    def _is_stale(self) -> bool:
        """What was kept from earlier may be out of date; a person's click must not be wasted on an old address."""
        return self._discovered_at is None or time.monotonic() - self._discovered_at > DISCOVERY_LASTS

    async def _has_moved(self, challenge: Bearer | None, seconds: float, *, quiet: bool = False) -> bool:
        """Whether a new discovery finds another issuer, resource or token endpoint. Raises Fault, unless `quiet`."""
        id, before = self._known.id, self._known.found
        try:
            await self._discover(challenge, seconds)
        except Fault:
            if not quiet:
                raise
            return False
        found = self._known.found
        assert found is not None
        return id != self._known.id or before is None or before.metadata.token_endpoint != found.metadata.token_endpoint

    def _begin(self) -> None:
        """A request begins to be worked on; only one is at a time."""
        self._until = time.monotonic() + TOGETHER_SECONDS

    def _left(self, seconds: float) -> float:
        """So many seconds, or what is left of the time for everything."""
        return max(min(seconds, self._until - time.monotonic()), 1.0)

    async def _discover(self, challenge: Bearer | None, seconds: float = DISCOVERY_SECONDS) -> None:
        """Ask the server and its authorization server how they want to be asked. Raises Fault."""
        self._brake()
        seconds = self._left(seconds)
        store, environ = self.shared.store, self.shared.environ
        try:
            issuer = bound_to(store, self.url, self.settings, environ)
            if issuer is None and self._known.found is not None:
                issuer = self._known.found.issuer
            found = await discover(self.shared.fetch, self.url, challenge, self.settings, seconds, prefer_issuer=issuer)
            check(store, found, self.settings, environ)  # before what was known is given up for it
        except RegistrationFailed as failure:
            raise words.misconfigured(self.server, failure.what.rstrip("."), self.url) from None
        except StoreTrouble as trouble:
            raise words.not_kept(self.server, str(trouble)) from None
        except DiscoveryFailed as failure:
            what = failure.what.rstrip(".")
            if failure.gone:
                raise words.gone(self.server, what) from None
            if not failure.unreachable:
                raise words.misconfigured(self.server, what, self.url) from None
            kept = self._known.grant is not None
            fault = words.wait(self.server, what, self.shared.timing.knock_seconds, kept=kept)
            self._failed(fault)
            raise fault from None
        for remark in found.remarks:
            self.shared.say(f"{self.server}: {self.mask(remark)}")
        self._discovered_at = time.monotonic()
        try:
            store.remember(found, override=self.settings.resource)
            self._known.settle(found)
        except StoreTrouble as trouble:
            raise words.not_kept(self.server, str(trouble)) from None

    def _failed(self, fault: Fault) -> None:
        if fault.slug == "auth-unreachable" or self.settings.flow == "client-credentials":
            self._outage = (time.monotonic(), fault)

    def _brake(self) -> None:
        """An authorization server that is down is not asked by every call of every tool. Raises Fault."""
        if self._outage is None:
            return
        at, fault = self._outage
        left = at + self.shared.timing.knock_seconds - time.monotonic()
        if left > 0:
            # A new one each time: whoever catches it may add to it.
            wait = round(max(left, 1.0), 1) if fault.wait_seconds is not None else None
            raise Fault(
                fault.slug, fault.message, stage=fault.stage, verdict=fault.verdict, server=fault.server, retry=fault.retry,
                wait_seconds=wait,
            )  # fmt: skip
        self._outage = None

    def _look(self) -> None:
        """Raises Fault where the store cannot be read."""
        self._known.look()
        if self._known.trouble is not None:
            raise words.not_kept(self.server, str(self._known.trouble))

    def _taken(self) -> None:
        if self._known.header():
            self._outage = None
        self._ahead.plan()

    # -- a person ----------------------------------------------------------------------------------------------------

    def _scope(self) -> tuple[str, ...]:
        return self._step_ups.scope(self._known.found, self._known.grant, self.settings)

    async def _sign_in(self, why: str, slug: str = "login-needed") -> str:
        """Tell the caller that a person has to act: the same address for every process of this machine. Raises Fault.

        Returns the header's value where the grant has come in this very moment.
        """
        found, id, grant = self._known.found, self._known.id, self._known.grant
        assert found is not None
        assert id is not None
        if self.settings.flow == "client-credentials":
            raise words.misconfigured(self.server, why, self.url)  # there is nobody to sign in
        if grant is None:
            why += self._moved(found)
        if not self.shared.offers:
            raise signing_words.elsewhere(self.server, self.mask(why), slug)
        try:
            offer = await self.shared.logins.offer(
                id, found, self.settings, self.shared.environ, scope=self._scope(),
                seconds=self._left(DISCOVERY_SECONDS),
                seen=grant.generation if grant is not None else 0,
            )  # fmt: skip
        except RegistrationFailed as failure:
            what = failure.what.rstrip(".")
            if failure.unreachable:
                outage = words.wait(self.server, what, self.shared.timing.knock_seconds, kept=grant is not None)
                self._failed(outage)
                raise outage from None
            raise words.misconfigured(self.server, what, self.url) from None
        except Fault as fault:
            if fault.server is None:
                fault.server, fault.message = self.server, f"{self.server}: {fault.message}"
            raise
        if offer.grant is not None:
            self._look()
            return f"Bearer {offer.grant.access_token}"
        if not self._closed:
            self._watch.begin(lambda: self.available())
        if not offer.url:
            raise signing_words.unfinished(self.server, self.url, (offer.snoozed_until or 0.0) - time.time())
        code = f" and enter the code {offer.user_code}" if offer.user_code else ""
        self.shared.say(f"{self.server}: sign in at {offer.url}{code}")
        raise signing_words.sign_in(self.server, offer.url, code, self.mask(why), slug)

    def _moved(self, found: Discovered) -> str:
        with contextlib.suppress(StoreTrouble):
            former = former_issuer((each for _id, each in self.shared.store.all()), found)
            if former is not None:
                return f"; {sentence(former, found)}"
            other = neighbour((each for _id, each in self.shared.store.all()), found)
            return f"; {not_for_this(other, found)}" if other is not None else ""
        return ""

    # -- beginning and end -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Keep the grant alive from now on, whether the server is used or not."""
        self._ahead.plan()

    def leave(self) -> None:
        """This process ends: who waits is told so, and nothing is asked any more, but for a refresh whose token has left."""
        self._closed = True
        for task in self._tasks:
            task.cancel()
        self._renewals.cut()

    async def close(self) -> None:
        """A refresh whose token has left may finish, for a moment: what it brings is the machine's. Everything else ends."""
        self.leave()
        ahead = self._ahead.close()
        tasks = [task for task in (*self._tasks, self._watch.task, ahead) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._renewals.close()


def _token(header: str) -> str:
    return header.removeprefix("Bearer ")
