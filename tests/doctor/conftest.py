"""A machine with an empty home, a scripted server, and a way to examine it."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest

from interlock.doctor import bridge, processes
from interlock.doctor.case import Case, Machine
from interlock.doctor.finding import Finding
from interlock.lab.auth import AuthLab
from interlock.manifest.config import HttpTransport, OAuth, Origin
from interlock.upstream.oauth.discovery import discover
from interlock.upstream.oauth.fetch import Fetcher
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.grant_log import GrantLog
from interlock.upstream.oauth.grant_store import GrantStore, grant_id
from interlock.upstream.oauth.scopes import wanted
from interlock.upstream.oauth.shared import Shared, shared_for

from .ward import Ward

SECONDS = 3.0


def build() -> str:
    return "v0.0.0+test"


@dataclass
class Clinic:
    """`transport` and `environ` may be changed before an examination."""

    machine: Machine
    fetch: Fetcher
    environ: dict[str, str]
    transport: HttpTransport = field(default_factory=lambda: HttpTransport(oauth=OAuth()))
    declared: Origin | None = None

    def case(self, url: str) -> Case:
        return Case(url, url, self.transport, self.machine, self.fetch, SECONDS, self.declared)

    async def examine(self, url: str, *checks: str) -> list[Finding]:
        """All findings, or those of these checks."""
        findings = await bridge.of_server(self.case(url))
        return [each for each in findings if not checks or each.check in checks]

    @property
    def home(self) -> Path:
        return self.machine.home

    def shared(self) -> Shared:
        return shared_for(
            self.home, self.environ, build=build, user_agent="test", announce=lambda text: None, open_browser=None
        )

    async def log_in(self, lab: AuthLab, settings: OAuth | None = None) -> tuple[str, Grant]:
        """A real login, as any bridge makes one. The id and the grant."""
        settings = settings or self.transport.oauth or OAuth()
        shared = self.shared()
        try:
            found = await discover(shared.fetch, lab.url, None, settings, 10)
            shared.store.remember(found)
            id = grant_id(found.resource, found.issuer, None)
            offer = await shared.logins.offer(
                id, found, settings, self.environ, scope=wanted(found, settings), seconds=10, by_hand=True
            )
            async with httpx2.AsyncClient(trust_env=False) as browser:
                answer = await browser.get(offer.url)
                assert (await browser.get(answer.headers["location"])).status_code == 200
            grant = shared.store.read(id)
            assert grant is not None
            return id, grant
        finally:
            await shared.close()

    async def change(self, id: str, make: Callable[[Grant], Grant]) -> None:
        """Put another grant in the place of the one that is kept."""
        async with self.store().locked(id, 5) as held:
            grant = held.read()
            assert grant is not None
            held.write(make(grant))

    def store(self) -> GrantStore:
        return GrantStore(self.home, GrantLog(self.home, build))


@pytest.fixture
async def clinic(interlock_home: Path, tmp_path: Path) -> AsyncIterator[Clinic]:
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    environ = {"PATH": os.environ.get("PATH", ""), "HOME": str(tmp_path / "home")}
    machine = Machine(interlock_home, tmp_path / "home", folder, environ)
    fetch = Fetcher(user_agent="test", environ=environ)
    yield Clinic(machine, fetch, environ)
    await fetch.close()


@pytest.fixture
async def lab() -> AsyncIterator[AuthLab]:
    async with AuthLab(era="modern") as made:
        yield made


@pytest.fixture
def snapshot() -> Callable[[Path], Mapping[str, tuple[int, int, bytes]]]:
    """Every file and folder below: mode, time of change, content."""

    def take(root: Path) -> Mapping[str, tuple[int, int, bytes]]:
        found = {}
        for path in sorted((root, *root.rglob("*"))):
            status = path.lstat()
            content = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
            found[str(path)] = (status.st_mode, status.st_mtime_ns, content)
        return found

    return take


@pytest.fixture
def ward(interlock_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ward:
    """An empty machine, without the processes of the one that the tests run on."""
    folder = tmp_path / "work"
    folder.mkdir(exist_ok=True)
    monkeypatch.setattr(processes, "running", list)
    return Ward(interlock_home, tmp_path / "home", folder)


Examine = Callable[..., Awaitable[list[Finding]]]
