"""What is examined where no bridge alone is meant: this machine's manifests, hosts' files and records, each looked up once.

Nothing of it is changed. A server is started only where the person who asks has said so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast

from interlock.doctor import processes
from interlock.doctor.remembered import recalled, served
from interlock.doctor.starting import Started, Target, start
from interlock.hosts.declaration import Declaration
from interlock.hosts.machine import Machine
from interlock.install.entries import same_url
from interlock.manifest.config import HttpTransport, ServerConfig
from interlock.manifest.loading import Loaded
from interlock.model.trace import RouteTrace
from interlock.store.interface import StoreError

if TYPE_CHECKING:
    from interlock.catalog.snapshot import Snapshot
    from interlock.hosts.adapter import Adapter
    from interlock.hosts.inventory import Inventory

T = TypeVar("T")
TRACES = 2000
"""Calls looked back at, at most."""
BACK_NS = 7 * 86_400 * 1_000_000_000
"""And no older than a week before the last one."""


@dataclass(slots=True)
class Examination:
    """`server` (a key, or a URL), `host` and `tool` narrow it; `start` is the consent to start servers."""

    home: Path
    """Interlock's."""
    machine: Machine
    loaded: Loaded
    server: str | None = None
    host: str | None = None
    tool: str | None = None
    start: bool = False
    seconds: float = 20.0
    """For each server that is started."""
    _facts: dict[str, asyncio.Future[object]] = field(default_factory=dict)

    @property
    def environ(self) -> Mapping[str, str]:
        return self.machine.environ

    # What the manifests say

    def configs(self) -> list[ServerConfig]:
        """Servers of the manifests that this is about."""
        return [each for each in self.loaded.gateway.servers.values() if self.server is None or self._is(each)]

    def ready(self) -> list[ServerConfig]:
        """Those of them that may run."""
        return [each for each in self.configs() if each.enabled and each.blocked is None]

    def _is(self, config: ServerConfig) -> bool:
        if self.server is None or config.key == self.server:
            return True
        transport = config.transport
        return isinstance(transport, HttpTransport) and same_url(transport.endpoint, self.server)

    # What the hosts' files say

    async def inventory(self) -> Inventory:
        async def look() -> Inventory:
            return await asyncio.to_thread(self._inventory)

        return await self.once("inventory", look)

    def _inventory(self) -> Inventory:
        from interlock.hosts import inventory

        found = inventory.take(self.machine, None if self.host is None else [self.host])
        configs = list(self.loaded.gateway.servers.values())
        kept = recalled(self.home, configs, self.host)
        inventory.past_interlock(found, served(configs), {key: list(each.tools) for key, each in kept.items()})
        return found

    async def declarations(self) -> list[Declaration]:
        """Entries of hosts' files that this is about, whatever their state."""
        found = (await self.inventory()).declarations
        return [each for each in found if self.server is None or self._declares(each)]

    async def running(self) -> list[Declaration]:
        """Those of them that their host starts."""
        return [each for each in await self.declarations() if each.state == "effective" and each.runs is not None]

    def _declares(self, declaration: Declaration) -> bool:
        if self.server is None or declaration.server == self.server:
            return True
        if declaration.server is None:
            return False
        entry = declaration.runs
        urls = [self.server] if "://" in self.server else self._urls()
        return entry is not None and any(
            same_url(entry.url, url) or any(same_url(word, url) for word in entry.command) for url in urls
        )

    def _urls(self) -> list[str]:
        """Where the server of the manifests is, so that hosts' entries under other names are found."""
        transports = (each.transport for each in self.configs())
        return [each.endpoint for each in transports if isinstance(each, HttpTransport) and each.endpoint]

    async def adapters(self) -> Mapping[str, Adapter]:
        """The hosts that have files here, by id."""
        return {each.adapter.id: each.adapter for each in (await self.inventory()).readings if each.seen}

    # What was written down

    async def traces(self) -> list[RouteTrace]:
        """The latest calls, newest first. Raises StoreError."""

        async def look() -> list[RouteTrace]:
            return await asyncio.to_thread(self._traces)

        found = await self.once("traces", look)
        if self.host is not None:
            found = [each for each in found if each.host is None or each.host.replace("_", "-") == self.host]
        if self.tool is not None:
            found = [each for each in found if each.name is not None and each.name.partition("/")[2] == self.tool]
        if self.server is None:
            return found
        keys = {config.key for config in self.configs()} or {self.server}
        return [each for each in found if each.server in keys]

    async def traces_or_none(self) -> list[RouteTrace]:
        try:
            return await self.traces()
        except StoreError:
            return []

    def _traces(self) -> list[RouteTrace]:
        from interlock.journal.record import from_row
        from interlock.store.sqlite import SqliteStore

        store = SqliteStore.for_reading(self.home)
        try:
            traces = [from_row(row) for row in store.recent_calls(TRACES)]
            return [each for each in traces if each.at_ns > traces[0].at_ns - BACK_NS]
        finally:
            store.close()

    async def snapshots(self) -> Mapping[str, Snapshot]:
        """What each server of the manifests offered when it was last listed, by key; fresh where it was started for this."""

        async def look() -> dict[str, Snapshot]:
            return await asyncio.to_thread(recalled, self.home, list(self.loaded.gateway.servers.values()), self.host)

        found = dict(await self.once("snapshots", look))
        for started in await self.all_started():
            if started.snapshot is not None and started.target.config is not None:
                found[started.target.name] = started.snapshot
        return found

    async def lists(self) -> Mapping[str, Snapshot]:
        """As `snapshots`, narrowed to what this is about."""
        keys = {each.key for each in self.ready()}
        return {key: snapshot for key, snapshot in (await self.snapshots()).items() if key in keys}

    async def processes(self) -> list[processes.Process]:
        async def look() -> list[processes.Process]:
            return await asyncio.to_thread(processes.running)

        return await self.once("processes", look)

    # What is started

    async def all_started(self) -> list[Started]:
        """Each server that this is about, started once and ended again. Empty without consent."""
        if not self.start:
            return []

        async def look() -> list[Started]:
            from interlock.doctor.targets import targets

            # One after the other: what is measured must not be what the others cost.
            return [await start(target, self.seconds) for target in await targets(self)]

        return await self.once("started", look)

    async def all_started_already(self) -> list[Started]:
        """Those that a check has had started; starts nothing."""
        return await self.all_started() if "started" in self._facts else []

    async def targets(self) -> list[Target]:
        from interlock.doctor.targets import targets

        return await targets(self)

    def forget(self) -> None:
        """Facts belong to the event loop in which they were found out."""
        self._facts.clear()

    async def once(self, name: str, ask: Callable[[], Awaitable[T]]) -> T:
        """A fact that is found out once, whoever asks for it."""
        future = self._facts.get(name)
        if future is None:
            future = self._facts[name] = asyncio.ensure_future(cast("Awaitable[object]", ask()))
        return cast(T, await asyncio.shield(future))
