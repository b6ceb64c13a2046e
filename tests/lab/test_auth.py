"""The scripted authorization and resource servers: honest by default, and each lie does what it says."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx2
import jwt
import pytest
from tests.oauth.clicker import approve_device, click
from tests.oauth.client import REDIRECT, BareClient

from interlock.lab.auth import AuthLab, RemoteLab
from interlock.lab.auth.behaviour import Behaviour, Kind

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"


@pytest.fixture
async def lab() -> AsyncIterator[AuthLab]:
    async with AuthLab() as lab:
        yield lab


@pytest.fixture
async def client(lab: AuthLab) -> AsyncIterator[BareClient]:
    async with BareClient(lab.url) as client:
        yield client


def claims(token: str) -> dict[str, Any]:
    decoded: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    return decoded


def date_of(answer: httpx2.Response) -> float:
    return email.utils.parsedate_to_datetime(answer.headers["date"]).timestamp()


async def test_the_whole_way_in(lab: AuthLab, client: BareClient) -> None:
    tokens = await client.log_in()
    said = claims(tokens["access_token"])
    assert (said["aud"], said["iss"]) == (lab.url, lab.issuer)
    assert abs(said["exp"] - time.time() - 3600) < 5
    assert tokens["expires_in"] == 3600
    answer = await client.call("write", tokens["access_token"], key="k", text="t")
    assert answer.json()["result"]["content"][0]["text"] == "wrote k"
    assert [(each.tool, each.key, each.text) for each in lab.applied] == [("write", "k", "t")]
    counts = lab.counts
    assert (counts["registrations"], counts["authorize_requests"], counts["logins_finished"]) == (1, 1, 1)
    assert lab.truth.token_requests == {"authorization_code": 1}
    assert lab.truth.statuses == {401: 1, 200: 1}
    assert lab.truth.calls == [("tools/call echo", 401), ("tools/call write", 200)]
    secret = json.dumps(lab.truth.as_json())
    assert tokens["refresh_token"] not in secret
    assert tokens["access_token"] not in secret


async def test_rotation_and_family_kill(lab: AuthLab, client: BareClient) -> None:
    first = await client.log_in()
    second = (await client.refresh(first["refresh_token"])).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert (await client.call("echo", second["access_token"])).status_code == 200
    assert (await client.refresh(first["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await client.refresh(second["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await client.call("echo", second["access_token"])).status_code == 401
    counts = lab.counts
    assert (counts["refreshes_ok"], counts["reuse_detected"]) == (1, 1)
    assert (counts["families_revoked"], counts["dead_family"], counts["refreshes_refused"]) == (1, 1, 2)


@pytest.mark.parametrize(
    ("settings", "same_token", "reused", "survives"),
    [
        ({"family_kill": False}, False, 400, True),
        ({"rotation": False}, True, 200, True),
        ({"leeway": 60.0}, False, 200, True),
        ({"leeway": 0.0}, False, 400, False),
    ],
)
async def test_what_a_spent_token_does(
    lab: AuthLab, client: BareClient, settings: dict[str, Any], same_token: bool, reused: int, survives: bool
) -> None:
    await lab.control({"set": settings})
    first = await client.log_in()
    second = (await client.refresh(first["refresh_token"])).json()
    assert (second["refresh_token"] == first["refresh_token"]) == same_token
    again = await client.refresh(first["refresh_token"])
    assert again.status_code == reused
    if settings.get("leeway"):
        assert again.json() == second
        assert lab.counts["refreshes_repeated"] == 1
    assert ((await client.refresh(second["refresh_token"])).status_code == 200) == survives


async def test_leeway_is_for_the_last_spent_token_only(lab: AuthLab, client: BareClient) -> None:
    lab.behave.leeway = 60
    first = await client.log_in()
    second = (await client.refresh(first["refresh_token"])).json()
    await client.refresh(second["refresh_token"])
    assert (await client.refresh(first["refresh_token"])).status_code == 400
    assert lab.counts["reuse_detected"] == 1


async def test_early_401(lab: AuthLab, client: BareClient) -> None:
    tokens = await client.log_in()
    lab.revoke_access()
    answer = await client.call("echo", tokens["access_token"])
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert claims(tokens["access_token"])["exp"] > time.time() + 3000
    renewed = (await client.refresh(tokens["refresh_token"])).json()
    assert (await client.call("echo", renewed["access_token"])).status_code == 200
    assert lab.counts["early_401"] == 1


async def test_a_lost_token_answer_was_applied(lab: AuthLab, client: BareClient) -> None:
    tokens = await client.log_in()
    lab.mishap("token", "drop", times=1, only=("refresh_token",))
    with pytest.raises(httpx2.TransportError):
        await client.refresh(tokens["refresh_token"])
    assert (lab.counts["refreshes_ok"], lab.counts["answers_dropped"]) == (1, 1)
    assert (await client.refresh(tokens["refresh_token"])).status_code == 400
    assert lab.counts["reuse_detected"] == 1


@pytest.mark.parametrize(("kind", "applied"), [("status", False), ("garbage", False), ("delay", True)])
async def test_other_mishaps_of_the_token_endpoint(lab: AuthLab, client: BareClient, kind: Kind, applied: bool) -> None:
    tokens = await client.log_in()
    lab.mishap("token", kind, times=1, seconds=0.2, retry_after=3)
    began = time.monotonic()
    answer = await client.refresh(tokens["refresh_token"])
    assert (lab.counts["refreshes_ok"] == 1) == applied
    if kind == "status":
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "3")
    elif kind == "garbage":
        assert answer.headers["content-type"] == "text/html"
    else:
        assert time.monotonic() - began >= 0.2
    assert (await client.refresh(answer.json()["refresh_token"] if applied else tokens["refresh_token"])).is_success


async def test_silence(lab: AuthLab, client: BareClient) -> None:
    tokens = await client.log_in()
    impatient = httpx2.Timeout(0.3)
    for place in ("token", "mcp"):
        lab.behave.mishaps.clear()
        lab.mishap("token" if place == "token" else "mcp", "silent")
        client.http.timeout = impatient
        with pytest.raises(httpx2.ReadTimeout):
            await (client.refresh(tokens["refresh_token"]) if place == "token" else client.call("echo", "x"))
    lab.behave.mishaps.clear()
    lab.behave.as_silent = lab.behave.rs_silent = True
    for url in (f"{lab.issuer}/.well-known/oauth-authorization-server", lab.url):
        with pytest.raises(httpx2.ReadTimeout):
            await client.http.get(url)
    lab.behave.as_silent = lab.behave.rs_silent = False
    assert (await client.refresh(tokens["refresh_token"])).is_success
    assert lab.counts["refreshes_ok"] == 1


@pytest.mark.parametrize("seconds", [1800.0, -1800.0])
async def test_clock_of_both_servers(lab: AuthLab, client: BareClient, seconds: float) -> None:
    lab.behave.clock = seconds
    tokens = await client.log_in()
    server_now = time.time() + seconds
    assert abs(claims(tokens["access_token"])["exp"] - server_now - 3600) < 5
    answer = await client.call("echo", tokens["access_token"])
    assert answer.status_code == 200
    assert abs(date_of(answer) - server_now) < 5
    assert abs(date_of(await client.refresh(tokens["refresh_token"])) - server_now) < 5


async def test_date_headers_alone(lab: AuthLab, client: BareClient) -> None:
    lab.behave.as_date, lab.behave.rs_date = 1800, -1800
    challenge = await client.call("echo", None)
    await client.discover()
    metadata = await client.http.get(f"{lab.issuer}/.well-known/oauth-authorization-server")
    assert abs(date_of(metadata) - time.time() - 1800) < 5
    assert abs(date_of(challenge) - time.time() + 1800) < 5


@pytest.mark.parametrize(
    ("form", "shape"),
    [("imf", r" GMT$"), ("rfc850", r"^[A-Z][a-z]+day, \d\d-[A-Z][a-z]{2}-\d\d \d\d:"), ("asctime", r" \d{4}$")],
)
async def test_forms_of_date(lab: AuthLab, client: BareClient, form: str, shape: str) -> None:
    await lab.control({"set": {"date_header": form}})
    answer = await client.call("echo", None)
    assert re.search(shape, answer.headers["date"])
    assert abs(date_of(answer) + _timezone(form) - time.time()) < 5


def _timezone(form: str) -> float:
    """asctime names no zone, so the standard parser takes it for local time."""
    return 0.0 if form != "asctime" else float(time.localtime().tm_gmtoff)


async def test_no_date(lab: AuthLab, client: BareClient) -> None:
    lab.behave.date_header = "absent"
    assert "date" not in (await client.call("echo", None)).headers


async def test_times_of_tokens(lab: AuthLab, client: BareClient) -> None:
    lab.behave.access_lifetime, lab.behave.access_nbf = 90, 30
    lab.behave.refresh_format, lab.behave.refresh_nbf, lab.behave.refresh_lifetime = "jwt", 60, 600
    tokens = await client.log_in()
    access, refresh = claims(tokens["access_token"]), claims(tokens["refresh_token"])
    now = time.time()
    assert abs(access["nbf"] - now - 30) < 5
    assert abs(refresh["nbf"] - now - 60) < 5
    assert abs(refresh["exp"] - now - 600) < 5
    early = await client.refresh(tokens["refresh_token"])
    assert (early.json()["error"], lab.counts["early_refreshes"]) == ("invalid_grant", 1)
    assert (await client.call("echo", tokens["access_token"])).status_code == 401
    lab.behave.clock = 45
    assert (await client.call("echo", tokens["access_token"])).status_code == 200
    lab.behave.clock = 100
    assert (await client.call("echo", tokens["access_token"])).status_code == 401
    renewed = (await client.refresh(tokens["refresh_token"])).json()
    lab.behave.clock = 1000
    assert "expired" in (await client.refresh(renewed["refresh_token"])).json()["error_description"]


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"expires_in": "absent"}, None),
        ({"expires_in": "string"}, "3600"),
        ({"expires_in_lie": 7.0}, 7),
    ],
)
async def test_expires_in(lab: AuthLab, client: BareClient, settings: dict[str, Any], seen: object) -> None:
    await lab.control({"set": settings})
    assert (await client.log_in()).get("expires_in") == seen


async def test_opaque_tokens_without_refresh(lab: AuthLab, client: BareClient) -> None:
    lab.behave.access_format, lab.behave.issue_refresh, lab.behave.scope_in_answer = "opaque", False, False
    tokens = await client.log_in()
    assert tokens["access_token"].count(".") == 0
    assert tokens.keys() == {"access_token", "token_type", "expires_in"}
    assert (await client.call("echo", tokens["access_token"])).status_code == 200


async def test_refusals_on_command(lab: AuthLab, client: BareClient) -> None:
    tokens = await client.log_in()
    lab.behave.refuse_refresh = "invalid_grant"
    for _ in range(2):
        assert (await client.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    lab.behave.refuse_refresh = None
    tokens = (await client.refresh(tokens["refresh_token"])).json()
    lab.behave.refuse_access = True
    assert (await client.call("echo", tokens["access_token"])).status_code == 401
    lab.behave.refuse_access = False
    lab.forget_clients()
    forgotten = await client.refresh(tokens["refresh_token"])
    assert (forgotten.status_code, forgotten.json()["error"]) == (401, "invalid_client")
    seen = await click(client.authorize_url(), open_callback=False)
    assert seen.callback is None
    assert "not registered" in seen.page


async def test_dead_grants(lab: AuthLab, client: BareClient) -> None:
    tokens = await client.log_in()
    lab.kill_families()
    assert (await client.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (lab.counts["families_ended"], lab.counts["families_revoked"]) == (1, 0)


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


async def test_revocation(lab: AuthLab, client: BareClient) -> None:
    tokens = await client.log_in()
    form = {"token": tokens["refresh_token"], "client_id": client.client_id}
    assert (await client.http.post(client.metadata["revocation_endpoint"], data=form)).status_code == 200
    assert (await client.call("echo", tokens["access_token"])).status_code == 401
    assert (lab.counts["revocations"], lab.counts["families_ended"]) == (1, 1)


async def test_scope_challenge(lab: AuthLab, client: BareClient) -> None:
    lab.behave.tool_scopes = {"admin_write": "mcp admin"}
    lab.behave.challenge_scope = "mcp"
    assert 'scope="mcp"' in (await client.call("echo", None)).headers["www-authenticate"]
    tokens = await client.log_in()
    refused = await client.call("admin_write", tokens["access_token"], key="a")
    assert refused.status_code == 403
    challenge = refused.headers["www-authenticate"]
    assert challenge.startswith('Bearer error="insufficient_scope", scope="mcp admin", resource_metadata="')
    assert lab.applied == []
    tokens = await client.log_in(scope="mcp admin")
    assert (await client.call("admin_write", tokens["access_token"], key="a")).status_code == 200
    lab.behave.forbid = True
    forbidden = await client.call("echo", tokens["access_token"])
    assert (forbidden.status_code, "www-authenticate" in forbidden.headers) == (403, False)


async def test_wrong_audience(lab: AuthLab, client: BareClient) -> None:
    lab.behave.wrong_audience = "https://other.example/mcp"
    tokens = await client.log_in()
    assert claims(tokens["access_token"])["aud"] == "https://other.example/mcp"
    answer = await client.call("echo", tokens["access_token"])
    assert (answer.status_code, "another audience" in answer.headers["www-authenticate"]) == (401, True)


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("full", 'Bearer resource_metadata="{0}"'),
        ("bare", "Bearer"),
        ("spaced", 'Bearer resource_metadata = "{0}"'),
        ("double", 'Bearer resource_metadata="{0}/gone", resource_metadata="{0}"'),
        ("mixed", 'Basic realm="the old gate, Bearer of keys", Bearer resource_metadata="{0}"'),
        ("lines", 'Basic realm="the old gate, Bearer of keys", Bearer resource_metadata="{0}"'),
        ("absent", None),
    ],
)
async def test_challenges(lab: AuthLab, client: BareClient, form: str, value: str | None) -> None:
    await lab.control({"set": {"challenge": form}})
    answer = await client.call("echo", None)
    url = lab.url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp")
    assert answer.status_code == 401
    assert answer.headers.get("www-authenticate") == (None if value is None else value.format(url))
    lines = answer.headers.get_list("www-authenticate")
    assert len(lines) == {"absent": 0, "lines": 2}.get(form, 1)


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


@pytest.mark.parametrize(("before", "token", "status"), [(True, False, 405), (False, False, 401), (False, True, 405)])
async def test_get(lab: AuthLab, client: BareClient, before: bool, token: bool, status: int) -> None:
    lab.behave.get_status, lab.behave.get_before_auth = 405, before
    headers = {"authorization": f"Bearer {lab.personal_token}"} if token else {}
    assert (await client.http.get(lab.url, headers=headers)).status_code == status


@pytest.mark.parametrize("kind", ["drop", "reset", "cut"])
async def test_writes_whose_answer_is_lost(lab: AuthLab, client: BareClient, kind: Kind) -> None:
    lab.mishap("call", kind, times=1, only=("write",))
    assert (await client.call("echo", lab.personal_token, value="x")).status_code == 200
    with pytest.raises(httpx2.TransportError) as lost:
        await client.call("write", lab.personal_token, key="k")
    assert isinstance(lost.value, httpx2.ReadError if kind == "reset" else httpx2.RemoteProtocolError)
    assert lab.truth.writes == {"k": 1}
    assert lab.truth.calls[-1] == ("tools/call write", 0)
    assert (await client.call("write", lab.personal_token, key="k")).status_code == 200
    assert not lab.truth.applied_once()


@pytest.mark.parametrize("applied", [True, False])
@pytest.mark.parametrize(("status", "retry_after"), [(500, None), (408, None), (425, None), (429, 2.0), (429, None)])
async def test_writes_answered_with_a_status(
    lab: AuthLab, client: BareClient, status: int, retry_after: float | None, applied: bool
) -> None:
    lab.mishap("call", "status", times=1, status=status, retry_after=retry_after, applied=applied)
    answer = await client.call("write", lab.personal_token, key="k")
    assert (answer.status_code, answer.headers.get("retry-after")) == (status, "2" if retry_after else None)
    assert lab.truth.writes == ({"k": 1} if applied else {})
    assert lab.truth.statuses == {status: 1}


@pytest.mark.parametrize("applied", [True, False])
async def test_a_write_that_is_late(lab: AuthLab, client: BareClient, applied: bool) -> None:
    lab.mishap("call", "delay", seconds=1.0, applied=applied)
    client.http.timeout = httpx2.Timeout(0.3)
    with pytest.raises(httpx2.ReadTimeout):
        await client.call("write", lab.personal_token, key="k")
    assert lab.truth.writes == ({"k": 1} if applied else {})


async def test_chance_is_the_same_for_one_seed() -> None:
    seen = []
    for _ in range(2):
        async with AuthLab() as lab, BareClient(lab.url) as client:
            await lab.control({"set": {"seed": 7}})
            lab.mishap("call", "status", chance=0.5)
            seen.append([(await client.call("echo", lab.personal_token)).status_code for _ in range(12)])
    assert seen[0] == seen[1]
    assert set(seen[0]) == {200, 503}


async def test_down_and_up_again(lab: AuthLab, client: BareClient) -> None:
    await client.call("echo", None)
    await lab.mcp_listener.down()
    with pytest.raises(httpx2.TransportError):
        await client.call("echo", None)
    with pytest.raises(httpx2.ConnectError):
        await client.call("echo", None)
    await lab.mcp_listener.up()
    assert (await client.call("echo", None)).status_code == 401


async def legacy_session(client: BareClient, token: str, **headers: str) -> str:
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}
    answer = await client.post("initialize", params, token, headers)
    assert answer.status_code == 200, answer.text
    return str(answer.headers["mcp-session-id"])


async def test_sessions_that_are_forgotten_and_their_authors() -> None:
    async with AuthLab(era="both") as lab, BareClient(lab.url) as client:
        token = lab.personal_token
        assert (await client.call("echo", token, value="modern")).status_code == 200

        async def call(session: str, tool: str, **arguments: object) -> int:
            params = {"name": tool, "arguments": arguments}
            return (await client.post("tools/call", params, token, {"mcp-session-id": session})).status_code

        session = await legacy_session(client, token, **{"x-standing": "crew"})
        assert await call(session, "sign_in", author="ada") == 200
        assert await call(session, "write", key="one") == 200
        lab.forget_sessions()
        assert await call(session, "write", key="two") == 404
        session = await legacy_session(client, token)
        assert await call(session, "write", key="two") == 200
        assert [(each.key, each.author) for each in lab.applied] == [("one", "ada"), ("two", None)]
        assert [each.get("x-standing") for each in lab.truth.opened] == ["crew", None]
        assert "authorization" not in lab.truth.opened[0]


@pytest.mark.parametrize(
    "body",
    [
        {"set": {"unheard_of": 1}},
        {"set": {"clock": "later"}},
        {"set": {"dice": 1}},
        {"mishap": {"at": "token", "kind": "explode"}},
        {"do": ["everything"]},
        {"surprise": True},
    ],
)
async def test_control_refuses_what_it_does_not_know(lab: AuthLab, body: dict[str, Any]) -> None:
    async with httpx2.AsyncClient(trust_env=False) as http:
        answer = await http.post(lab.control_url, json={"do": ["revoke_access"], **body})
    assert answer.status_code == 400
    assert answer.json()["error"]


async def test_as_a_process() -> None:
    async with RemoteLab("--era", "both", "--set", "clock=1800", "--set", "authorize=manual") as remote:
        async with BareClient(remote.url) as client:
            tokens = await client.log_in()
            assert client.seen is not None
            assert len(client.seen.steps) == 2
            report = await remote.control(
                {"do": ["revoke_access"], "mishap": {"at": "token", "kind": "drop", "times": 1}}
            )
            assert report["settings"]["clock"] == 1800  # type: ignore[index]
            assert (await client.call("echo", tokens["access_token"])).status_code == 401
            with pytest.raises(httpx2.TransportError):
                await client.refresh(tokens["refresh_token"])
            await remote.control({"down_for": 0.2})
            with pytest.raises(httpx2.TransportError):
                await client.call("echo", None)
        report = await remote.report()
        assert report["counts"] == {
            "resource_metadata_requests": 1,
            "metadata_requests": 1,
            "registrations": 1,
            "authorize_requests": 1,
            "logins_finished": 1,
            "early_401": 1,
            "answers_dropped": 1,
            "refreshes_ok": 1,
        }
