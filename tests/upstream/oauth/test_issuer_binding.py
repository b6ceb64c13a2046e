"""A configured client stays with its authorization server: no other one gets its id or secret, in any flow."""

from __future__ import annotations

import secrets
import stat
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from tests.upstream.oauth.machine import QUICK, Machine, fault_of, machine

from interlock.cli.signing_out import SignOut
from interlock.lab.auth import AuthLab
from interlock.manifest.config import OAuth
from interlock.model.verdict import Verdict
from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.grant import Grant, Registration
from interlock.upstream.oauth.grant_store import GrantStore, StoreTrouble, grant_id
from interlock.upstream.oauth.issuer_binding import WrongIssuer, bound_to, check, hold
from interlock.upstream.oauth.refresh import renew

URL = "https://mcp.example.com/mcp"
OLD = "https://login.example.com"
NEW = "https://evil.example"
DESK = OAuth(client_id="desk")


def at(issuer: str, url: str = URL) -> Discovered:
    return Discovered(server_url=url, resource=url, issuer=issuer, metadata=ServerMetadata(issuer=issuer))


@pytest.fixture
def store(tmp_path: Path) -> GrantStore:
    return GrantStore(tmp_path)


# -- what is remembered


def test_the_first_use_decides(store: GrantStore) -> None:
    assert bound_to(store, URL, DESK, {}) is None
    check(store, at(NEW), DESK, {})  # looking binds nothing
    hold(store, at(OLD), DESK, {})
    assert bound_to(store, URL, DESK, {}) == OLD
    for work in (check, hold):
        with pytest.raises(WrongIssuer) as caught:
            work(store, at(NEW), DESK, {})
        assert not caught.value.unreachable
        for text in (OLD, NEW, "desk", f"`interlock logout {URL}`", "oauth.issuer (--issuer)"):
            assert text in caught.value.what
    hold(store, at(OLD), DESK, {})
    (file,) = store.root.glob("*.issuer.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("settings", "environ", "url"),
    [
        (OAuth(client_id="other"), {}, URL),
        (DESK, {}, f"{URL}2"),
        (OAuth(), {}, URL),
        (OAuth(client_metadata_url="https://a.example/client.json"), {}, URL),  # such an id is good everywhere
        (OAuth(client_id_env="ID"), {"ID": "other"}, URL),
    ],
)
def test_others_are_free(store: GrantStore, settings: OAuth, environ: Mapping[str, str], url: str) -> None:
    hold(store, at(OLD), DESK, {})
    check(store, at(NEW, url), settings, environ)


def test_an_id_from_the_environment_is_held_too(store: GrantStore) -> None:
    hold(store, at(OLD), DESK, {})
    with pytest.raises(WrongIssuer):
        check(store, at(NEW), OAuth(client_id_env="ID"), {"ID": "desk"})


def test_only_the_slash_after_the_host_is_forgiven(store: GrantStore) -> None:
    hold(store, at(OLD), DESK, {})
    check(store, at(f"{OLD}/"), DESK, {})
    for other in (f"{OLD}/x", OLD.upper(), f"{OLD}:443", f"{OLD}//"):
        with pytest.raises(WrongIssuer):
            check(store, at(other), DESK, {})


def test_the_setting_decides_for_any_client(store: GrantStore) -> None:
    hold(store, at(OLD), DESK, {})
    hold(store, at(NEW), replace(DESK, issuer=NEW), {})  # the person has accepted the move
    assert bound_to(store, URL, DESK, {}) == NEW
    for settings in (OAuth(issuer=OLD), replace(DESK, issuer=OLD)):
        with pytest.raises(WrongIssuer, match=r"allow https://login\.example\.com alone"):
            check(store, at(NEW), settings, {})


def test_a_sign_out_lets_go(store: GrantStore) -> None:
    hold(store, at(OLD), DESK, {})
    hold(store, at(OLD, f"{URL}2"), DESK, {})
    assert store.unpin(URL)
    assert not store.unpin(URL)
    check(store, at(NEW), DESK, {})
    with pytest.raises(WrongIssuer):
        check(store, at(NEW, f"{URL}2"), DESK, {})
    assert store.unpin(None)
    check(store, at(NEW, f"{URL}2"), DESK, {})


