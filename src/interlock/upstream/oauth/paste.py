"""Redeems the redirect URL that a person pasted: for SSH, WSL and containers, where the browser cannot reach the listener."""

from __future__ import annotations

import time

from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.oauth import identity, offers
from interlock.upstream.oauth.flow_note import key_of, read_note, remove_note
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.ground import Ground, host_of
from interlock.upstream.oauth.listening import OpenLogin
from interlock.upstream.oauth.redeem import TOKEN_SECONDS, Unredeemed, forget_code, redeem
from interlock.upstream.oauth.redirect import NotOurs, Refused, judge, pasted_query
from interlock.upstream.secret_forms import masked


async def redeem_pasted(ground: Ground, id: str, text: str, own: OpenLogin | None, seconds: float) -> Grant:
    """The same checks as for a click. `own`: this process's listener for the same login. Raises Fault, Busy, StoreTrouble."""
    query = pasted_query(text)
    if query is None:
        raise _refused("that is not the address that the browser was sent to at the end: it has no `state` in it", None)
    async with ground.login_lock(id, seconds):
        note = read_note(ground.root, id)
        if note is None or note.kind != "browser":
            raise _refused("no sign-in is open for this server (it may be done already)", None)
        judged = judge(query, note.pending, note.found)
        if isinstance(judged, NotOurs):
            ground.log.write("callback-ignored", host_of(note.found), f"pasted: {judged.why}")
            raise _refused(f"that address was not accepted: {judged.why}. Nothing was changed", note.url)
        if isinstance(judged, Refused):
            secret = note.registration.client_secret or ""
            words = masked(f"{judged.error} {judged.description}".strip(), (secret,))
            ground.log.write("login-refused", host_of(note.found), words, (judged.pending.state,))
            offers.given_up(ground.root, id, ground.timing, time.time())
            remove_note(ground.root, id)
            raise _refused(f"the authorization server refused: {words}", None)
        try:
            grant = await redeem(
                ground,
                id,
                note.found,
                note.registration,
                judged.pending,
                judged.code,
                seconds=min(seconds, TOKEN_SECONDS),
            )
        except Unredeemed as failure:
            if not failure.code_is_good:
                forget_code(ground.root, id)
            raise _refused(f"the code in that address brought no grant: {failure.what}", note.url) from None
        if own is not None and own.waits:
            own.finish(grant)
        else:
            remove_note(ground.root, id)
            offers.finished(ground.root, id)
            ground.on_grant(id, grant)
    # The owner looks at its note when it is asked, and lets the port go.
    await identity.ask(note.port, key_of(ground.root))
    return grant


def _refused(why: str, url: str | None) -> Fault:
    return Fault("login-unfinished", f"{why}.", stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, authorize_url=url)
