"""One refresh for the machine: under the grant's lock, from what is on disk, with every ending of it kept there.

A refresh token is good once: who presents it a second time may burn the grant for all. So the token is marked as presented
before it leaves, and whoever comes next, after a crash too, knows. A refusal is not at once believed (login is spent last).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import msgspec

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.upstream.evidence import retry_after
from interlock.upstream.oauth import refresh_words as words
from interlock.upstream.oauth.client_auth import signed
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Answer, FetchFailed
from interlock.upstream.oauth.grant import Grant, Refusal, Registration
from interlock.upstream.oauth.grant_store import Busy, Held, StoreTrouble, token_hash
from interlock.upstream.oauth.ground import host_of
from interlock.upstream.oauth.issuer_binding import hold
from interlock.upstream.oauth.refresh_words import clock, misconfigured
from interlock.upstream.oauth.refusal import Class, classify, may_wipe
from interlock.upstream.oauth.registration import RegistrationFailed, register
from interlock.upstream.oauth.server_clock import skew_at_issue
from interlock.upstream.oauth.shared import Shared
from interlock.upstream.oauth.tokens import BadTokenAnswer, TokenRefused, grant_from, read_answer

TOKEN_SECONDS = 15.0
"""Of one turn at the token endpoint, a second try within it included. Less than another process waits for the lock."""
SECOND_TRY_SECONDS = 2.0
"""With less left of the turn, a lost answer is not asked for again."""
LOCK_SECONDS = 20.0
MARGIN_SECONDS = 5.0
"""An access token with less than that to live is not sent any more: it could expire on its way."""
RETRY_NOW_SECONDS = 1.0
"""After the first refusal as too early, the door may be knocked at again so soon: the clocks may differ by a second."""
UNKNOWN_LIFE_SECONDS = 86400.0
"""So often a grant is renewed of which nobody says how long it lives: an unused session must not rot."""
EARLY_SECONDS = 2.0
"""So long past its `nbf`, a refresh token may still be early: a `Date` has whole seconds, and clocks differ a little."""
CLOCK_SET_BACK = 5.0
MAX_RETRY_AFTER = 120.0
"""The longest pause that an authorization server may ask for with `Retry-After`."""


class NeedLogin(Exception):
    """Nothing that a program can do gets a token. `why` is for people."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def usable(grant: Grant, now: float) -> bool:
    """True where the access token may be sent. `now` is on the server's clock."""
    return _lives(grant, now) and not held_back(grant, now)


def held_back(grant: Grant, now: float) -> bool:
    """True where the access token is good only from later on (its `nbf`).

    It must have lain ahead when the token was issued, by the same clock: else this machine's clock was set since, and who
    waited for it would wait for nothing.
    """
    begins = grant.not_before
    return grant.access_token is not None and begins is not None and begins > max(now, grant.obtained_at) + 1.0


def _lives(grant: Grant, now: float) -> bool:
    if grant.access_token is None:
        return False
    if grant.expires_at is None:
        return True
    life = max(grant.expires_at - grant.obtained_at, 0.0)
    return now < grant.expires_at - min(MARGIN_SECONDS, life / 4)


def refresh_at(grant: Grant, lead: float) -> float | None:
    """When to refresh ahead of need, on the server's clock. None: never by itself.

    What nobody waits for waits for the refresh token's own `nbf`; a short-lived token is renewed in its last quarter.
    """
    if grant.refresh_token is None or grant.state == "dead":
        return None
    times = []
    if grant.expires_at is not None:
        life = max(grant.expires_at - grant.obtained_at, 0.0)
        times.append(grant.expires_at - min(lead, life / 4))
    if grant.refresh_expires_at is not None and grant.refresh_expires_at > grant.obtained_at:
        # An unused session must not rot: the refresh token itself is renewed before it dies.
        life = max(grant.refresh_expires_at - grant.obtained_at, 0.0)
        times.append(grant.refresh_expires_at - min(max(lead, life / 4), life / 2))
    if not times:
        times.append(grant.obtained_at + UNKNOWN_LIFE_SECONDS)
    return max(min(times), grant.refresh_not_before + EARLY_SECONDS + 1.0 if grant.refresh_not_before else 0.0)


