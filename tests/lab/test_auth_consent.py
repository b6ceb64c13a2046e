"""The lab's authorization server: metadata, registration, consent and the device flow, honest and not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx2
import pytest
from tests.oauth.clicker import approve_device, click
from tests.oauth.client import REDIRECT, BareClient

from interlock.lab.auth import AuthLab
from interlock.lab.auth.behaviour import Behaviour

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.mark.parametrize(
    ("settings", "iss", "advertised"),
    [
        ({}, "right", True),
        ({"iss_sent": "wrong"}, "wrong", True),
        ({"iss_sent": "absent"}, None, True),
        ({"iss_advertised": False}, "right", False),
    ],
)
async def test_iss(
    lab: AuthLab, client: BareClient, settings: dict[str, Any], iss: str | None, advertised: bool
) -> None:
    await lab.control({"set": settings})
    await client.log_in()
    assert client.seen is not None
    assert client.seen.answer("iss") == {"right": lab.issuer, "wrong": f"{lab.issuer}/other", None: None}[iss]
    assert client.metadata.get("authorization_response_iss_parameter_supported", False) == advertised


async def test_pkce_is_checked_though_not_advertised(lab: AuthLab, client: BareClient) -> None:
    lab.behave.pkce = "absent"
    await client.log_in()
    assert "code_challenge_methods_supported" not in client.metadata
    code = (await click(client.authorize_url(), open_callback=False)).answer("code")
    assert code is not None
    client.verifier = "another"
    assert (await client.redeem(code)).json()["error"] == "invalid_grant"
    assert (await client.redeem(code)).json()["error"] == "invalid_grant"
    assert lab.counts["logins_refused"] == 2


async def test_manual_authorize_and_errors(lab: AuthLab, client: BareClient) -> None:
    lab.behave.authorize = "manual"
    await client.log_in()
    assert client.seen is not None
    assert [method for method, _, _ in client.seen.steps] == ["GET", "POST"]
    denied = await click(client.authorize_url(), deny=True, open_callback=False)
    assert (denied.answer("error"), denied.answer("code")) == ("access_denied", None)
    lab.behave.authorize, lab.behave.authorize_error = "auto", "server_error"
    assert (await click(client.authorize_url(), open_callback=False)).answer("error") == "server_error"
    foreign = await click(client.authorize_url(redirect_uri="http://localhost:1/x"), open_callback=False)
    assert (foreign.callback, foreign.steps[0][2]) == (None, 400)


@pytest.mark.parametrize(
    ("settings", "body", "error"),
    [
        ({}, {"redirect_uris": ["http://example.org/callback"]}, "invalid_redirect_uri"),
        ({}, {"redirect_uris": []}, "invalid_redirect_uri"),
        ({}, {"redirect_uris": ["http://localhost/callback#x"]}, "invalid_redirect_uri"),
        ({"refuse_redirect": "localhost"}, {}, "invalid_redirect_uri"),
        ({"refuse_redirect": "localhost"}, {"redirect_uris": ["http://127.0.0.1:5/callback"]}, None),
        ({"refuse_redirect": "all"}, {"redirect_uris": ["http://127.0.0.1:5/callback"]}, "invalid_redirect_uri"),
        ({"strict_application_type": True}, {"application_type": "web"}, "invalid_redirect_uri"),
        ({"strict_application_type": True}, {"application_type": "native"}, None),
        ({}, {"grant_types": "all"}, "invalid_client_metadata"),
    ],
)
async def test_registration(
    lab: AuthLab, client: BareClient, settings: dict[str, Any], body: dict[str, Any], error: str | None
) -> None:
    await lab.control({"set": settings})
    await client.discover()
    answer = await client.register(**body)
    assert answer.status_code == (201 if error is None else 400)
    assert answer.json().get("error") == error
    assert lab.counts["registrations"] == (error is None)


async def test_client_secrets_that_end(lab: AuthLab, client: BareClient) -> None:
    lab.behave.client_auth, lab.behave.secret_lifetime = "client_secret_basic", 60
    await client.discover()
    given = (await client.register()).json()
    code = (await click(client.authorize_url(), open_callback=False)).answer("code")
    form = {"code": str(code), "redirect_uri": REDIRECT, "code_verifier": client.verifier}
    public = await client.token("authorization_code", **form)
    assert (public.status_code, public.json()["error"]) == (401, "invalid_client")
    auth = (given["client_id"], given["client_secret"])
    assert (await client.token("authorization_code", auth, **form)).status_code == 200
    lab.behave.clock = 120
    late = await client.token("refresh_token", auth, refresh_token="x")
    assert "expired" in late.json()["error_description"]


async def test_other_clients(lab: AuthLab, client: BareClient) -> None:
    lab.behave.registration, lab.behave.client_metadata_documents = False, True
    await client.discover()
    assert "registration_endpoint" not in client.metadata
    assert client.metadata["client_id_metadata_document_supported"] is True
    for client_id in (lab.clients.preset, "https://client.example/interlock.json"):
        client.client_id = client_id
        assert (await client.log_in())["token_type"] == "Bearer"
    auth = (lab.clients.machine, lab.clients.machine_secret)
    machine = (await client.token("client_credentials", auth, scope="mcp")).json()
    assert "refresh_token" not in machine
    seen = (await client.call("whoami", machine["access_token"])).json()["result"]["structuredContent"]
    assert (seen["client"], seen["scope"], seen["audience"]) == (lab.clients.machine, "mcp", lab.url)
    assert (await client.call("echo", lab.personal_token)).status_code == 200
    lab.behave.refuse_personal = True
    assert (await client.call("echo", lab.personal_token)).status_code == 401


async def test_device_flow(lab: AuthLab, client: BareClient) -> None:
    await client.discover()
    client.client_id = lab.clients.preset
    endpoint = client.metadata["device_authorization_endpoint"]

    async def begin() -> dict[str, Any]:
        given: dict[str, Any] = (await client.http.post(endpoint, data={"client_id": client.client_id})).json()
        return given

    async def poll(device: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = (await client.token(DEVICE_GRANT, device_code=device["device_code"])).json()
        return answer

    device = await begin()
    assert (await poll(device))["error"] == "authorization_pending"
    await approve_device(device["verification_uri_complete"])
    assert "refresh_token" in await poll(device)
    denied = await begin()
    await approve_device(denied["verification_uri_complete"], deny=True)
    assert (await poll(denied))["error"] == "access_denied"
    for setting, error in (("slow-down", "slow_down"), ("deny", "access_denied")):
        await lab.control({"set": {"device": setting}})
        assert (await poll(await begin()))["error"] == error
    old = await begin()
    lab.behave.clock = 10_000
    assert (await poll(old))["error"] == "expired_token"
    assert (lab.counts["logins_finished"], lab.counts["device_requests"]) == (1, 5)


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ("oauth", "/.well-known/oauth-authorization-server/tenant"),
        ("oidc-inserted", "/.well-known/openid-configuration/tenant"),
        ("oidc-appended", "/tenant/.well-known/openid-configuration"),
    ],
)
async def test_places_of_server_metadata(place: str, found: str) -> None:
    async with AuthLab(issuer_path="/tenant") as lab, httpx2.AsyncClient(trust_env=False) as http:
        await lab.control({"set": {"metadata": [place]}})
        origin = lab.issuer.removesuffix("/tenant")
        answers = {}
        for path in (
            "/.well-known/oauth-authorization-server/tenant",
            "/.well-known/openid-configuration/tenant",
            "/tenant/.well-known/openid-configuration",
            "/.well-known/oauth-authorization-server",
        ):
            answers[path] = (await http.get(origin + path)).status_code
        assert [path for path, status in answers.items() if status == 200] == [found]
        document = (await http.get(origin + found)).json()
        assert document["issuer"] == lab.issuer == f"{origin}/tenant"
        assert document["token_endpoint"] == f"{origin}/tenant/token"


async def test_a_login_where_the_issuer_has_a_path_and_pages() -> None:
    async with (
        AuthLab(issuer_path="/tenant", behave=Behaviour(authorize="manual")) as lab,
        BareClient(lab.url) as client,
    ):
        client.resource = lab.url
        origin = lab.issuer.removesuffix("/tenant")
        client.metadata = (await client.http.get(f"{origin}/.well-known/oauth-authorization-server/tenant")).json()
        tokens = await client.log_in()
        assert (await client.call("echo", tokens["access_token"])).status_code == 200


async def test_one_origin_without_resource_metadata() -> None:
    async with AuthLab(one_origin=True, era="legacy") as lab, httpx2.AsyncClient(trust_env=False) as http:
        await lab.control({"set": {"resource_metadata": "absent"}})
        origin = lab.url.removesuffix("/mcp")
        assert lab.issuer == origin
        missing = await http.get(f"{origin}/.well-known/oauth-protected-resource")
        assert missing.status_code == 404
        document = (await http.get(f"{origin}/.well-known/oauth-authorization-server")).json()
        assert document["issuer"] == origin
        assert (await http.post(lab.url, json={})).headers["www-authenticate"] == "Bearer"


async def test_lies_in_the_documents(lab: AuthLab, client: BareClient) -> None:
    lab.behave.metadata_issuer, lab.behave.resource = f"{lab.issuer}/", f"{lab.url}/other"
    lab.behave.resource_metadata, lab.behave.scopes_supported = "root", None
    assert (await client.discover())["issuer"] == f"{lab.issuer}/"
    assert client.resource == f"{lab.url}/other"
    root = lab.url.replace("/mcp", "/.well-known/oauth-protected-resource")
    assert "scopes_supported" not in (await client.http.get(root)).json()
    assert (await client.http.get(f"{root}/mcp")).status_code == 404
