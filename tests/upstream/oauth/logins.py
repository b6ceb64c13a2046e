"""Sets up `Logins` for tests: several of one home stand for several processes of one machine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.upstream.oauth.scripted_as import ScriptedServer

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.fetch import Fetcher
from interlock.upstream.oauth.flow import Logins, Offer, Timing
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_log import GrantLog
from interlock.upstream.oauth.grant_store import GrantStore, grant_id


@dataclass
class Desk:
    """One "process": its logins, and what they did."""

    home: Path
    server: ScriptedServer
    logins: Logins
    store: GrantStore
    settings: OAuth
    opened: list[str] = field(default_factory=list)
    granted: list[tuple[str, Grant]] = field(default_factory=list)

    @property
    def id(self) -> str:
        found = self.server.found()
        return grant_id(found.resource, found.issuer, self.settings.client_id)

    @property
    def root(self) -> Path:
        return self.home / "grants"

    async def offer(
        self, *, scope: tuple[str, ...] = (), by_hand: bool = False, seconds: float = 20, **more: object
    ) -> Offer:
        return await self.logins.offer(
            self.id, self.server.found(), self.settings, {}, scope=scope, seconds=seconds, by_hand=by_hand, **more,  # type: ignore[arg-type]
        )  # fmt: skip

    def grant(self) -> Grant | None:
        return self.store.read(self.id)

    def log(self) -> str:
        path = self.home / "grant.log"
        return path.read_text(encoding="utf-8") if path.exists() else ""


@asynccontextmanager
async def desk(
    home: Path,
    server: ScriptedServer,
    *,
    settings: OAuth | None = None,
    timing: Timing | None = None,
    reached: Callable[[str], None] = lambda step: None,
) -> AsyncIterator[Desk]:
    def build() -> str:
        return "v0+test"

    store, log = GrantStore(home), GrantLog(home, build)
    fetch = Fetcher(user_agent="test", environ={})
    opened: list[str] = []

    def show(url: str) -> bool:
        opened.append(url)
        return True

    logins = Logins(home, store, fetch, log, build=build, open_browser=show, timing=timing or Timing(), reached=reached)
    made = Desk(home, server, logins, store, settings or OAuth(), opened)
    logins.on_grant = lambda id, grant: made.granted.append((id, grant))
    try:
        yield made
    finally:
        await logins.close()
        await fetch.close()


def asked(url: str) -> dict[str, str]:
    """The parameters of an authorize URL."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query, strict_parsing=True).items()}


def port_in(url: str) -> int:
    """Where a published URL sends the browser back to. Any other program may have the stable port just now."""
    port = urlsplit(asked(url)["redirect_uri"]).port
    assert port is not None
    return port