async def renew(
    shared: Shared,
    server: str,
    id: str,
    found: Discovered,
    *,
    rejected: str | None,
    waited: bool,
    settings: OAuth | None = None,
    presented: Callable[[], None] = lambda: None,
) -> Grant:
    """A grant whose access token is not `rejected` and lives (its `nbf` may lie ahead). Raises Fault or NeedLogin.

    `waited`: a caller waits for it, so that a refusal may be risked; else an early refresh is left for later. `settings`
    name a configured client, whose secret may have changed since the sign-in. `presented` is called before the refresh token
    leaves: until then nothing is lost by a cancellation.
    """
    try:
        shared.reached("refresh-begins")
        async with shared.store.locked(id, LOCK_SECONDS) as held:
            shared.reached("refresh-locked")
            turn = _Turn(shared, server, found, held, settings, presented)
            fresh = await turn.take(rejected, waited=waited)
            shared.reached("refresh-done")
        shared.reached("refresh-unlocked")
        return fresh
    except Busy:
        raise words.wait(
            server, "another process of this machine has been renewing the grant for too long", shared.timing.knock_seconds
        ) from None  # fmt: skip
    except StoreTrouble as trouble:
        raise words.not_kept(server, str(trouble)) from None


class _Turn:
    """What one holder of the lock does with the grant."""

    def __init__(
        self,
        shared: Shared,
        server: str,
        found: Discovered,
        held: Held,
        settings: OAuth | None,
        presented: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._presented = presented
        self._shared = shared
        self._server = server
        self._found = found
        self._held = held

    async def take(self, rejected: str | None, *, waited: bool) -> Grant:
        grant = self._held.read()
        if grant is None:
            raise NeedLogin("this machine has no grant for it yet")
        now = time.time() + grant.skew
        if _lives(grant, now) and (rejected is None or grant.access_token != rejected):
            return grant  # somebody else was here first
        if grant.refresh_token is None:
            raise NeedLogin("the access token is no longer good, and there is no refresh token")
        if grant.state == "dead":
            raise NeedLogin(words.last_words(grant, "the authorization server has ended the grant"))
        early = grant.refresh_not_before is not None and grant.refresh_not_before > now - EARLY_SECONDS
        if early and not waited:
            raise words.early(self._server, grant, now)
        self._brake(grant, now, early=early)
        grant = await self._as_configured(grant)
        return await self._present(grant, after_rejection=rejected is not None and waited, early=early)

    async def _as_configured(self, grant: Grant) -> Grant:
        """With the secret that a configured client has now. Raises Fault where it belongs to another authorization server."""
        before = grant.registration
        if self._settings is None or before.source != "preset":
            return grant
        try:
            hold(self._shared.store, self._found, self._settings, self._shared.environ)
        except RegistrationFailed as failure:
            raise misconfigured(self._server, failure.what.rstrip("."), self._found.server_url) from None
        with contextlib.suppress(RegistrationFailed):
            # Asks nobody: it is in the settings and the environment.
            now = await register(
                self._shared.fetch,
                self._found,
                self._settings,
                self._shared.environ,
                before.redirect_uri,
                TOKEN_SECONDS,
            )
            if now.source == "preset" and now.client_id == before.client_id:
                return msgspec.structs.replace(grant, registration=now)
        return grant

    def _brake(self, grant: Grant, now: float, *, early: bool) -> None:
        """The door was knocked at a moment ago, by whichever process: nobody knocks again so soon. Raises Fault."""
        knock, refusal = self._shared.timing.knock_seconds, grant.refusal
        if grant.unanswered_at is not None and -MAX_RETRY_AFTER <= now - grant.unanswered_at < knock:
            left = knock - (now - grant.unanswered_at)
            what = f"the authorization server {self._found.issuer} could not be asked a moment ago"
            raise words.wait(self._server, what, left)
        if refusal is None:
            return
        first = early and refusal.kind == Class.EARLY.value and refusal.count == 1
        if 0 <= now - refusal.last_at < (min(RETRY_NOW_SECONDS, knock) if first else knock):
            raise self._refused(grant, refusal, now)

    async def _present(self, grant: Grant, *, after_rejection: bool, early: bool) -> Grant:
        """Send the refresh token, at most twice: once more where the answer was lost and the server may still have it."""
        shared, held, found = self._shared, self._held, self._found
        token = grant.refresh_token
        assert token is not None
        ends = time.monotonic() + TOKEN_SECONDS
        while True:
            lost = grant.state == "spent"
            # On disk before it leaves: a crash from here on is known as `spent, answer lost`.
            spent = held.write(
                msgspec.structs.replace(
                    grant, state="spent", presented_at=time.time() + grant.skew, presented_again=lost, unanswered_at=None
                )
            )  # fmt: skip
            self._presented()
            shared.reached("refresh-marked")
            # What the server then sends has a place, also on a disk that fills up meanwhile.
            held.reserve()
            shared.reached("refresh-asking")
            try:
                answer = await self._ask(grant, ends - time.monotonic())
                shared.reached("refresh-answered")
                tokens = read_answer(answer, _secrets(grant))
            except FetchFailed as failure:
                # Where nothing left, it is as it was before, `spent` included.
                grant = spent if failure.sent else grant
                if failure.sent:
                    shared.log.write("refresh-answer-lost", host_of(found), failure.what, _secrets(grant))
                    if not lost and not failure.timeout and ends - time.monotonic() > SECOND_TRY_SECONDS:
                        continue
                held.write(msgspec.structs.replace(grant, unanswered_at=time.time() + grant.skew))
                raise words.unreachable(self._server, found, failure.what, shared.timing.knock_seconds) from None
            except (TokenRefused, BadTokenAnswer) as refusal:
                pause = _asked_to_wait(answer)
                raise self._no(msgspec.structs.replace(spent, state=grant.state), refusal, pause, early=early) from None
            shared.reached("refresh-read")
            skew = skew_at_issue(answer, tokens, time.time(), grant.skew)
            made = grant_from(
                tokens, found=found, registration=grant.registration, asked_scope=grant.scope, now=time.time(), skew=skew,
                previous=grant,
            )  # fmt: skip
            fresh = held.write(
                msgspec.structs.replace(made, after_rejection=after_rejection, signed_in_at=signed_in_at(grant))
            )
            shared.reached("refresh-stored")
            shared.log.write("refreshed", host_of(found), _what(fresh), (*_secrets(grant), *_secrets(fresh)))
            note_skew(shared, found, skew)
            return fresh

    async def _ask(self, grant: Grant, seconds: float) -> Answer:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": grant.refresh_token or "",
            # Also on refresh, whether the server supports it or not (2026-07-28, authorization: Resource Parameter).
            "resource": grant.resource,
        }
        return await post_token(self._shared, self._found, form, grant.registration, seconds)

    def _no(
        self, grant: Grant, error: TokenRefused | BadTokenAnswer, pause: float, *, early: bool
    ) -> Fault | NeedLogin:
        """What follows from a refusal: what is kept, what is wiped, and what the caller is told. `pause` is the server's wish."""
        shared, held, found = self._shared, self._held, self._found
        kind, now = classify(error, early=early), time.time() + grant.skew
        word = error.error if isinstance(error, TokenRefused) else "no OAuth answer"
        text = error.description if isinstance(error, TokenRefused) else str(error)
        shared.log.write(
            "refresh-refused", host_of(found), f"{kind.value}: {words.quoted(word, text)}", _secrets(grant)
        )
        if kind in (Class.BUSY, Class.OUTAGE):
            # An OAuth error leaves the token as good as it was; an answer that cannot be read may have held the next one.
            state = "spent" if isinstance(error, BadTokenAnswer) else grant.state
            knock = shared.timing.knock_seconds
            until = now + max(pause - knock, 0.0)
            held.write(msgspec.structs.replace(grant, state=state, presented_at=now, unanswered_at=until))
            what = f"it answered {words.quoted(word, text)}"
            return words.unreachable(self._server, found, what, max(pause, knock))
        refusal = _continued(grant.refusal, kind, now, word, text)
        over = self._stood(grant, refusal, kind, now) and isinstance(error, TokenRefused)
        state = "dead" if over else "refused" if kind is Class.GRANT else grant.state
        if kind is Class.EARLY and grant.state == "refused":
            state = "live"
        kept = held.write(msgspec.structs.replace(grant, state=state, refusal=refusal, unanswered_at=None))
        shared.reached("refresh-refusal-kept")
        if not over:
            return self._refused(kept, refusal, now)
        registration = grant.registration
        if "registration" in may_wipe(kind) and registration.source == "dynamic":
            shared.store.drop_registration(registration.issuer, registration.client_id)
            why = (
                "the authorization server does not know this client any more; it is registered anew at the next sign-in"
            )
            return NeedLogin(words.last_words(kept, why))
        return NeedLogin(words.last_words(kept, "the authorization server has refused the grant for good"))

    def _stood(self, grant: Grant, refusal: Refusal, kind: Class, now: float) -> bool:
        """Whether the refusal is believed: only a sign-in helps. Never where no sign-in could."""
        if kind is Class.EARLY or (kind is Class.CLIENT and grant.registration.source == "preset"):
            return False
        if kind is Class.GRANT and _outlived(grant, now):
            return True  # the token itself says that it is over, and the server agrees: no grace
        ends = grant.registration.secret_expires_at
        if kind is Class.CLIENT and ends is not None and ends <= now:
            return True  # so does the client's secret (RFC 7591, client_secret_expires_at)
        return refusal.count > 1 and now - refusal.first_at >= self._shared.timing.grace_seconds

    def _refused(self, grant: Grant, refusal: Refusal, now: float) -> Fault:
        """The caller's answer to a refusal that stands, whoever met with it."""
        timing, server = self._shared.timing, self._server
        if refusal.kind == Class.EARLY.value:
            return words.early(server, grant, now)
        if refusal.kind == Class.GRANT.value or (
            refusal.kind == Class.CLIENT.value and grant.registration.source != "preset"
        ):
            return words.refused(server, grant, refusal, now, timing.grace_seconds, timing.knock_seconds)
        said = words.quoted(refusal.error, refusal.description)
        if refusal.kind == Class.CLIENT.value:
            what = f"does not accept the client id or secret that is configured ({said})"
        else:
            what = f"refused to renew the grant ({said})"
        return misconfigured(server, f"the authorization server {self._found.issuer} {what}")


