"""Which scopes to ask for, and how two sets of scopes become one. Order is kept, so that equal wishes make equal requests."""

from __future__ import annotations

import re
from collections.abc import Iterable

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.documents import Discovered

MAX_SCOPES = 200
# scope-token of RFC 6749, section 3.3.
_TOKEN = re.compile(r"[!#-\[\]-~]{1,512}")


def split(text: str) -> tuple[str, ...]:
    """The scopes of a space-separated list, each once; what cannot be a scope is left out."""
    return union(text.split())


def union(*sets: Iterable[str]) -> tuple[str, ...]:
    """All scopes of all sets, each once, first come first (2026-07-28, authorization: Step-Up Authorization Flow)."""
    merged: dict[str, None] = {}
    for each in sets:
        for scope in each:
            if _TOKEN.fullmatch(scope) and len(merged) < MAX_SCOPES:
                merged[scope] = None
    return tuple(merged)


def wanted(found: Discovered, settings: OAuth) -> tuple[str, ...]:
    """What to ask for at first; empty: send no `scope` at all.

    The manifest's own wish, else the challenge, else the resource's list (2026-07-28, authorization: Scope Selection
    Strategy). `offline_access` is added where the authorization server lists it and anything is asked for at all: alone it
    would replace the server's default.
    """
    chosen = settings.scopes or found.challenge_scope or found.scopes_supported or ()
    if settings.scopes or not chosen or settings.flow == "client-credentials":
        return union(chosen)
    offline = [scope for scope in found.metadata.scopes_supported or () if scope == "offline_access"]
    return union(chosen, offline)
