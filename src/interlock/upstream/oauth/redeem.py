"""Redeems an authorization code: the token request with the verifier of its `state` and the resource, then the store.

Always under the login's lock, so that no code is presented by two processes: a server may take the second for a theft and
revoke what the first got (RFC 6749 section 4.1.2). The code is on disk before it is presented: if the process dies then,
the next one goes on with it, and no person has to log in again.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

import msgspec

from interlock.upstream.oauth import private_files
from interlock.upstream.oauth.client_auth import signed
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Answer, FetchFailed
from interlock.upstream.oauth.flow_note import FlowNote, Pending
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.grant_file import Damaged, Newer, decode, encode
from interlock.upstream.oauth.grant_ids import checked
from interlock.upstream.oauth.ground import Ground, host_of
from interlock.upstream.oauth.private_files import Unfit
from interlock.upstream.oauth.refusal import Class, classify
from interlock.upstream.oauth.server_clock import skew_at_issue
from interlock.upstream.oauth.tokens import BadTokenAnswer, TokenRefused, grant_from, read_answer, wrong_audience

TOKEN_SECONDS = 15.0
CODE_SECONDS = 600.0
"""RFC 6749 section 4.1.2: a code should live ten minutes at most."""
MAX_TRIES = 2
_AGAIN_AFTER = 0.5


class Unredeemed(Exception):
    """No grant came of the code. `what` is for people; `kind` says what follows."""

    def __init__(self, what: str, kind: Class, *, code_is_good: bool) -> None:
        super().__init__(what)
        self.what = what
        self.kind = kind
        self.code_is_good = code_is_good
        """True where the same code may yet be taken: it was not read, or nobody knows."""


class Arrived(msgspec.Struct, frozen=True, kw_only=True):
    """A code that came back and is not redeemed yet, in `ID.code.json`."""

    state: str
    code: str
    at: float
    tries: int = 0
    """How often it was presented, or was about to be."""
    generation: int = 0
    """Of the grant, before the code was presented: a later one is what came of it, or would be put at risk by a replay."""


def arrived(ground: Ground, id: str, note: FlowNote) -> tuple[Pending, Arrived] | None:
    """The code that a process left behind when it died, where it may still be presented."""
    root = ground.root
    try:
        content = private_files.read(_path(root, id)) if private_files.present(root) else None
        kept = None if content is None else decode("code", id, content, Arrived)[0]
    except (Unfit, Damaged, Newer):
        return None
    if kept is None or kept.tries >= MAX_TRIES or not 0 <= time.time() - kept.at < CODE_SECONDS:
        return None
    if ground.generation(id) > kept.generation:
        return None
    for pending in note.pending:
        if pending.state == kept.state:
            return pending, kept
    return None


def forget_code(root: Path, id: str) -> None:
    """Remove the code, where one is kept."""
    if private_files.present(root):
        private_files.remove(_path(root, id))


async def redeem(
    ground: Ground,
    id: str,
    found: Discovered,
    registration: Registration,
    pending: Pending,
    code: str,
    *,
    tries: int = 0,
    seconds: float = TOKEN_SECONDS,
) -> Grant:
    """The grant, stored. Only under the login's lock. `tries`: how often the code was presented before; `seconds`: for the
    token endpoint's answer. Raises Unredeemed, Busy, StoreTrouble."""
    before = ground.generation(id)
    arrived = Arrived(state=pending.state, code=code, at=time.time(), tries=tries, generation=before)
    _keep(ground.root, id, arrived)
    ground.reached("code-kept")
    secrets = (code, pending.verifier, pending.state, registration.client_secret or "")
    answer = await _present(ground, id, found, registration, pending, arrived, secrets, seconds)
    ground.reached("answered")
    try:
        tokens = read_answer(answer, secrets)
    except (TokenRefused, BadTokenAnswer) as error:
        raise _refused(ground, found, error, secrets) from None
    grant = grant_from(
        tokens,
        found=found,
        registration=registration,
        asked_scope=pending.scope,
        now=time.time(),
        skew=skew_at_issue(answer, tokens, time.time(), 0.0),
        previous=None,
    )
    kept = await ground.keep(id, grant)
    forget_code(ground.root, id)
    ground.log.write("login-done", host_of(found), f"generation {kept.generation}", secrets)
    remark = wrong_audience(tokens.access_token, found.resource)
    if remark is not None:
        ground.log.write("audience", host_of(found), remark, (tokens.access_token, tokens.refresh_token or ""))
    return kept


async def _present(
    ground: Ground,
    id: str,
    found: Discovered,
    registration: Registration,
    pending: Pending,
    arrived: Arrived,
    secrets: tuple[str, ...],
    seconds: float,
) -> Answer:
    """The token endpoint's answer. One more try where not a byte of the first had left."""
    endpoint = found.metadata.token_endpoint
    if endpoint is None:
        raise Unredeemed("its metadata names no token endpoint", Class.CONFIGURATION, code_is_good=False)
    form, basic = signed(
        registration,
        {
            "grant_type": "authorization_code",
            "code": arrived.code,
            "redirect_uri": pending.redirect_uri,
            "code_verifier": pending.verifier,
            "resource": found.resource,
        },
    )
    _keep(ground.root, id, msgspec.structs.replace(arrived, tries=arrived.tries + 1))
    ground.reached("presenting")
    for again in (True, False):
        try:
            return await ground.fetch.post_form(endpoint, form, seconds, basic)
        except FetchFailed as failure:
            if not failure.sent and again:
                await asyncio.sleep(_AGAIN_AFTER)
                continue
            event = "login-answer-lost" if failure.sent else "login-unreachable"
            ground.log.write(event, host_of(found), failure.what, secrets)
            if not failure.sent:
                with contextlib.suppress(OSError):
                    _keep(ground.root, id, arrived)  # it was not presented after all
            raise Unredeemed(failure.what, Class.OUTAGE, code_is_good=True) from None
    raise AssertionError("the second try returns or raises")


def _refused(
    ground: Ground, found: Discovered, error: TokenRefused | BadTokenAnswer, secrets: tuple[str, ...]
) -> Unredeemed:
    kind = classify(error, early=False)
    ground.log.write("login-refused", host_of(found), f"{kind.value}: {error}", secrets)
    return Unredeemed(str(error), kind, code_is_good=kind in (Class.BUSY, Class.OUTAGE, Class.EARLY))


def _keep(root: Path, id: str, value: Arrived) -> None:
    private_files.make(root)
    private_files.write(_path(root, id), encode("code", id, value))


def _path(root: Path, id: str) -> Path:
    return root / f"{checked(id)}.code.json"
