"""Grants, registrations and discoveries for the tests of the store; every token is made at run time."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import Any

from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.grant_store import GrantStore, grant_id

SERVER = "https://resource.test/mcp"
ISSUER = "https://issuer.test"
ID = grant_id(SERVER, ISSUER, None)


def registration(client_id: str = "client", **more: Any) -> Registration:
    return Registration(**{"issuer": ISSUER, "client_id": client_id, "source": "dynamic", **more})


def grant(**more: Any) -> Grant:
    basis = {"server_url": SERVER, "resource": SERVER, "issuer": ISSUER, "registration": registration()}
    return Grant(
        **{**basis, "access_token": "at-" + secrets.token_hex(8), "refresh_token": "rt-" + secrets.token_hex(8), **more}
    )


def discovered(url: str = SERVER, resource: str = SERVER, **more: Any) -> Discovered:
    return Discovered(server_url=url, resource=resource, issuer=ISSUER, metadata=ServerMetadata(issuer=ISSUER), **more)


async def put(store: GrantStore, value: Grant, id: str = ID) -> Grant:
    async with store.locked(id, 1) as held:
        return held.write(value)


def file_of(store: GrantStore) -> Path:
    return store.root / f"{ID}.json"


def modes(root: Path) -> dict[str, int]:
    return {str(path.relative_to(root)): stat.S_IMODE(os.lstat(path).st_mode) for path in root.rglob("*")}
