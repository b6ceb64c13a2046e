"""Who we are to an authorization server for a login: the registration that is kept, where it still holds, else a new one."""

from __future__ import annotations

import time
from collections.abc import Mapping

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Registration
from interlock.upstream.oauth.ground import Ground, host_of
from interlock.upstream.oauth.issuer_binding import hold
from interlock.upstream.oauth.preset import preset_of
from interlock.upstream.oauth.registration import register, still_valid

__all__ = ["client_for", "preset_of"]


async def client_for(
    ground: Ground,
    found: Discovered,
    settings: OAuth,
    environ: Mapping[str, str],
    redirect_uri: str | None,
    seconds: float,
) -> Registration:
    """The registration to use with this redirect URI. Raises RegistrationFailed, StoreTrouble.

    A configured client is used with its own authorization server alone, and from the first use on that is `found.issuer`.
    """
    hold(ground.store, found, settings, environ)
    kept = ground.store.registration(found.issuer, preset_of(settings, environ))
    if kept is not None and still_valid(kept, settings, environ, redirect_uri, time.time()):
        return kept
    made = await register(ground.fetch, found, settings, environ, redirect_uri, seconds)
    ground.store.keep_registration(made)
    if made.source == "dynamic":
        secrets = (made.client_secret or "",)
        ground.log.write("registered", host_of(found), f"with {found.issuer} as {made.client_id}", secrets)
    return made