def _outlived(grant: Grant, now: float) -> bool:
    """Whether the refresh token is past its own `exp`. One that was past it when it came shows a wrong clock, and nothing else."""
    ends = grant.refresh_expires_at
    return ends is not None and grant.obtained_at < ends <= now


def _continued(before: Refusal | None, kind: Class, now: float, word: str, text: str) -> Refusal:
    """The refusal with those of the same kind before it: of this very token, for a renewed grant begins without any."""
    same = before is not None and before.kind == kind.value and before.last_at <= now + CLOCK_SET_BACK
    return Refusal(
        first_at=before.first_at if before is not None and same else now,
        last_at=now,
        count=(before.count if before is not None and same else 0) + 1,
        error=word,
        description=text,
        kind=kind.value,
    )


def signed_in_at(grant: Grant) -> float:
    """When a person last signed in for this grant, on the server's clock: the same value over all its refreshes."""
    return grant.signed_in_at if grant.signed_in_at is not None else grant.obtained_at


async def post_token(
    shared: Shared, found: Discovered, form: dict[str, str], registration: Registration, seconds: float
) -> Answer:
    """A token request, with the client's own authentication (RFC 6749, 2.3.1). Raises FetchFailed."""
    endpoint = found.metadata.token_endpoint
    if endpoint is None:
        raise FetchFailed("its metadata names no token endpoint", sent=False)
    signed_form, basic = signed(registration, form)
    return await shared.fetch.post_form(endpoint, signed_form, seconds, basic)


