"""One sign-in, from the question whether it is needed at all to what was granted."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shlex
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace

from interlock.cli.exit_codes import CONFIGURATION, NEVER_REACHED, OF_VERDICT, OK, WAIT
from interlock.cli.output import complain
from interlock.cli.remote import Target, command
from interlock.doctor.probe import Prober, Unreached, sent_headers
from interlock.doctor.times import until
from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.upstream.oauth.challenge import Bearer, bearer
from interlock.upstream.oauth.client_credentials import obtain
from interlock.upstream.oauth.client_of import preset_of
from interlock.upstream.oauth.discovery import DiscoveryFailed, discover, no_mcp_server
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.flow_note import read_note
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_ids import filed_under
from interlock.upstream.oauth.issuer_binding import allowed, bound_to, check
from interlock.upstream.oauth.moved import former_issuer, neighbour, not_for_this, sentence
from interlock.upstream.oauth.offer import Offer
from interlock.upstream.oauth.refresh import NeedLogin, renew, usable
from interlock.upstream.oauth.registration import RegistrationFailed
from interlock.upstream.oauth.scopes import union, wanted
from interlock.upstream.oauth.shared import Shared

ASK_SECONDS = 15.0
"""For the server's answer to a first request."""
STEP_SECONDS = 25.0
"""For discovery, for a registration, and for a code that was pasted."""
QUIET_SECONDS = 3.0
"""A person who waits for a server longer than this is told so."""
LOOK_SECONDS = 0.2


