"""What a login inherits from the one before it whose owner is gone: its port, its verifiers, and its URL where that still holds.

All of it only under the login's lock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from interlock.manifest.config import OAuth
from interlock.upstream.oauth import offers
from interlock.upstream.oauth.client_of import preset_of
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.flow_note import PENDING_SECONDS, FlowNote, read_note, remove_note
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.ground import Ground
from interlock.upstream.oauth.ports import candidates, port_of
from interlock.upstream.oauth.redeem import forget_code
from interlock.upstream.oauth.registration import still_valid


def left_behind(ground: Ground, id: str, found: Discovered) -> FlowNote | None:
    """The note of the login before, where it was for the same resource at the same authorization server."""
    note = read_note(ground.root, id)
    if note is None or note.kind != "browser":
        return None
    same = (note.found.issuer, note.found.resource) == (found.issuer, found.resource)
    return note if same else None


def ports_for(
    ground: Ground, id: str, found: Discovered, settings: OAuth, environ: Mapping[str, str], before: FlowNote | None
) -> tuple[int, ...]:
    """Ports to try: where an old click would land, then the one that is registered for us, then our own candidates."""
    listed = candidates(id, settings)
    if settings.callback_port is not None:
        return listed
    registration = ground.store.registration(found.issuer, preset_of(settings, environ))
    dynamic = registration is not None and registration.source == "dynamic"
    registered = port_of(registration.redirect_uri) if registration is not None and dynamic else None
    known = (before.port if before is not None else None, registered)
    return tuple(dict.fromkeys((*(port for port in known if port), *listed)))


def may_go_on(
    ground: Ground,
    before: FlowNote,
    port: int,
    found: Discovered,
    settings: OAuth,
    environ: Mapping[str, str],
    scope: tuple[str, ...],
) -> bool:
    """Whether the URL of the login before is still good, so that the machine keeps on saying the same one."""
    if before.port != port or not before.pending or before.found.metadata != found.metadata:
        return False
    newest = before.pending[-1]
    if time.time() - newest.created >= PENDING_SECONDS / 2 or not set(scope) <= set(newest.scope):
        return False
    kept = ground.store.registration(found.issuer, preset_of(settings, environ))
    return (
        kept is not None
        and kept.client_id == before.registration.client_id
        and still_valid(kept, settings, environ, newest.redirect_uri, time.time())
    )


def served(note: FlowNote, grant: Grant) -> bool:
    """Whether a grant that came since has all that the open login asks for: a refresh alone brings no wider scopes."""
    return bool(note.pending) and set(note.pending[-1].scope) <= set(grant.scope)


def tidy(ground: Ground, id: str, note: FlowNote) -> None:
    """Put away what an owner left behind that died with its grant already stored."""
    remove_note(ground.root, id, note.flow_id)
    forget_code(ground.root, id)
    offers.finished(ground.root, id)
