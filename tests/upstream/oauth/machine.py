"""One machine with a grant for the lab's server, and several "processes" on it that share nothing but the disk."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from interlock.lab.auth import AuthLab
from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.upstream.oauth.authorizer import OAuthAuthorization
from interlock.upstream.oauth.discovery import discover
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Answer
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.grant_store import GrantStore, grant_id
from interlock.upstream.oauth.shared import Shared, shared_for
from interlock.upstream.oauth.timing import Timing
from interlock.upstream.oauth.tokens import grant_from, read_answer

QUICK = Timing(
    login_seconds=20, snooze_seconds=20, linger_seconds=2, grace_seconds=1.0, knock_seconds=0.3, refresh_lead=60
)
PATIENT = 20.0
"""What a caller gives to authorization here; the machine may be slow."""


def nothing(step: str) -> None:
    return


class Process:
    """What one Interlock holds: its own HTTP client, its own copy of the grant."""

    def __init__(
        self, home: Path, lab_url: str, settings: OAuth, timing: Timing, reached: Callable[[str], None]
    ) -> None:
        self.said: list[str] = []
        self.browser: list[str] = []
        self.shared: Shared = shared_for(
            home, {}, build=lambda: "v0.0.0+test", user_agent="interlock/0", announce=self.said.append,
            open_browser=self._open, timing=timing, reached=reached,
        )  # fmt: skip
        self.auth = OAuthAuthorization("srv", lab_url, settings, self.shared)

    def _open(self, url: str) -> bool:
        self.browser.append(url)
        return True

    async def value(self, seconds: float = PATIENT) -> str:
        """A header to send, as a carrier gets it."""
        return self.auth.current() or await self.auth.ready(seconds)

    async def after_401(
        self, used: str, challenge: str = 'Bearer error="invalid_token"', seconds: float = PATIENT
    ) -> str:
        return await self.auth.refused(used, 401, {b"www-authenticate": challenge.encode()}, seconds)

    async def close(self) -> None:
        await self.auth.close()
        await self.shared.close()


class Machine:
    """A home folder, a lab, and the grant between them."""

    def __init__(self, lab: AuthLab, home: Path, settings: OAuth, timing: Timing) -> None:
        self.lab = lab
        self.home = home
        self.settings = settings
        self.timing = timing
        self.store = GrantStore(home)
        self.found: Discovered
        self.id = ""
        self.processes: list[Process] = []

    def process(
        self, *, idle: bool = False, reached: Callable[[str], None] = nothing, timing: Timing | None = None
    ) -> Process:
        """`idle`: it refreshes ahead of need too, at moments of its own choice. Else it only does what it is asked."""
        made = Process(self.home, self.lab.url, self.settings, timing or self.timing, reached)
        if not idle:
            made.auth._ahead.close()
        self.processes.append(made)
        return made

    @property
    def grant(self) -> Grant:
        grant = self.store.read(self.id)
        assert grant is not None
        return grant

    async def change(self, **fields: Any) -> Grant:
        """Write something else into the grant, under its lock."""
        async with self.store.locked(self.id, 10) as held:
            grant = held.read()
            assert grant is not None
            return held.write(msgspec.structs.replace(grant, **fields))

    async def expire(self) -> Grant:
        """The access token is over, by the clock that judges it."""
        return await self.change(expires_at=time.time() + self.lab.behave.clock - 10)

    def log(self) -> str:
        path = self.home / "grant.log"
        return path.read_text() if path.exists() else ""

    def secrets(self) -> list[str]:
        """Every token that the lab has issued."""
        return [*self.lab.families.access, *self.lab.families.refresh]

    def registration(self) -> Registration:
        if self.settings.client_id is not None:
            return Registration(issuer=self.lab.issuer, client_id=self.settings.client_id, source="preset")
        answer = self.lab.clients.register(
            {
                "redirect_uris": ["http://localhost:33999/callback"],
                "application_type": "native",
                "grant_types": ["authorization_code", "refresh_token"],
            },
            time.time() + self.lab.behave.clock,
        )
        secret = answer.get("client_secret")
        ends = answer.get("client_secret_expires_at")
        return Registration(
            issuer=self.lab.issuer,
            client_id=str(answer["client_id"]),
            source="dynamic",
            client_secret=str(secret) if secret else None,
            secret_expires_at=float(str(ends)) if ends else None,
            auth_method=self.lab.behave.client_auth,
            redirect_uri="http://localhost:33999/callback",
        )

    async def sign_in(self, scope: tuple[str, ...] = ("mcp",)) -> Grant:
        """A grant as a finished login leaves it, without the click."""
        lab, process = self.lab, self.process()
        self.found = await discover(process.shared.fetch, lab.url, None, self.settings, 10)
        registration = self.registration()
        body = lab.families.open(registration.client_id, scope, self.found.resource)
        answer = Answer(200, {}, msgspec.json.encode(body), lab.issuer, None)
        grant = grant_from(
            read_answer(answer), found=self.found, registration=registration, asked_scope=scope, now=time.time(),
            skew=lab.behave.clock + lab.behave.as_date, previous=None,
        )  # fmt: skip
        self.id = grant_id(self.found.resource, self.found.issuer, self.settings.client_id)
        self.store.remember(self.found, override=self.settings.resource)
        if registration.source == "dynamic":
            self.store.keep_registration(registration)
        async with self.store.locked(self.id, 10) as held:
            return held.write(grant)


@asynccontextmanager
async def machine(
    home: Path,
    *,
    settings: OAuth | None = None,
    timing: Timing = QUICK,
    era: Any = "modern",
    signed_in: bool = True,
    **behave: object,
) -> AsyncIterator[Machine]:
    """`behave` are settings of the lab, from before the grant is made."""
    async with AuthLab(era=era) as lab:
        for name, value in behave.items():
            assert hasattr(lab.behave, name)
            setattr(lab.behave, name, value)
        made = Machine(lab, home, settings or OAuth(client_id=lab.clients.preset), timing)
        try:
            if signed_in:
                await made.sign_in()
            yield made
        finally:
            lab.behave.mishaps.clear()
            lab.behave.as_silent = lab.behave.rs_silent = False
            for process in made.processes:
                async with asyncio.timeout(30):
                    await process.close()


async def fault_of(work: Any) -> Fault:
    """The fault that something ends in."""
    try:
        value = await work
    except Fault as fault:
        return fault
    raise AssertionError(f"it did not fail: {type(value).__name__}")


@contextmanager
def no_secret_in(machine: Machine, *texts: Callable[[], str]) -> Iterator[None]:
    """None of the lab's tokens is in any of these texts, or in grant.log, afterwards."""
    yield
    for text in (machine.log, *texts):
        said = text()
        for secret in machine.secrets():
            assert secret not in said


async def become(true: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until something is so that nobody reports. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def until(seconds: float) -> None:
    """Let so much time pass, where the clock itself is what is waited for."""
    await asyncio.sleep(seconds)