_OPEN = "it takes requests without a sign-in, so there is nothing to do."
_OF_A_CALL = re.compile(r" The server did not (?:act on|get) the request(?:, and the grant is (?:kept|intact))?\.")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of it: an exit code, and lines for people. Never a token."""

    server: str
    code: int
    lines: tuple[str, ...]
    grant: Grant | None = None
    url: str | None = None
    token: bool = False
    """A personal access token that the server takes."""

    def as_dict(self) -> Mapping[str, object]:
        """For `--json`."""
        grant = self.grant
        return {
            "server": self.server,
            "loggedIn": self.code == OK and (grant is not None or self.token),
            "message": " ".join(self.lines),
            "authorizeUrl": self.url,
            "resource": grant.resource if grant is not None else None,
            "issuer": grant.issuer if grant is not None else None,
            "scopes": list(grant.scope) if grant is not None else None,
            "expiresAt": grant.expires_at if grant is not None else None,
            "renewable": grant.refresh_token is not None if grant is not None else None,
        }


class SignIn:
    """For one server. `seconds`: how long a person is waited for."""

    def __init__(self, target: Target, shared: Shared, *, device: bool, again: bool, seconds: float) -> None:
        settings = target.transport.oauth or OAuth()
        self._target = target
        self._shared = shared
        self._settings = replace(settings, flow="device") if device else settings
        self._again = again
        self._seconds = seconds
        self._offer: Offer | None = None

    def left_open(self, *, same_flags: bool) -> str:
        """What to say to a person who stops waiting."""
        offer, name = self._offer, self._target.name
        if offer is None:
            return "stopped; no sign-in was opened."
        again = command("login", name) + (" with the same flags" if same_flags else "")
        if offer.user_code is not None:
            return f"stopped waiting. The code stays good for a while: {again}, with --device, goes on with it."
        if not offer.mine:
            return "stopped waiting. Another Interlock process listens for the sign-in, so the address still works."
        return (
            f"stopped waiting, so nobody listens for the sign-in now. The same address works again once {again} runs, or a call "
            f"through Interlock needs it. Or finish it with `interlock login {shlex.quote(name)} --paste ADDRESS`: the address that "
            "the browser ended at."
        )

    async def run(self) -> Outcome:
        """The whole sign-in. Raises nothing but cancellation."""
        status = 0
        try:
            status, challenge = await self._asked()
            found = await self._discover(challenge)
            if await self._needs_nobody(status, found):
                return self._said(OK, _OPEN)
            for remark in found.remarks:
                complain(f"{self._target.name}: {remark}")
            id = self._id(found)
            before = self._shared.store.read(id)
            if before is None:
                self._tell_of_a_move(found)
            kept = None if self._again else await self._without_a_person(id, found, before)
            if kept is not None:
                return self._granted(kept, "already signed in" if kept is before else "signed in")
            return await self._with_a_person(id, found, before)
        except DiscoveryFailed as failure:
            if not failure.unreachable and 200 <= status < 300:
                return self._said(OK, _OPEN)
            return self._undiscovered(failure)
        except RegistrationFailed as failure:
            return self._said(WAIT if failure.unreachable else CONFIGURATION, failure.what)
        except Unreached as failure:
            return self._said(
                NEVER_REACHED, f"{failure}. {command('doctor bridge', self._target.name)} shows each step."
            )
        except Fault as fault:
            return self._failed(fault)

    async def paste(self, text: str) -> Outcome:
        """Finish the open login with the address that the browser ended at."""
        redirect = (await asyncio.to_thread(sys.stdin.readline)).strip() if text == "-" else text.strip()
        found = self._shared.store.recalled(self._target.url, self._settings.resource)
        try:
            if found is None or not allowed(self._settings, found.issuer):
                found = await self._discover((await self._asked())[1])
            return self._granted(await self._shared.logins.paste(self._id(found), redirect, STEP_SECONDS), "signed in")
        except DiscoveryFailed as failure:
            return self._undiscovered(failure)
        except RegistrationFailed as failure:
            return self._said(CONFIGURATION, failure.what)
        except Unreached as failure:
            return self._said(NEVER_REACHED, f"{failure}.")
        except Fault as fault:
            return self._failed(fault)

    # -- before anybody is asked

    async def _asked(self) -> tuple[int, Bearer | None]:
        """How the server answers a request without a sign-in. Raises Unreached, and DiscoveryFailed where it says 404."""
        with self._patiently(f"no answer yet; it has {ASK_SECONDS:g} s in all"):
            heard = await self._prober().first()
        if heard.nothing_there:
            raise no_mcp_server(self._target.url)
        return heard.status, bearer(heard.headers.get("www-authenticate"))

    def _prober(self) -> Prober:
        transport = self._target.transport
        headers = sent_headers(transport, self._shared.environ)
        return Prober(self._target.url, headers, transport.kind, ASK_SECONDS)

    async def _discover(self, challenge: Bearer | None) -> Discovered:
        with self._patiently("still asking how to sign in there"):
            shared, url, settings = self._shared, self._target.url, self._settings
            bound = bound_to(shared.store, url, settings, shared.environ)
            found = await discover(shared.fetch, url, challenge, settings, STEP_SECONDS, prefer_issuer=bound)
        check(shared.store, found, settings, shared.environ)
        self._shared.store.remember(found, override=self._settings.resource)
        return found

    @contextlib.contextmanager
    def _patiently(self, what: str) -> Iterator[None]:
        """Say `what` where it takes longer than a person takes for normal."""
        said = asyncio.get_running_loop().call_later(QUIET_SECONDS, complain, f"{self._target.name}: {what}")
        try:
            yield
        finally:
            said.cancel()

    async def _needs_nobody(self, status: int, found: Discovered) -> bool:
        """True for a server that speaks to anybody, and publishes nothing about signing in."""
        told = not found.conventional or found.metadata.code_challenge_methods_supported is not None
        if told or status in (401, 403):
            return False
        return (await self._prober().speak()).era != "unsettled"

    def _tell_of_a_move(self, found: Discovered) -> None:
        former = former_issuer((grant for _id, grant in self._shared.store.all()), found)
        if former is not None:
            complain(f"{self._target.name}: {sentence(former, found)}.")
            return
        other = neighbour((grant for _id, grant in self._shared.store.all()), found)
        if other is not None:
            complain(f"{self._target.name}: {not_for_this(other, found)}.")

    def _id(self, found: Discovered) -> str:
        return filed_under(found, preset_of(self._settings, self._shared.environ))

    async def _without_a_person(self, id: str, found: Discovered, before: Grant | None) -> Grant | None:
        """The grant that is there, renewed where it has to be. None where only a login helps. Raises Fault."""
        name = self._target.name
        if self._settings.flow == "client-credentials":
            return await obtain(
                self._shared, name, id, found, self._settings, wanted(found, self._settings), rejected=None
            )
        if before is None or before.state == "dead":
            return None
        rejected = None
        if usable(before, time.time() + before.skew):
            with contextlib.suppress(Unreached):
                if (await self._prober().first(f"Bearer {before.access_token}")).status != 401:
                    return before
            rejected = before.access_token
        try:
            return await renew(self._shared, name, id, found, rejected=rejected, waited=True, settings=self._settings)
        except NeedLogin:
            return None
        except Fault as fault:
            if fault.slug == "grant-refused":
                return None  # a person is here: no grace is needed before they are asked
            raise

    # -- a person

    async def _with_a_person(self, id: str, found: Discovered, before: Grant | None) -> Outcome:
        if self._settings.flow == "client-credentials":
            grant = await obtain(
                self._shared, self._target.name, id, found, self._settings, wanted(found, self._settings),
                rejected=before.access_token if before is not None else None,
            )  # fmt: skip
            return self._granted(grant, "signed in")
        scope = wanted(found, self._settings)
        if before is not None and not self._again and not self._settings.scopes:
            scope = union(scope, before.scope)  # what wider calls have asked for since stays granted
        since = before.generation if before is not None else 0
        offer = await self._shared.logins.offer(
            id, found, self._settings, self._shared.environ, scope=scope, seconds=STEP_SECONDS, by_hand=True
        )
        if offer.grant is not None:
            return self._granted(offer.grant, "signed in")
        self._offer = offer
        self._invite(offer)
        landed: Grant | None = None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._seconds):
                landed = await self._landed(id, since, offer)
        if landed is not None:
            return self._granted(landed, "signed in")
        return Outcome(
            self._target.name, WAIT,
            (
                f"{self._target.name}: not signed in: the sign-in was not finished. "
                f"{command('login', self._target.name)} offers it again.",
            ),
            url=offer.url,
        )  # fmt: skip

    def _invite(self, offer: Offer) -> None:
        name = self._target.name
        if offer.user_code is not None:
            complain(f"{name}: open {offer.url} at any browser and enter the code {offer.user_code}")
        else:
            complain(f"{name}: sign in at {offer.url}")
            if sys.stdin.isatty():
                complain("or paste the address here that the browser ended at, if it could not come back by itself")
        complain("waiting (Ctrl-C stops waiting)")

    async def _landed(self, id: str, since: int, offer: Offer) -> Grant | None:
        """The grant that the login brings, whoever redeems it. None where the login ends without one."""
        async with _pasted(wanted=offer.user_code is None and sys.stdin.isatty()) as lines:
            stamp = self._shared.store.stamp(id)
            gone = False
            while True:
                line = ""
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_SECONDS):
                        line = await lines.get()
                if line and (grant := await self._redeemed(id, line)) is not None:
                    return grant
                if gone or self._shared.store.stamp(id) != stamp:
                    stamp = self._shared.store.stamp(id)
                    grant = self._shared.store.read(id)
                    if grant is not None and grant.generation > since and grant.state == "live":
                        return grant
                    if gone:
                        return None
                # Looked at before the grant is: whoever ends a login stores its grant first.
                gone = read_note(self._shared.store.root, id) is None

    async def _redeemed(self, id: str, line: str) -> Grant | None:
        """A pasted address. What is wrong with it is said, and the login stays open."""
        try:
            return await self._shared.logins.paste(id, line, STEP_SECONDS)
        except Fault as fault:
            complain(self._words(fault))
            return None

    # -- what is said

    def _granted(self, grant: Grant, how: str) -> Outcome:
        now = time.time() + grant.skew
        lines = [f"{self._target.name}: {how} at {grant.issuer}"]
        lines.append(f"  scopes   {' '.join(grant.scope) or 'those that the server gives without being asked'}")
        end = "the server does not say" if grant.expires_at is None else until(grant.expires_at, now)
        renewed = (
            ", renewed by itself" if grant.refresh_token is not None else ", and cannot be renewed without a person"
        )
        if self._settings.flow == "client-credentials":
            renewed = ", renewed by itself"
        lines.append(f"  ends     {end}{renewed}")
        if grant.refresh_expires_at is not None:
            lines.append(f"  sign in  again {until(grant.refresh_expires_at, now)} where it was not used until then")
        return Outcome(self._target.name, OK, tuple(lines), grant)

    def _undiscovered(self, failure: DiscoveryFailed) -> Outcome:
        if failure.gone:
            return self._said(NEVER_REACHED, failure.what)
        return self._said(WAIT if failure.unreachable else CONFIGURATION, failure.what)

    def _failed(self, fault: Fault) -> Outcome:
        return Outcome(self._target.name, _code(fault), (self._words(fault),), url=fault.authorize_url)

    def _words(self, fault: Fault) -> str:
        """Without what only a call wants to know: here there is no request that may have had an effect."""
        text = _OF_A_CALL.sub("", fault.message)
        return text if fault.server is not None else f"{self._target.name}: {text}"

    def _said(self, code: int, text: str) -> Outcome:
        return Outcome(self._target.name, code, (f"{self._target.name}: {text}",))


def _code(fault: Fault) -> int:
    if fault.slug == "auth-misconfigured":
        return CONFIGURATION
    return OF_VERDICT.get(fault.verdict.value, WAIT)


@contextlib.asynccontextmanager
async def _pasted(*, wanted: bool) -> AsyncIterator[asyncio.Queue[str]]:
    """Lines that a person pastes at the terminal, without blocking anything. Nothing is read where none is wanted."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def read() -> None:
        for line in sys.stdin:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(lines.put_nowait, line.strip())

    if wanted:
        # A daemon: a read from a terminal cannot be interrupted, and must not keep the process.
        threading.Thread(target=read, name="pasted", daemon=True).start()
    yield lines
