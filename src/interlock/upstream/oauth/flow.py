"""Logins by a person: one for a grant and machine, offered by every process with the same URL. No call ever waits for it.

The bound callback port decides who owns a login; the note beside the grant only carries the URL and the verifiers. A login's
owner listens (listening.py). Everybody else watches the owner, and the first to see it die goes on in its place, so that a
click on an old link still lands. Opening and taking over are done under a kernel lock, which dies with its process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from interlock.manifest.config import OAuth
from interlock.model.deadline import Deadline
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.oauth import identity, offers
from interlock.upstream.oauth.authorize_request import NoEndpoint
from interlock.upstream.oauth.callback import Listener, PortBusy
from interlock.upstream.oauth.device import DeviceLogins
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Fetcher
from interlock.upstream.oauth.flow_note import FlowNote, key_of, read_note
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_log import GrantLog
from interlock.upstream.oauth.grant_store import GrantStore
from interlock.upstream.oauth.ground import Busy, Ground, host_of
from interlock.upstream.oauth.identity import Identity, Stranger
from interlock.upstream.oauth.listening import OpenLogin
from interlock.upstream.oauth.offer import Offer
from interlock.upstream.oauth.offers import Standing
from interlock.upstream.oauth.paste import redeem_pasted
from interlock.upstream.oauth.ports import PortTaken, owner_of, owner_pid
from interlock.upstream.oauth.redeem import TOKEN_SECONDS
from interlock.upstream.oauth.takeover import left_behind, may_go_on, ports_for, served, tidy
from interlock.upstream.oauth.timing import Timing

__all__ = ["Logins", "Offer", "PortTaken", "Timing"]

_FREED_SECONDS = 0.5
"""For so long, a port that its finished owner was asked to let go is waited for."""
_POLL_SECONDS = 0.02
_HEIR_PAUSE = 0.5
_HEIR_LOCK_SECONDS = 30.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Live:
    """A login that somebody listens for; `own` where that is this process."""

    note: FlowNote
    own: OpenLogin | None


class Logins:
    """One for a process. Belongs to one event loop."""

    def __init__(
        self,
        home: Path,
        store: GrantStore,
        fetch: Fetcher,
        log: GrantLog,
        *,
        build: Callable[[], str],
        open_browser: Callable[[str], bool] | None,
        timing: Timing,
        reached: Callable[[str], None] = lambda step: None,
    ) -> None:
        """`open_browser` is None where no browser may be opened from here. `home` is the one that `store` lives in."""
        self.on_grant: Callable[[str, Grant], None] = lambda id, grant: None
        """Called after a login of this process brought a grant and stored it."""
        self._ground = Ground(store, fetch, log, build, timing, self._tell, reached)
        self._show = open_browser
        self._key_of = key_of(store.root)
        self._open: dict[str, OpenLogin] = {}
        self._heirs: dict[str, asyncio.Task[None]] = {}
        self._devices = DeviceLogins(self._ground)

    async def offer(
        self,
        id: str,
        found: Discovered,
        settings: OAuth,
        environ: Mapping[str, str],
        *,
        scope: tuple[str, ...],
        seconds: float,
        by_hand: bool = False,
        seen: int | None = None,
    ) -> Offer:
        """What a person may open to log in, within `seconds`. Never waits for the person.

        `by_hand`: a person asks for it, so a pause after an unfinished login does not count, and a browser is opened again.
        `seen`: the generation of the grant that the caller found wanting; one that has come since is offered in place of a
        login (`Offer.grant`). Raises Fault (PortTaken is one) and RegistrationFailed.
        """
        deadline = Deadline.after(seconds)
        try:
            since = seen if seen is not None else self._ground.generation(id)
            unasked = not by_hand and not self._has_live(id)
            if settings.flow == "device":
                return await self._devices.offer(id, found, settings, environ, scope, since, deadline, by_hand=by_hand)
            live = await self._live(id)
            quick = self._quick_offer(id, live, scope, by_hand=by_hand)
            if quick is None:
                async with self._ground.login_lock(id, deadline.remaining):
                    quick = await self._offer(id, found, settings, environ, scope, since, deadline, by_hand=by_hand)
        except Busy:
            raise _preparing() from None
        except (NoEndpoint, OSError) as error:
            raise _impossible(str(error)) from None
        if not quick.mine and quick.grant is None:
            self._stand_by(id, settings, environ, since, unasked=unasked)
        return quick

    async def paste(self, id: str, redirect_url: str, seconds: float) -> Grant:
        """Redeem the URL that the browser was redirected to and could not open, as the listener would. Raises Fault."""
        try:
            return await redeem_pasted(self._ground, id, redirect_url, self._open.get(id), seconds)
        except Busy:
            raise _preparing() from None
        except OSError as error:
            raise _impossible(str(error)) from None

    def open(self) -> bool:
        """Whether a login of ours still waits for its person, or is just being finished."""
        return self._devices.open() or any(
            login.busy or (login.waits and self._runs(id)) for id, login in self._open.items()
        )

    async def linger(self, seconds: float) -> None:
        """Wait until our open logins have ended, at most so long. For a process that is asked to leave."""
        end = time.monotonic() + seconds
        # An offer's time runs out by the clock alone, so there is no event to wait for.
        while self.open() and (left := end - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(min(0.1, left))

    async def close(self) -> None:
        """Let all ports go. Logins that have not ended stay in their notes, for another process to go on with."""
        heirs = tuple(self._heirs.values())
        for heir in heirs:
            heir.cancel()
        await asyncio.gather(*heirs, self._devices.close(), return_exceptions=True)
        for login in self._open.values():
            await login.close()
        self._open.clear()
        self._heirs.clear()

    # -- offering

    def _standing(self, id: str) -> Standing:
        return offers.standing(self._ground.root, id, self._ground.timing, time.time())

    def _runs(self, id: str) -> bool:
        with contextlib.suppress(OSError):
            return self._standing(id).state == "running"
        return False

    async def _live(self, id: str) -> _Live | None:
        """The login that is open for this grant, where its owner lives."""
        own = self._open.get(id)
        if own is not None:
            own.look()
            if own.waits and own.note is not None:
                return _Live(own.note, own)
        note = read_note(self._ground.root, id)
        if note is None or note.kind != "browser":
            return None
        who = await identity.ask(note.port, self._key_of)
        if isinstance(who, Identity):
            return _Live(note, None) if who.flow == note.flow_id and who.open else None
        if isinstance(who, Stranger) and who.silent:
            # A stopped or starved owner still owns its port; its URL is the best there is.
            pid = await asyncio.to_thread(owner_pid, note.port)
            return _Live(note, None) if pid == note.pid else None
        return None

    def _quick_offer(self, id: str, live: _Live | None, scope: tuple[str, ...], *, by_hand: bool) -> Offer | None:
        """What can be said without the lock: the URL of a login that runs, or that there is a pause."""
        standing = self._standing(id)
        if by_hand or standing.state == "fresh":
            return None
        if standing.state == "snoozed":
            return _pause(standing.until)
        if live is None or (live.own is not None and not live.own.covers(scope)):
            return None
        return Offer(live.note.url, None, live.own is not None, standing.until)

    async def _offer(
        self,
        id: str,
        found: Discovered,
        settings: OAuth,
        environ: Mapping[str, str],
        scope: tuple[str, ...],
        since: int,
        deadline: Deadline,
        *,
        by_hand: bool,
    ) -> Offer:
        """Under the login's lock: nobody else opens or ends one meanwhile."""
        grant = self._ground.settled(id, since)
        if grant is not None:
            note = read_note(self._ground.root, id)
            if note is not None and served(note, grant) and await self._live(id) is None:
                tidy(self._ground, id, note)
            return Offer("", None, False, time.time(), grant=grant)
        standing = self._standing(id)
        if standing.state == "snoozed" and not by_hand:
            return _pause(standing.until)
        live = await self._live(id)
        if live is not None:
            own, url = live.own, live.note.url
            another = own is not None and not own.covers(scope)
            if own is not None and another:
                url = await own.publish(scope, live.note, deadline.remaining)
        else:
            own = await self._take(id, found, settings, environ, scope, since, deadline, by_hand=by_hand)
            grant = self._ground.settled(id, since)
            if grant is not None:  # a code was left behind by a process that died
                return Offer("", None, False, time.time(), grant=grant)
            assert own.note is not None
            another, url = False, own.note.url
        if by_hand or another or standing.state == "fresh":
            until = offers.offered(self._ground.root, id, self._ground.timing, time.time())
            self._ground.log.write(
                "login-offered", host_of(found), f"on port {own.port if own else live and live.note.port}"
            )
            if by_hand or standing.state == "fresh":
                # A tab for the first of a time, whatever scopes are wanted after it: those URLs are told.
                await self._open_browser(url)
        else:
            until = standing.until
        self._ground.reached("offered")
        return Offer(url, None, own is not None, until)

    async def _open_browser(self, url: str) -> None:
        if self._show is not None:
            # In a thread: starting a program takes a while on some systems.
            await asyncio.to_thread(self._show, url)

    async def _take(
        self,
        id: str,
        found: Discovered,
        settings: OAuth,
        environ: Mapping[str, str],
        scope: tuple[str, ...],
        since: int,
        deadline: Deadline,
        *,
        by_hand: bool,
    ) -> OpenLogin:
        """Bind, answer, and only then publish. What the login before left behind goes on where that is possible."""
        before = left_behind(self._ground, id, found)
        ports = ports_for(self._ground, id, found, settings, environ, before)
        listener = await self._bound(id, ports, fixed=settings.callback_port is not None)
        unasked = not by_hand and not self._has_live(id)
        login = OpenLogin(self._ground, id, found, settings, environ, listener, since=since, unasked=unasked)
        try:
            await login.serve()
            self._ground.reached("bound")
            if before is not None and may_go_on(self._ground, before, login.port, found, settings, environ, scope):
                login.adopt(before)
            else:
                await login.publish(scope, before, deadline.remaining)
            await login.resume(deadline.remaining)
        except BaseException:
            await login.close()
            raise
        self._open[id] = login
        return login

    async def _bound(self, id: str, ports: tuple[int, ...], *, fixed: bool) -> Listener:
        """The first port of these that is free. Raises PortTaken."""
        earlier = self._open.pop(id, None)
        if earlier is not None:
            await earlier.close()
        for port in ports:
            end = time.monotonic() + _FREED_SECONDS
            while True:
                try:
                    return Listener.bind(port)
                except PortBusy:
                    who = await identity.ask(port, self._key_of)
                # A finished login lets its port go when it is asked who it is; so does one whose note is gone.
                # Its note is gone, and with it what it could prove itself with; it is only given a moment.
                claims = who.claims if isinstance(who, Stranger) else who
                ours = who is None or (claims is not None and claims.grant == id and not claims.open)
                if not ours or time.monotonic() > end:
                    break
                await asyncio.sleep(_POLL_SECONDS)
        who = await identity.ask(ports[0], self._key_of)
        claims = who.claims if isinstance(who, Stranger) else who
        # One of another home has its note elsewhere: it is known by the process, which only its own user can look into.
        if claims is not None and (
            isinstance(who, Identity) or await asyncio.to_thread(owner_pid, ports[0]) == claims.pid
        ):
            owner = f"another sign-in of Interlock (process {claims.pid})"
            raise PortTaken(ports[0], owner, fixed=fixed, ours=True)
        raise PortTaken(ports[0], await asyncio.to_thread(owner_of, ports[0]), fixed=fixed)

    # -- standing by

    def _has_live(self, id: str) -> bool:
        grant = self._ground.store.read(id)
        return grant is not None and grant.state == "live"

    def _stand_by(self, id: str, settings: OAuth, environ: Mapping[str, str], since: int, *, unasked: bool) -> None:
        """Watch the owner of a login that we only repeat, to go on in its place."""
        task = self._heirs.get(id)
        if task is None or task.done():
            self._heirs[id] = asyncio.get_running_loop().create_task(
                self._inherit(id, settings, environ, since, unasked)
            )

    async def _inherit(self, id: str, settings: OAuth, environ: Mapping[str, str], since: int, unasked: bool) -> None:
        root, port = self._ground.root, 0
        while True:
            try:
                note = read_note(root, id)
                if note is None or note.kind != "browser" or not note.pending:
                    return
                port = note.port
                if not await identity.watch(note.port, note.flow_id, self._key_of):
                    await asyncio.sleep(_HEIR_PAUSE)
                async with self._ground.login_lock(id, _HEIR_LOCK_SECONDS):
                    again = read_note(root, id)
                    if again is not None and again.flow_id != note.flow_id:
                        continue
                    mine = self._open.get(id)
                    if again is not None and (mine is None or not mine.waits):
                        await self._inherited(id, again, settings, environ, since, unasked)
                    return
            except Busy:
                continue
            except PortBusy:
                who = await identity.ask(port, self._key_of)
                if isinstance(who, Stranger) and not who.silent:
                    return  # another program has the port: the next call finds one that is free
                await asyncio.sleep(_HEIR_PAUSE)
            except OSError:
                return  # the store cannot be used: the next call says so

    async def _inherited(
        self, id: str, note: FlowNote, settings: OAuth, environ: Mapping[str, str], since: int, unasked: bool
    ) -> None:
        """Under the login's lock: go on for an owner that has died. Raises PortBusy where it lives after all."""
        grant = self._ground.settled(id, since)
        if grant is not None and (unasked or served(note, grant)):
            tidy(self._ground, id, note)
            return
        listener = Listener.bind(note.port)
        login = OpenLogin(self._ground, id, note.found, settings, environ, listener, since=since, unasked=unasked)
        try:
            await login.serve()
            self._ground.reached("bound")
            login.adopt(note)
            await login.resume(TOKEN_SECONDS)
        except BaseException:
            await login.close()
            raise
        self._open[id] = login

    def _tell(self, id: str, grant: Grant) -> None:
        try:
            self.on_grant(id, grant)
        except Exception:
            _log.exception("telling of a new grant failed")


def _pause(until: float) -> Offer:
    return Offer("", None, False, until, snoozed_until=until)


def _preparing() -> Fault:
    return Fault(
        "login-needed",
        "another process of this machine is just opening or finishing the sign-in. Make the call again in a moment. "
        "The server did not act on the request.",
        stage=Stage.AUTHORIZE,
        verdict=Verdict.WAIT,
        wait_seconds=2.0,
    )


def _impossible(why: str) -> Fault:
    return Fault(
        "auth-misconfigured",
        f"a sign-in cannot be opened: {why}. The server did not act on the request.",
        stage=Stage.AUTHORIZE,
        verdict=Verdict.NEVER_REACHED,
    )
