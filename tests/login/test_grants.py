"""The list of grants: every state as a word and on the server's clock, a login that is open, and never a token."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.flow_note import FlowNote, Pending, write_note
from interlock.upstream.oauth.grant import Grant, Refusal, Registration
from interlock.upstream.oauth.grant_store import GrantStore, grant_id

if TYPE_CHECKING:
    from .conftest import Shell

RESOURCE, ISSUER = "https://mcp.example.com/mcp", "https://login.example.com"
ID = grant_id(RESOURCE, ISSUER, None)
ACCESS, REFRESH = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
REGISTRATION = Registration(issuer=ISSUER, client_id="client-1", source="dynamic")
GRANT = Grant(
    server_url=RESOURCE,
    resource=RESOURCE,
    issuer=ISSUER,
    registration=REGISTRATION,
    access_token=ACCESS,
    refresh_token=REFRESH,
    scope=("read", "write"),
)


async def put(home: Path, grant: Grant) -> None:
    async with GrantStore(home).locked(ID, 5) as held:
        held.write(grant)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"expires_at": 600.0}, "live"),
        ({"expires_at": -5.0}, "expired"),
        ({"expires_at": 600.0, "skew": 1800.0}, "expired"),
        ({"expires_at": 2400.0, "skew": 1800.0}, "live"),
        ({"expires_at": -5.0, "skew": -1800.0}, "live"),
        ({"expires_at": None}, "live"),
        ({"state": "spent"}, "spent"),
        ({"state": "refused"}, "refused"),
        ({"state": "dead"}, "dead"),
    ],
)
async def test_states(shell: Shell, changes: dict[str, object], word: str) -> None:
    """Moments are given as seconds from now on this machine's clock."""
    if isinstance(changes.get("expires_at"), float):
        changes = {**changes, "expires_at": time.time() + changes["expires_at"]}
    await put(shell.home, msgspec.structs.replace(GRANT, **changes))
    (listed,) = (await shell.run("grants", "--json")).json
    assert (listed["state"], listed["resource"], listed["issuer"]) == (word, RESOURCE, ISSUER)
    assert (listed["scopes"], listed["client"], listed["generation"]) == (["read", "write"], "client-1", 1)
    assert listed["skewSeconds"] == changes.get("skew", 0.0)


async def test_the_table(shell: Shell) -> None:
    now = time.time()
    refusal = Refusal(first_at=now, last_at=now, count=2, error="invalid_grant", description=f"no such token {REFRESH}")
    await put(
        shell.home,
        msgspec.structs.replace(
            GRANT, expires_at=now + 7200, skew=-3600.0, refresh_expires_at=now + 1e6, refusal=refusal
        ),
    )
    done = await shell.run("grants")
    assert done.code == 0
    for words in (
        RESOURCE,
        ISSUER,
        "read write",
        "in 3 h (",
        "in 12 days (",
        "-3600 s",
        "refused 2 times",
        "invalid_grant",
    ):
        assert words in done.out
    assert ACCESS not in done.all
    assert REFRESH not in done.all


async def test_an_open_login_shows_its_address_and_no_verifier(shell: Shell) -> None:
    verifier = secrets.token_urlsafe(32)
    found = Discovered(server_url=RESOURCE, resource=RESOURCE, issuer=ISSUER, metadata=ServerMetadata(issuer=ISSUER))
    pending = Pending(
        state="s" * 20, verifier=verifier, redirect_uri="http://localhost:4000/callback", created=time.time(), scope=(),
        issuer=ISSUER,
    )  # fmt: skip
    url = f"{ISSUER}/authorize?state=x"
    note = FlowNote(
        flow_id="f", url=url, port=4000, pid=1, created=time.time(), found=found, registration=REGISTRATION, pending=(pending,)
    )  # fmt: skip
    GrantStore(shell.home).keep_registration(REGISTRATION)
    write_note(shell.home / "grants", ID, note)
    done = await shell.run("grants", "--json")
    (listed,) = json.loads(done.out)
    assert (listed["state"], listed["login"]["url"], listed["login"]["port"]) == ("none", url, 4000)
    assert verifier not in done.all
    assert f"a login is open since 0 s: {url}" in (await shell.run("grants")).out


async def test_a_damaged_file_is_named_and_left_alone(shell: Shell) -> None:
    await put(shell.home, GRANT)
    file = shell.home / "grants" / f"{ID}.json"
    file.write_text("{")
    (listed,) = (await shell.run("grants", "--json")).json
    assert (listed["state"], listed["trouble"]) == ("damaged", "no JSON")
    assert file.read_text() == "{"
    assert f"{file} cannot be read" in (await shell.run("grants")).out


async def test_nothing_there(shell: Shell) -> None:
    assert (await shell.run("grants", "--json")).json == []
    assert "interlock login SERVER" in (await shell.run("grants")).out
    assert not (shell.home / "grants").exists()
