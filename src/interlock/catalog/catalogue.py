"""Snapshots of all servers, kept fresh: listed when first needed, remembered across runs, renewed when something changed.

A bad server costs a list at most a short wait, once; the others are never held up, and it is tried again in the background.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from interlock.catalog.listing import list_server
from interlock.catalog.snapshot import KINDS, Kind, Snapshot, keep, recall
from interlock.manifest.config import HttpTransport
from interlock.model.fault import Fault
from interlock.upstream.contract import Caller, ListKind
from interlock.upstream.server import SHARED, Server
from interlock.wire import messages

COLD_WAIT: Final = 5.0
"""Seconds that a list waits for a server that has not been heard of, counted from when it was first asked."""
STALE_WAIT: Final = 1.0
"""Seconds that a list waits for a server whose last list is known."""
COALESCE: Final = 0.05
MAX_RETRY: Final = 60.0
MAX_RELISTS: Final = 6
"""How often a server that runs is asked again by itself for a list that failed: about two minutes in all."""
MAX_PACE: Final = 5.0
"""The longest time between two lists of a server that reports changes without end."""

Remember = Callable[[str, str, bytes], None]
Recall = Callable[[str, str], bytes | None]
Changed = Callable[[str, str, frozenset[Kind], frozenset[Kind]], None]


class Catalogue:
    """`changed(server, binding, told, found)` is called when clients should list again: `told` are the kinds that the server
    itself reported, `found` those whose new list differs from what was known."""

    def __init__(
        self, servers: Mapping[str, Server], *, remember: Remember, recall_bytes: Recall, changed: Changed
    ) -> None:
        self.servers = servers
        self.generation = 0
        """Grows whenever any snapshot changes; views built under an older one are rebuilt."""
        self._snapshots: dict[tuple[str, str], Snapshot] = {}
        self._remembered: dict[tuple[str, str], Snapshot | None] = {}
        self._stale: set[tuple[str, str]] = set()
        self._tasks: dict[tuple[str, str], tuple[asyncio.Task[None], float]] = {}
        self._failures: dict[tuple[str, str], int] = {}
        self._retries: dict[tuple[str, str], tuple[asyncio.TimerHandle, Caller]] = {}
        self._pending: dict[tuple[str, str], set[Kind]] = {}
        self._callers: dict[tuple[str, str], Caller] = {}
        self._paces: dict[tuple[str, str], tuple[float, float]] = {}
        """How long changes of a server were gathered last, and when that began."""
        self._silent: dict[str, float] = {}
        """Since when a server has been asked without having answered anybody."""
        self._remember = remember
        self._recall = recall_bytes
        self._changed = changed
        self.unlisted: Callable[[str], None] = lambda server: None
        """Called when a server could not be listed of which nothing was ever known: its clients see nothing of it."""
        self._closed = False

    def enabled(self) -> Iterable[Server]:
        return (server for server in self.servers.values() if server.config.enabled and server.config.blocked is None)

    def snapshot(self, server: Server, caller: Caller) -> Snapshot | None:
        """What this caller's session of the server offers; what was last known of it where there is no session yet."""
        return self._snapshots.get((server.key, server.binding_for(caller))) or self._last_known(server, caller)

    def snapshots(self, caller: Caller) -> list[Snapshot]:
        return [found for server in self.enabled() if (found := self.snapshot(server, caller)) is not None]

    def _last_known(self, server: Server, caller: Caller) -> Snapshot | None:
        key = (server.key, caller.principal)
        if key not in self._remembered:
            payload = self._recall(server.key, caller.principal)
            over_http = isinstance(server.config.transport, HttpTransport)
            found = recall(server.key, payload, over_http=over_http) if payload is not None else None
            self._remembered[key] = found
        return self._remembered[key]

    # -- waiting -----------------------------------------------------------------------------------------------------

    async def settle(self, caller: Caller, only: Iterable[str] | None = None) -> bool:
        """Give servers their chance to be listed before a list or a look-up is answered.

        A list waits a little for servers that are not there yet. Who needs one of `only` waits for it as long as its start
        may take, as a call of a tool that is known already does. Returns False while a server is missing that may still come.
        """
        names = None if only is None else set(only)
        patience = COLD_WAIT
        if names is not None:
            patience = max((_patience(server) for server in self.enabled() if server.key in names), default=COLD_WAIT)
        begun = time.monotonic()
        # Two rounds: what was asked for as the shared session may turn out to be one client's, and the others then ask again.
        for _ in range(2):
            waits: list[tuple[asyncio.Task[None], float]] = []
            for server in self.enabled():
                if names is not None and server.key not in names:
                    continue
                wait = self._nudge(server, caller, forced=names is not None)
                if wait is not None:
                    waits.append(wait)
            if not waits:
                break
            now = time.monotonic()
            # However many rounds it takes and whatever is started in between, this request waits no longer than that.
            await asyncio.gather(*(_within(task, min(until, begun + patience) - now) for task, until in waits))
        return all(self.snapshot(server, caller) is not None for server in self.enabled())

    def _nudge(self, server: Server, caller: Caller, forced: bool) -> tuple[asyncio.Task[None], float] | None:
        """Start what has to be started; say what is worth waiting for, and until when."""
        key = (server.key, server.binding_for(caller))
        snapshot = self.snapshot(server, caller)
        running = self._tasks.get(key)
        if snapshot is None:
            if running is None:
                if self._failures.get(key) and not forced:
                    return None  # it failed; the retry timer tries again without holding anybody up
                running = self._start(server, caller)
            if forced:
                return running[0], running[1] + _patience(server)
            if self._failures.get(key):
                return None
            # Counted from when anybody first asked: clients that come later do not each pay for a silent server.
            return running[0], min(running[1], self._silent.get(server.key, running[1])) + COLD_WAIT
        if snapshot.remembered:
            if running is None and (forced or (server.config.start != "on-call" and not self._failures.get(key))):
                running = self._start(server, caller)
            # What is asked for may be newer than what is remembered.
            return (running[0], running[1] + _patience(server)) if forced and running is not None else None
        if key in self._stale or not self._fresh(server, snapshot, key):
            if running is None:
                running = self._start(server, caller)
            return running[0], running[1] + STALE_WAIT
        return None

    def _fresh(self, server: Server, snapshot: Snapshot, key: tuple[str, str]) -> bool:
        """True while the server itself says that nothing has to be asked again."""
        session = server.sessions.get(key[1])
        if session is None or session.closed:
            return True  # idle or restarting: what is known stands until it is needed
        kinds = [kind for kind in ("tools", "prompts", "resources") if kind in snapshot.capabilities]
        if all(_list_changed(snapshot, kind) for kind in kinds):
            return True
        age = (time.monotonic() - snapshot.at) * 1000
        return all(snapshot.listings[kind].ttl_ms > age for kind in KINDS if snapshot.listings[kind].entries)

    # -- listing -----------------------------------------------------------------------------------------------------

    def _start(self, server: Server, caller: Caller) -> tuple[asyncio.Task[None], float]:
        key = (server.key, server.binding_for(caller))
        retry = self._retries.pop(key, None)
        if retry is not None:
            retry[0].cancel()
        task = asyncio.get_running_loop().create_task(self._list(server, caller, key))
        started = self._tasks[key] = (task, time.monotonic())
        self._silent.setdefault(server.key, started[1])
        return started

    async def _list(self, server: Server, caller: Caller, key: tuple[str, str]) -> None:
        self._stale.discard(key)
        try:
            snapshot, pages, binding, missing = await list_server(server, caller)
        except Fault:
            self._failed(server, caller, key)
            return
        except Exception:
            # One bad server must not take a list down with it, whatever it found to send.
            self._failed(server, caller, key)
            raise
        finally:
            self._tasks.pop(key, None)
        self._silent.pop(server.key, None)
        place = (server.key, binding)
        before = self._snapshots.get(place) or self._last_known(server, caller)
        if missing:
            # A list that failed says nothing of what the server offers: what was known stands, and it is asked again.
            snapshot = _with_what_was_known(snapshot, before, missing)
            if self._failures.get(place, 0) < MAX_RELISTS:
                self._failed(server, caller, place)
        else:
            self._failures.pop(key, None)
            self._failures.pop(place, None)
        self._snapshots[place] = snapshot
        self._callers[place] = caller
        self.generation += 1
        told = self._pending.pop(place, set())
        found: set[Kind] = set()
        if before is None or before.digest != snapshot.digest:
            found = {kind for kind in KINDS if _differs(before, snapshot, kind)}
            if found:
                self._paces.pop(place, None)  # it says what is true: the next change may be told as soon as this one
            shared = all(listing.public for listing in snapshot.listings.values() if listing.entries)
            if not missing:
                self._remember(server.key, "" if shared else caller.principal, keep(snapshot, pages))
                # For this principal's other clients, whose own sessions of the server are still to come.
                self._remembered[(server.key, caller.principal)] = replace(snapshot, at=0.0, remembered=True)
        if (told or found) and not self._closed:
            self._changed(server.key, binding, frozenset(told), frozenset(found))

    def _failed(self, server: Server, caller: Caller, key: tuple[str, str]) -> None:
        count = self._failures[key] = self._failures.get(key, 0) + 1
        if self.snapshot(server, caller) is None and not self._closed:
            self.unlisted(server.key)
        if self._closed or key in self._retries:
            return
        delay = min(2.0 ** min(count, 6), MAX_RETRY)
        timer = asyncio.get_running_loop().call_later(delay, self._retry, server, caller, key)
        self._retries[key] = (timer, caller)

    def _retry(self, server: Server, caller: Caller, key: tuple[str, str]) -> None:
        self._retries.pop(key, None)
        if not self._closed and key not in self._tasks:
            self._start(server, caller)

    # -- changes -----------------------------------------------------------------------------------------------------

    def invalidate(self, server: str, binding: str, kind: ListKind) -> None:
        """The server says that a list changed: list again, after a moment in which more may come, then tell clients."""
        place = (server, binding)
        caller = self._callers.get(place)
        if caller is None or self._closed:
            return
        kinds: set[Kind] = {"resources", "templates"} if kind == "resources" else {kind}
        first = place not in self._pending
        self._pending.setdefault(place, set()).update(kinds)
        self._stale.add(place)
        if first:
            asyncio.get_running_loop().call_later(self._pace_of(place), self._relist, place, caller)

    def _pace_of(self, place: tuple[str, str]) -> float:
        """Seconds to gather changes for: longer each time where they go on and on, so that nobody else pays for them."""
        now = time.monotonic()
        pace, last = self._paces.get(place, (COALESCE, 0.0))
        pace = min(pace * 2, MAX_PACE) if now - last < pace * 3 else COALESCE
        self._paces[place] = (pace, now)
        return pace

    def _relist(self, place: tuple[str, str], caller: Caller) -> None:
        server = self.servers.get(place[0])
        if server is None or self._closed:
            return
        running = self._tasks.get(place)
        if running is None:
            self._start(server, caller)
        else:  # what is being listed may be older than the change
            running[0].add_done_callback(lambda _: self._relist(place, caller) if place in self._pending else None)

    def session_started(self, server: str, binding: str) -> None:
        """A session came back: what it offers may differ from before."""
        place = (server, binding)
        if place in self._snapshots and place not in self._tasks:
            caller = self._callers[place]
            self._stale.add(place)
            self._start(self.servers[server], caller)

    async def refresh(self, server: Server, caller: Caller) -> None:
        """List a server anew and wait for it: what is known is certainly out of date."""
        running = self._tasks.get((server.key, server.binding_for(caller)))
        if running is not None:
            await _within(running[0], _patience(server))
        await _within(self._start(server, caller)[0], _patience(server))

    def available(self, server: str) -> None:
        """What kept a server from being listed is over (a sign-in): whoever waited for it need not wait for the retry."""
        for key, (timer, caller) in list(self._retries.items()):
            if key[0] == server:
                timer.cancel()
                self._retry(self.servers[server], caller, key)

    def forget(self, client: str) -> None:
        """The client is gone: so are the snapshots of its own sessions."""
        for place in [each for each, caller in self._callers.items() if caller.client == client and each[1] != SHARED]:
            self._snapshots.pop(place, None)
            self._callers.pop(place, None)
            self._stale.discard(place)
            self._pending.pop(place, None)
            self._paces.pop(place, None)
            self._failures.pop(place, None)
        for key in [each for each in self._retries if each[1].startswith(f"{client}#")]:
            self._retries.pop(key)[0].cancel()

    def close(self) -> None:
        self._closed = True
        for timer, _ in self._retries.values():
            timer.cancel()
        for task, _ in list(self._tasks.values()):
            task.cancel()


def _patience(server: Server) -> float:
    return max(COLD_WAIT, server.config.policy.startup_timeout_seconds)


async def _within(task: asyncio.Task[None], seconds: float) -> None:
    """Wait for a listing, but not for ever and never as its owner."""
    if seconds > 0 and not task.done():
        await asyncio.wait([task], timeout=seconds)


def _with_what_was_known(snapshot: Snapshot, before: Snapshot | None, missing: frozenset[Kind]) -> Snapshot:
    """The lists that failed as they were known before, where anything was."""
    if before is None:
        return replace(snapshot, digest="")
    kept = {kind: before.listings[kind] for kind in missing if before.listings[kind].entries}
    return replace(snapshot, listings={**snapshot.listings, **kept}, digest="")


def _list_changed(snapshot: Snapshot, kind: str) -> bool:
    members = messages.try_map(snapshot.capabilities.get(kind))
    return members is not None and messages.try_json(members.get("listChanged")) is True


def _differs(before: Snapshot | None, after: Snapshot, kind: Kind) -> bool:
    new = after.listings[kind].entries
    if before is None:
        return bool(new)
    old = before.listings[kind].entries
    return [entry.raw for entry in old.values()] != [entry.raw for entry in new.values()]