async def test_a_grant_of_a_build_that_kept_no_issuer_counts(store: GrantStore) -> None:
    for issuer, when in (("https://oldest.example", 1.0), (OLD, 2.0)):
        grant = Grant(
            server_url=URL, resource=URL, issuer=issuer, obtained_at=when,
            registration=Registration(issuer=issuer, client_id="desk", source="preset"),
        )  # fmt: skip
        async with store.locked(grant_id(URL, issuer, "desk"), 5) as held:
            held.write(grant)
    assert bound_to(store, URL, DESK, {}) == OLD
    with pytest.raises(WrongIssuer):
        hold(store, at(NEW), DESK, {})


@pytest.mark.parametrize("content", [b"", b"{}", b"nonsense"])
def test_a_damaged_file_is_no_first_use(store: GrantStore, content: bytes) -> None:
    hold(store, at(OLD), DESK, {})
    (file,) = store.root.glob("*.issuer.json")
    file.write_bytes(content)
    with pytest.raises(StoreTrouble, match="Move it away"):
        hold(store, at(NEW), DESK, {})


# -- the flows, against an honest server and one that it is moved to


@pytest.fixture
async def evil() -> AsyncIterator[AuthLab]:
    async with AuthLab(era="modern") as other:
        yield other


def untouched(evil: AuthLab) -> bool:
    """Nothing but metadata was asked for."""
    return {name for name, count in evil.counts.items() if count} <= {"metadata_requests", "resource_metadata_requests"}


def refusal(one: Machine, evil: AuthLab, message: str) -> None:
    for text in (one.lab.issuer, evil.issuer, f"interlock logout {one.lab.url}", "oauth.issuer (--issuer)"):
        assert text in message


async def test_client_credentials(tmp_path: Path, evil: AuthLab) -> None:
    async with machine(tmp_path, signed_in=False) as one:
        client = one.lab.clients.machine
        one.settings = OAuth(flow="client-credentials", client_id=client, client_secret_env="SECRET")
        process = one.process()
        process.shared.environ = {"SECRET": one.lab.clients.machine_secret}
        used = await process.after_401("", "Bearer")
        one.lab.behave.authorization_servers = (evil.issuer,)
        one.lab.revoke_access()
        one.lab.behave.refuse_access = True
        fault = None
        for _ in range(4):  # a server that took a token before may revoke a few in a row
            try:
                used = await process.after_401(used)
            except Exception as caught:
                fault = caught
                break
        assert getattr(fault, "slug", "") == "auth-misconfigured"
        refusal(one, evil, str(fault))
        # Another process, which knows nothing of it, and a machine without its grants and discoveries.
        for file in one.store.root.glob("*.json"):
            if not file.name.endswith(".issuer.json"):
                file.unlink()
        other = one.process()
        other.shared.environ = process.shared.environ
        again = await fault_of(other.after_401("", "Bearer"))
        assert (again.slug, again.verdict) == ("auth-misconfigured", Verdict.NEVER_REACHED)
        refusal(one, evil, again.message)
        # Back at its own, it works again without anybody.
        one.lab.behave.authorization_servers = None
        one.lab.behave.refuse_access = False
        third = one.process()
        third.shared.environ = process.shared.environ
        assert (await third.after_401("", "Bearer")).startswith("Bearer ")
        assert untouched(evil)


@pytest.mark.parametrize("flow", ["browser", "device"])
async def test_a_sign_in_by_a_person(tmp_path: Path, evil: AuthLab, flow: str) -> None:
    async with machine(tmp_path, signed_in=False) as one:
        one.settings = OAuth(flow=flow, client_id=one.lab.clients.preset)  # type: ignore[arg-type]
        first = await fault_of(one.process().after_401("", "Bearer"))
        assert first.slug == "login-needed"
        one.lab.behave.authorization_servers = (evil.issuer,)
        opened = len(one.processes[0].browser)
        for file in one.store.root.glob("*.found.json"):
            file.unlink()
        process = one.process()
        fault = await fault_of(process.after_401("", "Bearer"))
        assert (fault.slug, fault.authorize_url) == ("auth-misconfigured", None)
        refusal(one, evil, fault.message)
        assert (process.browser, len(one.processes[0].browser)) == ([], opened)
        assert untouched(evil)