def _asked_to_wait(answer: Answer) -> float:
    """Seconds of `Retry-After`, within reason; 0 where nothing is asked."""
    value = answer.headers.get("retry-after", "")
    return min(retry_after({b"retry-after": value.encode("latin-1", "replace")}) or 0.0, MAX_RETRY_AFTER)


def _secrets(grant: Grant) -> tuple[str, ...]:
    given = (grant.refresh_token, grant.access_token, grant.registration.client_secret)
    return tuple(each for each in given if each)


def _what(grant: Grant) -> str:
    until = "unknown" if grant.expires_at is None else clock(grant.expires_at)
    return f"generation {grant.generation}, access token good until {until} on the server's clock"


def note_skew(shared: Shared, found: Discovered, skew: float) -> None:
    """Write into grant.log that the clocks differ by more than half a minute: once an hour for a resource, for a server whose
    `Date` jumps about would fill the log."""
    if abs(skew) > 30 and shared.may_say_skew(found.resource):
        side = "behind" if skew > 0 else "ahead of"
        shared.log.write(
            "clock-skew", host_of(found),
            f"this machine's clock is {abs(skew):.0f} s {side} the server's; times are judged on the server's. Cure: NTP",
        )  # fmt: skip


__all__ = ["NeedLogin", "clock", "misconfigured", "post_token", "refresh_at", "renew", "token_hash", "usable"]
