"""Who we are to an authorization server for a login: the registration that is kept, where it still holds, else a new one."""

from __future__ import annotations

import time
from collections.abc import Mapping

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Registration
from interlock.upstream.oauth.ground import Ground, host_of
from interlock.upstream.oauth.registration import register, still_valid


def preset_of(settings: OAuth, environ: Mapping[str, str]) -> str | None:
    """The client id that the settings name, by themselves or through the environment."""
    if settings.client_id is not None:
        return settings.client_id
    return (environ.get(settings.client_id_env) or None) if settings.client_id_env is not None else None


async def client_for(
    ground: Ground,
    found: Discovered,
    settings: OAuth,
    environ: Mapping[str, str],
    redirect_uri: str | None,
    seconds: float,
) -> Registration:
    """The registration to use with this redirect URI. Raises RegistrationFailed, StoreTrouble."""
    kept = ground.store.registration(found.issuer, preset_of(settings, environ))
    if kept is not None and still_valid(kept, settings, environ, redirect_uri, time.time()):
        return kept
    made = await register(ground.fetch, found, settings, environ, redirect_uri, seconds)
    ground.store.keep_registration(made)
    if made.source == "dynamic":
        secrets = (made.client_secret or "",)
        ground.log.write("registered", host_of(found), f"with {found.issuer} as {made.client_id}", secrets)
    return made
