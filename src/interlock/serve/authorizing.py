"""Whoever authorizes requests to servers, for one running Interlock: made when the first server wants it, and not before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from interlock.manifest.config import Gateway, HttpTransport
from interlock.upstream.authorization import Authorization

if TYPE_CHECKING:
    from interlock.upstream.oauth.authorizer import OAuthAuthorization
    from interlock.upstream.oauth.shared import Shared
    from interlock.upstream.oauth.timing import Timing


SignIn = Literal["browser", "address", "command"]
"""What is done where a person has to sign in: a browser is opened too, only the address is told, or, in a process that is over
before anybody could have clicked, only the command that signs in."""


class Authorizing:
    """`available` is called with a server's key when its requests can be authorized again after a sign-in."""

    def __init__(
        self,
        home: Path,
        environ: Mapping[str, str],
        *,
        build: Callable[[], str],
        user_agent: str,
        announce: Callable[[str], None],
        available: Callable[[str], None],
        sign_in: SignIn,
        timing: Timing | None = None,
    ) -> None:
        self._home = home
        self._environ = environ
        self._build = build
        self._user_agent = user_agent
        self._announce = announce
        self._available = available
        self._sign_in = sign_in
        self._timing = timing
        self._shared: Shared | None = None
        self._made: list[OAuthAuthorization] = []

    def authorize(self, server: str, transport: HttpTransport, url: str) -> Authorization | None:
        """What authorizes requests to this server; None where nothing was declared."""
        if transport.token is not None:
            from interlock.upstream.oauth.static_token import StaticToken

            return StaticToken(server, transport.token, self._environ)
        if transport.oauth is None:
            return None
        from interlock.upstream.oauth.authorizer import OAuthAuthorization

        made = OAuthAuthorization(server, url, transport.oauth, self.shared)
        made.available = lambda: self._available(server)
        made.start()
        self._made.append(made)
        return made

    @property
    def shared(self) -> Shared:
        if self._shared is None:
            from interlock.upstream.oauth.browser import open_browser
            from interlock.upstream.oauth.shared import shared_for

            self._shared = shared_for(
                self._home,
                self._environ,
                build=self._build,
                user_agent=self._user_agent,
                announce=self._announce,
                open_browser=open_browser if self._sign_in == "browser" else None,
                offers=self._sign_in != "command",
                timing=self._timing,
            )
        return self._shared

    def keep_alive(self, gateway: Gateway) -> None:
        """Look after the grants of all declared servers from the start, so that one that is not used does not rot."""
        for key, config in gateway.servers.items():
            transport = config.transport
            if (
                config.enabled
                and config.blocked is None
                and isinstance(transport, HttpTransport)
                and transport.oauth is not None
                and (url := transport.endpoint or self._environ.get(transport.endpoint_env or ""))
                and not any(each.server == key for each in self._made)
            ):
                self.authorize(key, transport, url)

    @property
    def signing_in(self) -> bool:
        """True while a sign-in that was offered from this process is open."""
        return self._shared is not None and self._shared.logins.open()

    async def linger(self, seconds: float) -> None:
        """Stay for an open sign-in whose page somebody may be looking at; returns at once where there is none."""
        if self._shared is not None:
            await self._shared.logins.linger(seconds)

    def leave(self) -> None:
        """Whoever waits for a credential is told that this process ends."""
        for made in self._made:
            made.leave()

    async def close(self) -> None:
        for made in self._made:
            await made.close()
        if self._shared is not None:
            await self._shared.close()