async def test_a_refresh(tmp_path: Path, evil: AuthLab) -> None:
    """Also where a grant of the other server is there, from the time before clients were held."""
    async with machine(tmp_path) as one:
        client = one.lab.clients.preset
        found = msgspec.structs.replace(one.found, issuer=evil.issuer, metadata=msgspec.structs.replace(
            one.found.metadata, issuer=evil.issuer, token_endpoint=f"{evil.issuer}/token"
        ))  # fmt: skip
        id = grant_id(found.resource, found.issuer, client)
        planted = msgspec.structs.replace(
            one.grant, issuer=evil.issuer, expires_at=time.time() - 10, obtained_at=1.0,
            registration=msgspec.structs.replace(one.grant.registration, issuer=evil.issuer),
        )  # fmt: skip
        async with one.store.locked(id, 5) as held:
            held.write(planted)
        process = one.process()
        fault = await fault_of(
            renew(process.shared, "srv", id, found, rejected=None, waited=True, settings=one.settings)
        )
        assert fault.slug == "auth-misconfigured"
        refusal(one, evil, fault.message)
        assert untouched(evil)
        # The honest one goes on.
        await one.expire()
        assert (await one.process().value()).startswith("Bearer ")
        assert one.store.pinned(one.lab.url, client) == one.lab.issuer


async def test_the_held_one_is_chosen_among_several(tmp_path: Path, evil: AuthLab) -> None:
    async with machine(tmp_path, signed_in=False) as one:
        client = one.lab.clients.machine
        one.settings = OAuth(flow="client-credentials", client_id=client, client_secret_env="SECRET")
        hold(one.store, at(one.lab.issuer, one.lab.url), one.settings, {})
        one.lab.behave.authorization_servers = (evil.issuer, one.lab.issuer)
        process = one.process()
        process.shared.environ = {"SECRET": one.lab.clients.machine_secret}
        assert (await process.after_401("", "Bearer")).startswith("Bearer ")
        assert untouched(evil)


async def test_a_revocation_sends_no_secret_to_another_issuer(tmp_path: Path, evil: AuthLab) -> None:
    async with machine(tmp_path) as one:
        secret = secrets.token_urlsafe(16)
        await one.change(
            issuer=evil.issuer,
            registration=Registration(
                issuer=one.lab.issuer, client_id="desk", client_secret=secret, source="preset",
                auth_method="client_secret_basic",
            ),
        )  # fmt: skip
        shared = one.process().shared
        outcome = await SignOut(one.store, shared.fetch, shared.log, tell=True).run(one.id)
        assert (outcome.revoked, outcome.left) == (False, True)
        assert "belongs to another authorization server" in outcome.text
        assert untouched(evil)


# -- one resource, two servers


async def test_a_grant_that_only_a_setting_makes_fit_is_not_shared(tmp_path: Path) -> None:
    """Two servers with one `resource` from the settings: the second one gets no token without a person."""
    name = "https://named.example/x"
    async with machine(tmp_path, signed_in=False, settings=OAuth(resource=name)) as one, AuthLab(era="modern") as other:
        first = one.process()
        await first.auth._discover(None)
        found, id = first.auth._known.found, first.auth._known.id
        assert found is not None
        assert id is not None
        registration = one.registration()
        async with one.store.locked(id, 5) as held:
            held.write(
                Grant(
                    server_url=one.lab.url, resource=name, issuer=found.issuer, registration=registration,
                    access_token=secrets.token_urlsafe(16), obtained_at=time.time(), expires_at=time.time() + 600,
                )
            )  # fmt: skip
        assert (await one.process().after_401("", "Bearer")).startswith("Bearer ")
        other.behave.authorization_servers = (one.lab.issuer,)
        neighbour = Machine(other, one.home, OAuth(resource=name), QUICK)
        process = neighbour.process()
        fault = await fault_of(process.after_401("", "Bearer"))
        await process.close()
        assert fault.slug == "login-needed"
        assert f"this machine has a grant for {name} that was given for the server {one.lab.url}" in fault.message
