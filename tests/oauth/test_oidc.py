"""The real authorization server does what the tests of the bridge rely on."""

from __future__ import annotations

import jwt
import pytest

from .clicker import approve_device, click
from .client import REDIRECT, BareClient
from .oidc import OidcLab

pytestmark = pytest.mark.conformance


async def test_login_with_pages_and_a_token_for_exactly_this_resource(real_lab: OidcLab) -> None:
    async with BareClient(real_lab.url) as client:
        tokens = await client.log_in()
        assert client.seen is not None
        posts = [step for step in client.seen.steps if step[0] == "POST"]
        assert len(posts) == 2  # sign in, then consent
        assert client.seen.answer("iss") == real_lab.issuer
        assert client.metadata["code_challenge_methods_supported"] == ["S256"]
        claims = jwt.decode(tokens["access_token"], options={"verify_signature": False})
        assert claims["aud"] == real_lab.url
        answer = await client.call("write", tokens["access_token"], key="one")
        assert answer.status_code == 200
        assert real_lab.truth.writes == {"one": 1}
        counts = await real_lab.counts()
        assert (counts["registrations"], counts["logins_finished"]) == (1, 1)


async def test_a_spent_refresh_token_takes_the_winners_pair_along(real_lab: OidcLab) -> None:
    async with BareClient(real_lab.url) as client:
        first = await client.log_in()
        second = (await client.refresh(first["refresh_token"])).json()
        assert second["refresh_token"] != first["refresh_token"]
        reused = await client.refresh(first["refresh_token"])
        assert (reused.status_code, reused.json()["error"]) == (400, "invalid_grant")
        dead = await client.refresh(second["refresh_token"])
        assert dead.json()["error"] == "invalid_grant"
        counts = await real_lab.counts()
        assert (counts["refreshes_ok"], counts["reuse_detected"], counts["grants_revoked"]) == (1, 1, 1)


async def test_registration_checks_redirect_uris(real_lab: OidcLab) -> None:
    async with BareClient(real_lab.url) as client:
        await client.discover()
        refused = await client.register(redirect_uris=["http://10.0.0.1/callback"])
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_redirect_uri")
        taken = await client.register()
        assert taken.status_code == 201
        assert taken.json()["redirect_uris"] == [REDIRECT]


async def test_another_resource_is_refused(real_lab: OidcLab) -> None:
    async with BareClient(real_lab.url) as client:
        await client.discover()
        await client.register()
        seen = await click(client.authorize_url(resource=f"{real_lab.url}/"), open_callback=False)
        assert seen.answer("error") == "invalid_target"


async def test_a_person_who_denies(real_lab: OidcLab) -> None:
    async with BareClient(real_lab.url) as client:
        await client.discover()
        await client.register()
        seen = await click(client.authorize_url(), deny=True, open_callback=False)
        assert seen.answer("error") == "access_denied"
        assert seen.answer("iss") == real_lab.issuer


async def test_early_401_and_a_good_refresh(real_lab: OidcLab) -> None:
    async with BareClient(real_lab.url) as client:
        tokens = await client.log_in()
        assert (await client.call("echo", tokens["access_token"], value="x")).status_code == 200
        real_lab.verifier.revoke_access()
        answer = await client.call("echo", tokens["access_token"], value="x")
        assert answer.status_code == 401
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
        renewed = (await client.refresh(tokens["refresh_token"])).json()
        assert (await client.call("echo", renewed["access_token"], value="x")).status_code == 200


async def test_forged_tokens_are_refused(real_lab: OidcLab) -> None:
    async with BareClient(real_lab.url) as client:
        tokens = await client.log_in()
        head, payload, signature = tokens["access_token"].split(".")
        flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
        assert (await client.call("echo", f"{head}.{payload}.{flipped}")).status_code == 401
        assert (await client.call("echo", "opaque")).status_code == 401


async def test_device_flow(real_lab: OidcLab) -> None:
    async with BareClient(real_lab.url) as client:
        await client.discover()
        client.client_id = real_lab.device_client
        form = {"client_id": client.client_id, "scope": "mcp", "resource": client.resource}
        device = (await client.http.post(client.metadata["device_authorization_endpoint"], data=form)).json()
        kind = "urn:ietf:params:oauth:grant-type:device_code"
        waiting = await client.token(kind, device_code=device["device_code"])
        assert waiting.json()["error"] == "authorization_pending"
        seen = await approve_device(device["verification_uri"], device["user_code"])
        assert "Success" in seen.page
        tokens = (await client.token(kind, device_code=device["device_code"])).json()
        assert (await client.call("echo", tokens["access_token"], value="x")).status_code == 200
        assert "refresh_token" in tokens


async def test_client_credentials_and_revocation(real_lab: OidcLab) -> None:
    async with BareClient(real_lab.url) as client:
        await client.discover()
        auth = (real_lab.machine_client, real_lab.machine_secret)
        tokens = (await client.token("client_credentials", auth, scope="mcp")).json()
        assert "refresh_token" not in tokens
        assert (await client.call("echo", tokens["access_token"], value="x")).status_code == 200
        tokens = await client.log_in()
        endpoint = client.metadata["revocation_endpoint"]
        form = {"token": tokens["refresh_token"], "client_id": client.client_id}
        assert (await client.http.post(endpoint, data=form)).status_code == 200
        assert (await client.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
