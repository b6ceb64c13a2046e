"""A configured client belongs to one authorization server, and no server's metadata can send its id or secret to another.

MCP 2026-07-28, client-registration: Authorization Server Binding. Which one it is says the setting `issuer`; without it,
the one that the client was first used with for this server's URL.
"""

from __future__ import annotations

from collections.abc import Mapping

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant_store import GrantStore
from interlock.upstream.oauth.issuer_pins import Pin
from interlock.upstream.oauth.metadata import same_but_slash
from interlock.upstream.oauth.preset import preset_of
from interlock.upstream.oauth.refresh_words import command
from interlock.upstream.oauth.registration import RegistrationFailed
from interlock.wire.address import shown


class WrongIssuer(RegistrationFailed):
    """The authorization server is not the one that the configured client belongs to. Nothing of the client was sent."""


def allowed(settings: OAuth, issuer: str) -> bool:
    """Whether the settings let anybody sign in at this authorization server."""
    return settings.issuer is None or same(settings.issuer, issuer)


def same(one: str, other: str) -> bool:
    """Raw strings (RFC 8414 section 3.3); the slash after a bare host is forgiven, as in discovery."""
    return one == other or same_but_slash(one, other)


def bound_to(store: GrantStore, server_url: str, settings: OAuth, environ: Mapping[str, str]) -> str | None:
    """The authorization server that the configured client is held to; None where none is, or no client is configured.

    Raises StoreTrouble.
    """
    client_id = preset_of(settings, environ)
    if client_id is None:
        return None
    return settings.issuer or store.pinned(server_url, client_id) or _used_before(store, server_url, client_id)


def check(store: GrantStore, found: Discovered, settings: OAuth, environ: Mapping[str, str]) -> None:
    """Raises WrongIssuer where the configured client belongs to another authorization server, and StoreTrouble."""
    if not allowed(settings, found.issuer):
        raise _only(found, settings.issuer or "")
    bound = bound_to(store, found.server_url, settings, environ)
    if bound is not None and not same(bound, found.issuer):
        raise _wrong(found, bound, preset_of(settings, environ) or "")


def hold(store: GrantStore, found: Discovered, settings: OAuth, environ: Mapping[str, str]) -> None:
    """`check`, and from now on the client belongs to `found.issuer`. Before anything of it is sent there."""
    check(store, found, settings, environ)
    client_id = preset_of(settings, environ)
    if client_id is not None and store.pinned(found.server_url, client_id) != found.issuer:
        store.pin(Pin(server_url=found.server_url, client_id=client_id, issuer=found.issuer))


def _used_before(store: GrantStore, server_url: str, client_id: str) -> str | None:
    """The issuer of the newest grant of this client: builds before this one kept nothing else."""
    grants = [
        grant
        for _id, grant in store.all()
        if grant.server_url == server_url
        and grant.registration.source == "preset"
        and grant.registration.client_id == client_id
    ]
    return max(grants, key=lambda each: each.obtained_at).issuer if grants else None


def _only(found: Discovered, issuer: str) -> WrongIssuer:
    return WrongIssuer(
        f"The server names the authorization server {shown(found.issuer)}, and the settings allow {shown(issuer)} alone. Nothing was "
        "sent to it. If the server has moved, correct oauth.issuer (--issuer)."
    )


def _wrong(found: Discovered, bound: str, client_id: str) -> WrongIssuer:
    return WrongIssuer(
        f"The server now names the authorization server {shown(found.issuer)}, and the configured client {client_id[:120]} belongs to "
        f"{shown(bound)}: neither its id nor its secret was sent. Where the server's operator has announced the move, and the "
        f"client is registered there too, accept it: `{command('logout', found.server_url)}` forgets the old one, or set oauth.issuer "
        f"(--issuer) to {shown(found.issuer)}."
    )
