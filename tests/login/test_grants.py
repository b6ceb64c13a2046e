"""The list of grants: every state as a word and on the server's clock, a login that is open, and never a token."""

from __future__ import annotations

import json
import re
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
        "2 times, last",
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
    assert listed["login"]["listening"] is False
    out = (await shell.run("grants")).out
    assert re.search(r"^  sign-in  open since [0-9] s$", out, re.MULTILINE)
    assert f"           {url}\n" in out
    assert f"nobody listens for it now: `interlock login {RESOURCE}` opens the same address again" in out


async def test_addresses_stay_whole_on_a_narrow_terminal(shell: Shell, tmp_path: Path) -> None:
    long = f"https://mcp.example.com/{'team/' * 20}mcp"
    await put(shell.home, msgspec.structs.replace(GRANT, resource=long, server_url=long, issuer=f"{ISSUER}/{'t' * 60}"))
    shell.environ |= {"COLUMNS": "40", "TERM": "dumb"}
    lines = (await shell.run("grants")).out.splitlines()
    assert lines[0] == f"{long}  live"
    assert f"  issuer   {ISSUER}/{'t' * 60}" in lines
    assert lines[-1].strip()


async def test_two_clients_at_one_server_are_told_apart(shell: Shell) -> None:
    registration = msgspec.structs.replace(REGISTRATION, client_id="desk-7", source="preset")
    await put(shell.home, GRANT)
    async with GrantStore(shell.home).locked(grant_id(RESOURCE, ISSUER, "desk-7"), 5) as held:
        held.write(msgspec.structs.replace(GRANT, registration=registration))
    first, second = (await shell.run("grants")).out.split("\n\n")
    assert [text.splitlines()[0] for text in (first, second)] == [f"{RESOURCE}  live"] * 2
    assert sorted("  client   desk-7" in text for text in (first, second)) == [False, True]
    assert "client-1" not in first + second


async def test_a_grant_of_an_issuer_that_the_server_names_no_more(shell: Shell) -> None:
    await put(shell.home, GRANT)
    new = "https://new.example.com"
    GrantStore(shell.home).remember(
        Discovered(server_url=RESOURCE, resource=RESOURCE, issuer=new, metadata=ServerMetadata(issuer=new))
    )
    (listed,) = (await shell.run("grants", "--json")).json
    assert (listed["state"], listed["movedTo"]) == ("live", new)
    assert f"the server names another one now, {new}: this grant is of no use there" in (await shell.run("grants")).out


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
