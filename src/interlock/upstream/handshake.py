"""Learning a server's era and introducing ourselves: `server/discover` first, `initialize` where that fails.

HTTP: 401, 403, 5xx and silence settle nothing. stdio: silence, or any error that is not a modern one, means legacy
(2026-07-28, basic/transports: Backward Compatibility).
"""

from __future__ import annotations

import re
from enum import Enum

from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.contract import Reply
from interlock.upstream.session import Session
from interlock.wire import codes, translate
from interlock.wire.eras import (
    LATEST_LEGACY,
    LEGACY_VERSIONS,
    MODERN_VERSION,
    MODERN_VERSIONS,
    Era,
    modern_meta,
)
from interlock.wire.messages import EMPTY_OBJECT, Raw, encode, try_json, try_list, try_map, try_str

PROBE_SECONDS = 5.0
_REVISION = re.compile(r"\d{4}-\d\d-\d\d")


class Found(Enum):
    MODERN = "modern"
    LEGACY = "legacy"


async def discover(session: Session, seconds: float) -> Found:
    """Ask `server/discover`. On MODERN the session is ready. Raises Fault where the answer settles nothing."""
    session.era = Era.MODERN
    session.version = MODERN_VERSION
    reply = await _discover(session, seconds)
    if reply.is_error and translate.error_code(reply.body) == codes.UNSUPPORTED_VERSION:
        error = try_map(reply.body) or {}
        data = try_map(error.get("data")) or {}
        supported = [try_str(item) for item in try_list(data.get("supported")) or []]
        mutual = [version for version in MODERN_VERSIONS if version in supported]
        if mutual:
            session.version = mutual[0]
            reply = await _discover(session, seconds)
        elif any(version in LEGACY_VERSIONS for version in supported):
            session.era = Era.LEGACY
            return Found.LEGACY
        else:
            raise _refused(
                session,
                f"it supports only {session.mask(', '.join(filter(None, supported)))[:200] or 'unnamed revisions'}",
            )
    if reply.is_error:
        code = translate.error_code(reply.body)
        if code in codes.MODERN_ERRORS:
            raise _refused(session, f"it answered server/discover with error {code}")
        session.era = Era.LEGACY
        return Found.LEGACY
    result = try_map(reply.body)
    versions = [try_str(item) for item in try_list((result or {}).get("supportedVersions")) or []]
    if result is None or not versions:
        session.era = Era.LEGACY
        return Found.LEGACY
    mutual = [version for version in MODERN_VERSIONS if version in versions]
    if not mutual:
        session.era = Era.LEGACY
        return Found.LEGACY
    session.version = mutual[0]
    session.capabilities = try_map(result.get("capabilities")) or {}
    session.instructions = try_str(result.get("instructions"))
    meta = try_map(result.get("_meta")) or {}
    session.server_info = meta.get("io.modelcontextprotocol/serverInfo")
    return Found.MODERN


async def _discover(session: Session, seconds: float) -> Reply:
    meta = modern_meta({}, session.client_info, EMPTY_OBJECT, None, None, session.version)
    return await session.raw_request("server/discover", b'{"_meta":' + bytes(meta) + b"}", seconds)


async def initialize(session: Session, capabilities: Raw | None, seconds: float) -> None:
    """The legacy handshake, with the capabilities of the client that the session is for. Raises Fault."""
    session.era = Era.LEGACY
    params = (
        b'{"protocolVersion":' + encode(LATEST_LEGACY)
        + b',"capabilities":' + bytes(capabilities or EMPTY_OBJECT)
        + b',"clientInfo":' + session.client_info + b"}"
    )  # fmt: skip
    reply = await session.raw_request("initialize", params, seconds)
    if reply.is_error:
        error = try_map(reply.body) or {}
        text = try_str(error.get("message")) or "no reason given"
        raise _refused(session, f"it answered initialize with an error: {session.mask(text)[:200]}")
    result = try_map(reply.body)
    version = try_str((result or {}).get("protocolVersion"))
    if result is None or version is None:
        raise _refused(session, "its answer to initialize has no protocolVersion")
    if _REVISION.fullmatch(version) is None or version > LATEST_LEGACY:
        # All older revisions are one family; anything else cannot be spoken, and must not get into a header.
        raise _refused(
            session, f"it wants revision {session.mask(version)[:40]!r} with a handshake, which does not exist"
        )
    session.version = version
    session.capabilities = try_map(result.get("capabilities")) or {}
    session.instructions = try_str(result.get("instructions"))
    session.server_info = result.get("serverInfo")
    session.notify("notifications/initialized", None)


def _refused(session: Session, why: str) -> Fault:
    return Fault(
        "handshake-failed",
        f"{session.server}: the protocol handshake failed: {why}.",
        stage=Stage.DISCOVER,
        verdict=Verdict.NEVER_REACHED,
        server=session.server,
    )


def listens_for(session: Session) -> list[str]:
    """The change notifications that a modern server says it can send, as members of the listen filter."""
    names = []
    for kind in ("tools", "prompts", "resources"):
        members = try_map(session.capabilities.get(kind))
        if members is not None and try_json(members.get("listChanged")) is True:
            names.append(f"{kind}ListChanged")
    return names


def can_subscribe(session: Session) -> bool:
    members = try_map(session.capabilities.get("resources"))
    return members is not None and try_json(members.get("subscribe")) is True


def has(session: Session, capability: str) -> bool:
    return capability in session.capabilities
