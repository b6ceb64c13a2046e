"""What is examined: one remote server as a bridge would reach it, and the facts that several checks need, asked for once."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from interlock.doctor import host_files, kept, processes
from interlock.doctor.probe import Heard, Prober, Spoken, Unreached, sent_headers
from interlock.manifest.config import HttpTransport, OAuth, Origin
from interlock.upstream.oauth.challenge import Bearer, bearer
from interlock.upstream.oauth.client_of import preset_of
from interlock.upstream.oauth.discovery import DiscoveryFailed, discover
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Fetcher
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_ids import filed_under
from interlock.upstream.oauth.moved import former_issuer
from interlock.upstream.oauth.refresh import usable
from interlock.upstream.oauth.static_token import StaticToken

T = TypeVar("T")


@dataclass(slots=True)
class Machine:
    """This machine and this user. Nothing of it is changed."""

    home: Path
    """Interlock's."""
    user: Path
    """The person's home directory."""
    folder: Path
    """The working directory: hosts have project files."""
    environ: Mapping[str, str]
    _entries: list[host_files.Entry] | None = None
    _processes: list[processes.Process] | None = None

    async def entries(self) -> list[host_files.Entry]:
        if self._entries is None:
            self._entries = await asyncio.to_thread(host_files.entries, self.user, self.folder, self.environ)
        return self._entries

    async def processes(self) -> list[processes.Process]:
        if self._processes is None:
            self._processes = await asyncio.to_thread(processes.running)
        return self._processes


@dataclass(slots=True)
class Case:
    """One server. Facts raise what they raise each time they are asked for, and are found out once."""

    name: str
    """The manifest's key, or the URL."""
    url: str
    transport: HttpTransport
    machine: Machine
    fetch: Fetcher
    seconds: float
    """For each thing that is waited for."""
    declared: Origin | None = None
    """Where the manifest declares it; None where only a URL was given."""
    _facts: dict[str, asyncio.Future[object]] = field(default_factory=dict)

    @property
    def settings(self) -> OAuth:
        return self.transport.oauth or OAuth()

    @property
    def prober(self) -> Prober:
        return Prober(self.url, self.headers(), self.transport.kind, self.seconds)

    def headers(self) -> dict[str, str]:
        """Those of the manifest, as far as their variables are set here."""
        return sent_headers(self.transport, self.machine.environ)

    async def first(self) -> Heard:
        """The answer to a first request without a login. Raises Unreached."""
        return await self._once("first", self.prober.first)

    async def credential(self) -> str | None:
        """The `Authorization` that a bridge would send now without renewing anything; None where it has none."""
        if self.transport.token is not None:
            return StaticToken(self.name, self.transport.token, self.machine.environ).current()
        filed = await self.filed() if await self.uses_oauth() else None
        if filed is None or filed.grant is None or not usable(filed.grant, await self.server_time(filed.grant)):
            return None
        return f"Bearer {filed.grant.access_token}"

    async def server_time(self, grant: Grant) -> float:
        """Now, on the server's clock: by the `Date` of its answer, else by the skew that the grant remembers."""
        try:
            skew = (await self.first()).skew
        except Unreached:
            skew = None
        return time.time() + (grant.skew if skew is None else skew)

    async def spoken(self) -> Spoken:
        """How the server answers a first request with what credential there is. Raises Unreached."""

        async def ask() -> Spoken:
            return await self.prober.speak(await self.credential())

        return await self._once("spoken", ask)

    async def challenge(self) -> Bearer | None:
        try:
            heard = await self.first()
        except Unreached:
            return None
        return bearer(heard.headers.get("www-authenticate"))

    async def discovered(self) -> Discovered:
        """From the documents as they are now. Raises DiscoveryFailed."""

        async def ask() -> Discovered:
            challenge, bound = await self.challenge(), self.bound_issuer()
            return await discover(self.fetch, self.url, challenge, self.settings, self.seconds, prefer_issuer=bound)

        return await self._once("discovered", ask)

    async def found(self) -> Discovered | None:
        try:
            return await self.discovered()
        except DiscoveryFailed:
            return None

    def preset(self) -> str | None:
        """The configured client id."""
        return preset_of(self.settings, self.machine.environ)

    def bound_issuer(self) -> str | None:
        """The only authorization server that the configured client may be used with; None where none is known yet."""
        client_id = self.preset()
        if client_id is None or self.settings.issuer is not None:
            return self.settings.issuer
        return kept.pinned(self.machine.home, self.url, client_id)

    @property
    def login(self) -> str:
        """The command that signs in to this server."""
        return f"`interlock login {shlex.quote(self.name)}`"

    async def former_issuer(self) -> str | None:
        """The authorization server of a grant that is kept, where this server names another one now."""
        found = await self.found()
        if found is None:
            return None
        everything = await asyncio.to_thread(kept.look, self.machine.home)
        return former_issuer([each.grant for each in everything if each.grant is not None], found)

    async def filed(self) -> kept.Kept | None:
        """What the store has for this server: under its id where discovery gives one, else for its URL."""
        everything = await asyncio.to_thread(kept.look, self.machine.home)
        found = await self.found()
        if found is not None:
            id = filed_under(found, self.preset())
            return next((each for each in everything if each.id == id), None)
        return next((each for each in everything if each.server_url == self.url), None)

    async def uses_oauth(self) -> bool:
        """Whether logins matter here: the manifest says so, or the server asks and nothing else is set for it."""
        if self.transport.token is not None:
            return False
        if self.transport.oauth is not None:
            return True
        if "authorization" in self.headers():
            return False
        try:
            heard = await self.first()
        except Unreached:
            return False
        return heard.status == 401

    async def _once(self, name: str, ask: Callable[[], Awaitable[T]]) -> T:
        future = self._facts.get(name)
        if future is None:
            future = self._facts[name] = asyncio.ensure_future(cast("Awaitable[object]", ask()))
        return cast(T, await asyncio.shield(future))
