"""A browser login that this process owns: it holds the callback port, and takes the click.

It ends when a click was redeemed, when the person said no, when somebody else saw to it (the note beside the grant is gone or
another's), or after an hour. After a good end it answers for a moment longer, so that a repeated click gets a page.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import time
from collections.abc import Coroutine, Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec

from interlock.manifest.config import OAuth
from interlock.upstream.oauth import identity, offers, pages
from interlock.upstream.oauth.authorize_request import NoEndpoint, authorize_request
from interlock.upstream.oauth.callback import Listener, Reply, Request, refusal
from interlock.upstream.oauth.client_of import client_for
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.flow_note import PENDING_SECONDS, FlowNote, Pending, read_note, remove_note, write_note
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.ground import Busy, Ground, host_of
from interlock.upstream.oauth.identity import Identity
from interlock.upstream.oauth.ports import redirect_for, redirect_uri
from interlock.upstream.oauth.private_files import StoreTrouble
from interlock.upstream.oauth.redeem import TOKEN_SECONDS, Unredeemed, arrived, forget_code, redeem
from interlock.upstream.oauth.redirect import Code, NotOurs, Refused, judge
from interlock.upstream.oauth.refusal import Class
from interlock.upstream.oauth.registration import RegistrationFailed
from interlock.upstream.secret_forms import masked

Result = TypeVar("Result", Reply, None)
LOCK_SECONDS = 25.0
REGISTER_SECONDS = 10.0
TEND_SECONDS = 1.0
AFTERWARDS_SECONDS = 20.0
_LOGGED_FORGERIES = 3
_FINAL = frozenset({Class.SCOPE, Class.RESOURCE, Class.CONFIGURATION})
"""A new URL would end in the same way."""


class OpenLogin:
    """Bound and answering from `serve` on; published from `publish` or `adopt` on."""

    def __init__(
        self,
        ground: Ground,
        id: str,
        found: Discovered,
        settings: OAuth,
        environ: Mapping[str, str],
        listener: Listener,
        *,
        since: int,
        unasked: bool,
    ) -> None:
        self.id = id
        self.port = listener.port
        self.flow_id = secrets.token_hex(16)
        self._key = secrets.token_hex(32)
        self.ended = asyncio.Event()
        self.note: FlowNote | None = None
        self._ground = ground
        self._found = found
        self._settings = settings
        self._environ = environ
        self._listener = listener
        self._since = since
        self._unasked = unasked
        """True: nobody asked for it by hand and there was no live grant, so any live grant makes it needless."""
        self._busy = asyncio.Lock()
        self._done_states: set[str] = set()
        self._forgeries = 0
        self._tasks: set[asyncio.Task[Reply] | asyncio.Task[None]] = set()

    @property
    def waits(self) -> bool:
        return not self.ended.is_set()

    async def serve(self) -> None:
        """Answer from now on. Before anything is published: a redirect may come at once."""
        await self._listener.serve(self._answer)
        self._start(self._tend())

    # -- publishing: only under the login's lock

    async def publish(self, scope: tuple[str, ...], before: FlowNote | None, seconds: float) -> str:
        """Register where needed, make a URL, and write the note. Raises RegistrationFailed, NoEndpoint, StoreTrouble."""
        registration = await client_for(
            self._ground, self._found, self._settings, self._environ, redirect_uri(self.port), seconds
        )
        self._ground.reached("registered")
        return self._publish(registration, scope, before)

    def _publish(self, registration: Registration, scope: tuple[str, ...], before: FlowNote | None) -> str:
        target = redirect_for(registration, self.port)
        url, pending = authorize_request(self._found, registration, target, scope)
        # Codes are bound to the client that asked for them, so another client's verifiers are of no use.
        same = before is not None and before.registration.client_id == registration.client_id
        kept = before.pending if before is not None and same else ()
        note = FlowNote(
            flow_id=self.flow_id,
            url=url,
            port=self.port,
            pid=os.getpid(),
            created=time.time(),
            found=self._found,
            registration=registration,
            pending=(*kept, pending),
            key=self._key,
        )
        self.note = write_note(self._ground.root, self.id, note)
        self._ground.reached("noted")
        return url

    def adopt(self, before: FlowNote) -> str:
        """Go on with the login of a process that is gone: same port, same URL, same verifiers."""
        self._found = before.found
        note = msgspec.structs.replace(before, flow_id=self.flow_id, pid=os.getpid(), key=self._key)
        self.note = write_note(self._ground.root, self.id, note)
        self._ground.reached("noted")
        self._ground.log.write("login-taken-over", host_of(self._found), f"from process {before.pid}")
        return note.url

    def covers(self, scope: tuple[str, ...]) -> bool:
        """Whether the published URL asks for all of these scopes."""
        return self.note is not None and bool(self.note.pending) and set(scope) <= set(self.note.pending[-1].scope)

    # -- what the browser and other processes ask

    async def _answer(self, request: Request) -> Reply:
        if request.path in (identity.PATH, identity.WATCH_PATH):
            self.look()
            reply = identity.reply(
                Identity(
                    flow=self.flow_id,
                    grant=self.id,
                    build=self._ground.build(),
                    pid=os.getpid(),
                    open=self.waits,
                    proof=self._proof(request),
                ),
                held=request.path == identity.WATCH_PATH and self.waits,
            )
            # Somebody wants to know who has the port: after the end, they need it more.
            return reply if self.waits else replace(reply, after=self._listener.release)
        if request.path != "/callback":
            return refusal(404)
        # Its own task: a code must not be left half redeemed because a tab was closed.
        return await asyncio.shield(self._start(self._click(request.query)))

    def _proof(self, request: Request) -> str:
        nonce = request.one("nonce")
        if not nonce or len(nonce) > identity.MAX_NONCE:
            return ""
        return identity.proof(self._key, request.path, nonce, self.port, self.flow_id)

    async def _click(self, query: Mapping[str, tuple[str, ...]]) -> Reply:
        async with self._busy:
            state = query.get("state", ("",))
            if len(state) == 1 and state[0] in self._done_states:
                return _page("Already signed in", "This sign-in is done. You can close this page.")
            if self.note is None or not self.waits:
                return refusal(400)
            judged = judge(query, self.note.pending, self.note.found)
            if isinstance(judged, NotOurs):
                self._forgeries += 1
                if self._forgeries <= _LOGGED_FORGERIES:
                    self._ground.log.write("callback-ignored", host_of(self._found), judged.why)
                return _page("Not a sign-in that waits here", f"Nothing was changed: {judged.why}.", status=400)
            self._ground.reached("callback")
            try:
                async with self._ground.login_lock(self.id, LOCK_SECONDS):
                    return await self._judged(judged)
            except Busy:
                return _page(
                    "Not yet", "Another process is just working on this sign-in. Reload this page in a moment."
                )
            except StoreTrouble as trouble:
                return _page(
                    "Not stored", f"The sign-in could not be stored: {trouble}", "Reload this page after that."
                )

    async def _judged(self, judged: Code | Refused) -> Reply:
        """Under the login's lock. The note may have been taken from us since."""
        self.look()
        note = self.note
        if note is None or not self.waits:
            if self._ground.settled(self.id, self._since) is not None:
                return _page("Already signed in", "This sign-in is done. You can close this page.")
            return refusal(400)
        if isinstance(judged, Refused):
            return self._said_no(note, judged)
        return await self._redeem(note, judged.pending, judged.code)

    async def _redeem(
        self, note: FlowNote, pending: Pending, code: str, tries: int = 0, seconds: float = TOKEN_SECONDS
    ) -> Reply:
        found, registration = note.found, note.registration
        try:
            grant = await redeem(
                self._ground, self.id, found, registration, pending, code, tries=tries, seconds=seconds
            )
        except Unredeemed as failure:
            return await self._unredeemed(note, pending, failure)
        self._done_states.add(pending.state)
        self.finish(grant)
        return _page(
            "Signed in", f"Interlock may now use {note.found.resource} for you. You can close this page.",
        )  # fmt: skip

    async def resume(self, seconds: float) -> bool:
        """Present a code that came to a process that has died since. Under the login's lock. True where a grant came of it."""
        note = self.note
        left = arrived(self._ground, self.id, note) if note is not None else None
        if note is None or left is None:
            return False
        pending, kept = left
        await self._redeem(note, pending, kept.code, kept.tries, min(seconds, TOKEN_SECONDS))
        return not self.waits

    def _said_no(self, note: FlowNote, refused: Refused) -> Reply:
        words = f"{refused.error}: {refused.description}" if refused.description else refused.error
        words = masked(words, (note.registration.client_secret or "",))
        self._ground.log.write("login-refused", host_of(note.found), words, (refused.pending.state,))
        if refused.error in ("server_error", "temporarily_unavailable"):
            url = self._another(note, refused.pending)
            return _page("Not signed in", f"The authorization server could not do it now ({words}).", again=url)
        self._give_up()
        return _page("Not signed in", f"The authorization server said: {words}.", "Nothing was changed.")

    async def _unredeemed(self, note: FlowNote, pending: Pending, failure: Unredeemed) -> Reply:
        """What follows where no grant came of a good click; it is always said."""
        if failure.code_is_good:
            # The click's own page may be reloaded: the verifier stays. And a new URL, should the code be spent.
            url = self._another(note, None)
            return _page(
                "Not signed in yet",
                f"The token endpoint gave no usable answer: {failure.what}",
                "Reload this page to try the same code once more.",
                again=url,
            )
        forget_code(self._ground.root, self.id)
        if failure.kind in _FINAL:
            self._give_up()
            return _page("Not signed in", f"The authorization server refused the code ({failure.what}).")
        if failure.kind is Class.CLIENT:
            return await self._register_anew(note, failure)
        url = self._another(note, pending)
        return _page("Not signed in", f"The authorization server refused the code ({failure.what}).", again=url)

    async def _register_anew(self, note: FlowNote, failure: Unredeemed) -> Reply:
        """The client is not known there (any more): register once more, dynamically, and start over with a new URL."""
        settings, registration = self._settings, note.registration
        words = f"The authorization server does not accept this client ({failure.what})."
        if registration.source == "preset":
            self._give_up()
            return _page("Not signed in", words)
        self._ground.store.drop_registration(registration.issuer, registration.client_id)
        if registration.source == "metadata-document":
            if note.found.metadata.registration_endpoint is None:
                self._give_up()
                return _page("Not signed in", words)
            self._settings = replace(settings, client_metadata_url=None)
        try:
            url = await self.publish(note.pending[-1].scope, None, REGISTER_SECONDS)
        except (RegistrationFailed, NoEndpoint) as error:
            self._give_up()
            return _page("Not signed in", words, f"Registering it again failed: {error}")
        return _page("Not signed in yet", words, "It was registered again.", again=url)

    def _another(self, note: FlowNote, used: Pending | None) -> str | None:
        """A new URL in the note, without the pending request that is used up."""
        left = tuple(each for each in note.pending if used is None or each.state != used.state)
        before = msgspec.structs.replace(note, pending=left)
        with contextlib.suppress(NoEndpoint):
            return self._publish(note.registration, note.pending[-1].scope, before)
        return None

    # -- endings

    def finish(self, grant: Grant) -> None:
        """A grant is stored. Under the login's lock."""
        self._ground.on_grant(self.id, grant)
        root = self._ground.root
        remove_note(root, self.id, self.flow_id)
        self._ground.reached("note-removed")
        offers.finished(root, self.id)
        self._over()
        self._ground.reached("finished")

    def _give_up(self) -> None:
        root = self._ground.root
        forget_code(root, self.id)
        offers.given_up(root, self.id, self._ground.timing, time.time())
        remove_note(root, self.id, self.flow_id)
        self._over()

    def _over(self) -> None:
        """Ended. The port is kept for a moment: for a click that is repeated."""
        self.ended.set()
        asyncio.get_running_loop().call_later(AFTERWARDS_SECONDS, self._listener.close)

    def look(self) -> None:
        """Whether the login is still ours. Who removes or replaces the note (a pasted URL, a logout) has ended it."""
        if self.note is None or not self.waits:
            return
        with contextlib.suppress(StoreTrouble):
            kept = read_note(self._ground.root, self.id)
            if kept is None or kept.flow_id != self.flow_id:
                self._done_states.update(each.state for each in self.note.pending if self._settled())
                self._over()
            else:
                self.note = kept

    def _settled(self) -> bool:
        return self._ground.settled(self.id, self._since) is not None

    async def _tend(self) -> None:
        """Look after it until it ends."""
        root = self._ground.root
        stamp = self._ground.store.stamp(self.id)
        said = False
        while self.waits:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.ended.wait(), TEND_SECONDS)
            if self._busy.locked() or self.note is None:
                continue
            self.look()
            if not self.waits:
                return
            with contextlib.suppress(StoreTrouble, Busy):
                changed = self._ground.store.stamp(self.id)
                if self._unasked and changed != stamp and self._settled():
                    async with self._ground.login_lock(self.id, 0):
                        remove_note(root, self.id, self.flow_id)
                    offers.finished(root, self.id)
                    self._ground.log.write("login-needless", host_of(self._found), "the grant works again without it")
                    self._over()
                    return
                stamp = changed
                standing = offers.standing(root, self.id, self._ground.timing, time.time())
                if standing.state == "snoozed" and not said:
                    said = True
                    self._ground.log.write(
                        "login-unfinished", host_of(self._found), "offered, and not completed in time"
                    )
                if not self.note.pending or time.time() - self.note.pending[-1].created >= PENDING_SECONDS:
                    remove_note(root, self.id, self.flow_id)
                    self._over()

    def _start(self, work: Coroutine[object, object, Result]) -> asyncio.Task[Result]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def busy(self) -> bool:
        """A click is being redeemed, or its page is on its way."""
        return self._busy.locked() or self._listener.answering

    async def close(self) -> None:
        """Let the port go. The note stays where the login has not ended, and a code that is being redeemed stays beside it:
        another process may go on with both."""
        self.ended.set()
        self._listener.close()
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _page(title: str, *text: str, again: str | None = None, status: int = 200) -> Reply:
    link = ("Sign in again", again) if again is not None else None
    return Reply(status, pages.page(title, *text, link=link))
