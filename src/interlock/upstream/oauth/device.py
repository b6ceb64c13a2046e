"""Logins on another device (RFC 8628), for machines with no browser and nobody in front of them.

One process asks the token endpoint: the one that holds the kernel's lock on `ID.poller.lock`, which ends with its process.
All others answer with the same address and code, and wait for the lock, to go on with the same device code.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from interlock.manifest.config import OAuth
from interlock.model.deadline import Deadline
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.oauth import file_lock, offers
from interlock.upstream.oauth.browser import harmless
from interlock.upstream.oauth.client_auth import signed
from interlock.upstream.oauth.client_of import client_for, preset_of
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import FetchFailed
from interlock.upstream.oauth.flow_note import FlowNote, Pending, read_note, remove_note, write_note
from interlock.upstream.oauth.ground import Busy, Ground, host_of
from interlock.upstream.oauth.offer import Offer
from interlock.upstream.oauth.pages import plain_words
from interlock.upstream.oauth.private_files import StoreTrouble
from interlock.upstream.oauth.refusal import Class, classify
from interlock.upstream.oauth.server_clock import skew_at_issue
from interlock.upstream.oauth.tokens import BadTokenAnswer, TokenRefused, cleaned, grant_from, read_answer
from interlock.wire.address import BadAddress, permitted

GRANT_TYPE = "urn:ietf:params:oauth:grant-type:device_code"
DEFAULT_INTERVAL = 5.0
"""RFC 8628 section 3.2: where the server names none."""
SLOWER_BY = 5.0
"""RFC 8628 section 3.5, slow_down."""
MIN_INTERVAL = 1.0
"""A server that names less (also in an older note) is asked once a second all the same."""
MAX_INTERVAL = 60.0
MAX_LIFETIME = 3600.0
TOKEN_SECONDS = 10.0
ALMOST_OVER = 5.0
_HEIR_SECONDS = 1.0


@dataclass(slots=True)
class _Work:
    task: asyncio.Task[None]
    polls: asyncio.Event
    """Set while this process is the one that asks."""


class DeviceLogins:
    """Those of one process."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._work: dict[str, _Work] = {}

    async def offer(
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
        """The address and code to show, the same on every process. Raises Fault, RegistrationFailed, Busy, StoreTrouble."""
        ground = self._ground
        async with ground.login_lock(id, deadline.remaining):
            grant = ground.settled(id, since)
            if grant is not None:
                return Offer("", None, False, time.time(), grant=grant)
            note = read_note(ground.root, id)
            if note is None or not _goes_on(note, found, settings, environ, scope):
                standing = offers.standing(ground.root, id, ground.timing, time.time())
                if standing.state == "running" and note is not None and note.kind == "device" and _over(note):
                    offers.given_up(ground.root, id, ground.timing, time.time())
                    standing = offers.standing(ground.root, id, ground.timing, time.time())
                if standing.state == "snoozed" and not by_hand:
                    return Offer("", None, False, standing.until, snoozed_until=standing.until)
                note = await self._begin(id, found, settings, environ, scope, deadline)
            mine = await self._take_part(id, note)
        return Offer(note.url, note.user_code, mine, note.expires_at or time.time())

    def open(self) -> bool:
        """Whether this process is the one that asks, for any login."""
        return any(work.polls.is_set() and not work.task.done() for work in self._work.values())

    async def close(self) -> None:
        """Stop asking. Another process, or the next call, goes on with the same code."""
        tasks = [work.task for work in self._work.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._work.clear()

    async def _begin(
        self,
        id: str,
        found: Discovered,
        settings: OAuth,
        environ: Mapping[str, str],
        scope: tuple[str, ...],
        deadline: Deadline,
    ) -> FlowNote:
        """Ask for a new code (RFC 8628 section 3.1) and publish it."""
        ground = self._ground
        endpoint = found.metadata.device_authorization_endpoint
        if endpoint is None or found.metadata.token_endpoint is None:
            raise _impossible(
                f"{found.issuer} offers no sign-in on another device: its metadata names no endpoint for it"
            )
        registration = await client_for(ground, found, settings, environ, None, deadline.remaining)
        form = {"resource": found.resource} | ({"scope": " ".join(scope)} if scope else {})
        signed_form, basic = signed(registration, form)
        try:
            answer = await ground.fetch.post_form(endpoint, signed_form, deadline.remaining, basic)
        except FetchFailed as failure:
            raise _unreachable(failure.what, ground.timing.knock_seconds) from None
        value = answer.json() or {}
        code, user_code, address = (value.get(name) for name in ("device_code", "user_code", "verification_uri"))
        if address is None:
            address = value.get("verification_url")  # of servers older than the RFC
        if not (isinstance(code, str) and isinstance(user_code, str) and isinstance(address, str)):
            if answer.status == 429 or answer.status >= 500:
                raise _unreachable(f"the device endpoint answered HTTP {answer.status}", ground.timing.knock_seconds)
            error = value.get("error")
            word = cleaned(error, (registration.client_secret or "",), 64) if isinstance(error, str) else "no code"
            if word in ("invalid_client", "unauthorized_client") and registration.source == "dynamic":
                ground.store.drop_registration(registration.issuer, registration.client_id)
            raise _impossible(f"the device endpoint answered HTTP {answer.status}: {word}")
        note = FlowNote(
            flow_id=secrets.token_hex(16),
            url=_safe_address(value.get("verification_uri_complete"), address),
            port=0,
            pid=os.getpid(),
            created=time.time(),
            found=found,
            registration=registration,
            # No redirect comes back; it only remembers which scopes were asked for.
            pending=(
                Pending(
                    state=f"device-{secrets.token_hex(16)}",
                    verifier="",
                    redirect_uri="",
                    created=time.time(),
                    scope=scope,
                    issuer=found.issuer,
                ),
            ),
            kind="device",
            device_code=code,
            user_code=plain_words(user_code, 64),
            interval=max(_seconds(value.get("interval"), DEFAULT_INTERVAL, MAX_INTERVAL), MIN_INTERVAL),
            expires_at=time.time() + _seconds(value.get("expires_in"), 600.0, MAX_LIFETIME),
        )
        write_note(ground.root, id, note)
        offers.offered(ground.root, id, ground.timing, time.time())
        ground.log.write("login-offered", host_of(found), "on another device", (code, user_code))
        ground.reached("noted")
        return note

    async def _take_part(self, id: str, note: FlowNote) -> bool:
        """Ask, or stand by. True where it is this process that asks."""
        work = self._work.get(id)
        if work is None or work.task.done():
            polls, decided = asyncio.Event(), asyncio.Event()
            task = asyncio.get_running_loop().create_task(self._until_over(id, note, polls, decided))
            work = self._work[id] = _Work(task, polls)
            await decided.wait()
        return work.polls.is_set()

    async def _until_over(self, id: str, note: FlowNote, polls: asyncio.Event, decided: asyncio.Event) -> None:
        lock = self._ground.root / f"{id}.poller.lock"
        try:
            while (current := self._current(id, note.flow_id)) is not None:
                try:
                    async with file_lock.locked(lock, 0):
                        polls.set()
                        decided.set()
                        self._ground.reached("polling")
                        await self._poll(id, current)
                        return
                except Busy:
                    decided.set()
                    await asyncio.sleep(_HEIR_SECONDS)
        except (StoreTrouble, Busy) as error:
            self._ground.log.write("login-failed", host_of(note.found), str(error))
        finally:
            polls.clear()
            decided.set()

    def _current(self, id: str, flow_id: str) -> FlowNote | None:
        """The note, where it is still that of this login and its code has time."""
        note = read_note(self._ground.root, id)
        return note if note is not None and note.flow_id == flow_id and not _over(note) else None

    async def _poll(self, id: str, note: FlowNote) -> None:
        """Ask until there is an answer (RFC 8628 sections 3.4 and 3.5). Holds the poller's lock."""
        wait, lost = _interval(note), False
        while True:
            await asyncio.sleep(wait)
            current = self._current(id, note.flow_id)
            if current is None:
                return await self._end(id, note, "the code expired before anybody used it", lost=False)
            note = current
            self._ground.reached("presenting")
            try:
                return await self._asked(id, note)
            except FetchFailed as failure:
                lost = lost or failure.sent
                wait = min(wait * 2, MAX_INTERVAL)
            except BadTokenAnswer as error:
                wait = min(wait * 2, MAX_INTERVAL)
                if classify(error, early=False) is Class.CONFIGURATION:
                    return await self._end(id, note, str(error), lost=lost)
            except TokenRefused as refusal:
                if refusal.error == "authorization_pending":
                    wait = _interval(note)
                elif refusal.error == "slow_down":
                    slower = min(_interval(note) + SLOWER_BY, MAX_INTERVAL)
                    note = write_note(self._ground.root, id, msgspec.structs.replace(note, interval=slower))
                    wait = slower
                elif classify(refusal, early=False) in (Class.BUSY, Class.OUTAGE):
                    wait = min(wait * 2, MAX_INTERVAL)
                else:
                    if classify(refusal, early=False) is Class.CLIENT and note.registration.source == "dynamic":
                        self._ground.store.drop_registration(note.registration.issuer, note.registration.client_id)
                    return await self._end(id, note, str(refusal), lost=lost and refusal.error == "invalid_grant")

    async def _asked(self, id: str, note: FlowNote) -> None:
        """Ask once. Returns where a grant came and is stored. Raises FetchFailed, TokenRefused, BadTokenAnswer."""
        ground, found = self._ground, note.found
        endpoint, code = found.metadata.token_endpoint, note.device_code
        if endpoint is None or code is None:
            raise BadTokenAnswer(400, "there is nothing to ask for")
        secrets_sent = (code, note.user_code or "", note.registration.client_secret or "")
        form, basic = signed(
            note.registration, {"grant_type": GRANT_TYPE, "device_code": code, "resource": found.resource}
        )
        answer = await ground.fetch.post_form(endpoint, form, TOKEN_SECONDS, basic)
        ground.reached("answered")
        tokens = read_answer(answer, secrets_sent)
        grant = grant_from(
            tokens,
            found=found,
            registration=note.registration,
            asked_scope=note.pending[-1].scope if note.pending else (),
            now=time.time(),
            skew=skew_at_issue(answer, tokens, time.time(), 0.0),
            previous=None,
        )
        kept = await ground.keep(id, grant)
        ground.log.write("login-done", host_of(found), f"generation {kept.generation}, on another device", secrets_sent)
        ground.on_grant(id, kept)
        remove_note(ground.root, id, note.flow_id)
        offers.finished(ground.root, id)
        ground.reached("finished")

    async def _end(self, id: str, note: FlowNote, why: str, *, lost: bool) -> None:
        """It ends without a grant. `lost`: the person did their part, and the answer did not arrive: no pause then."""
        ground = self._ground
        with contextlib.suppress(Busy):
            async with ground.login_lock(id, 5.0):
                # Not where somebody else has ended or replaced it.
                if remove_note(ground.root, id, note.flow_id):
                    ground.log.write("login-refused", host_of(note.found), why, (note.device_code or "",))
                    if lost:
                        offers.finished(ground.root, id)
                    else:
                        offers.given_up(ground.root, id, ground.timing, time.time())


def _goes_on(
    note: FlowNote, found: Discovered, settings: OAuth, environ: Mapping[str, str], scope: tuple[str, ...]
) -> bool:
    """Whether an open login is the one that is wanted now."""
    if note.kind != "device" or _over(note, ALMOST_OVER):
        return False
    if (note.found.issuer, note.found.resource) != (found.issuer, found.resource):
        return False
    preset = preset_of(settings, environ)
    if preset is not None and preset != note.registration.client_id:
        return False
    return not note.pending or set(scope) <= set(note.pending[-1].scope)


def _interval(note: FlowNote) -> float:
    """Seconds between two questions (RFC 8628 section 3.5), within reason whatever stands in the note."""
    return min(max(note.interval or DEFAULT_INTERVAL, MIN_INTERVAL), MAX_INTERVAL)


def _over(note: FlowNote, margin: float = 0.0) -> bool:
    return note.expires_at is None or note.expires_at - margin <= time.time()


def _safe_address(complete: object, plain: str) -> str:
    """Where to send the person: the address with the code in it, where there is one. Raises Fault for one not to open."""
    for each in (complete, plain):
        if isinstance(each, str):
            with contextlib.suppress(BadAddress):
                permitted(each)
                return harmless(each)
    raise _impossible("the device endpoint names an address that is not one to open")


def _seconds(value: object, default: float, limit: float) -> float:
    """A duration of the server's, kept within reason. Some quote their numbers."""
    if isinstance(value, str):
        value = float(value) if value.strip().isdigit() else None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        return default
    return min(float(value), limit)


def _impossible(why: str) -> Fault:
    return Fault(
        "auth-misconfigured",
        f"{why}. The server did not act on the request.",
        stage=Stage.AUTHORIZE,
        verdict=Verdict.NEVER_REACHED,
    )


def _unreachable(why: str, seconds: float) -> Fault:
    return Fault(
        "auth-unreachable",
        f"{why} The server did not act on the request. Retry in {seconds:.0f} s.",
        stage=Stage.AUTHORIZE,
        verdict=Verdict.WAIT,
        wait_seconds=seconds,
    )
