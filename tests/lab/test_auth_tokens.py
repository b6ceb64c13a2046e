"""The lab's authorization server: tokens, rotation, clocks, and the lies of its token endpoint."""

from __future__ import annotations

import email.utils
import json
import re
import time
from typing import Any

import httpx2
import jwt
import pytest
from tests.oauth.clicker import click
from tests.oauth.client import BareClient

from interlock.lab.auth import AuthLab
from interlock.lab.auth.behaviour import Kind


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


async def test_revocation(lab: AuthLab, client: BareClient) -> None:
    tokens = await client.log_in()
    form = {"token": tokens["refresh_token"], "client_id": client.client_id}
    assert (await client.http.post(client.metadata["revocation_endpoint"], data=form)).status_code == 200
    assert (await client.call("echo", tokens["access_token"])).status_code == 401
    assert (lab.counts["revocations"], lab.counts["families_ended"]) == (1, 1)


async def test_wrong_audience(lab: AuthLab, client: BareClient) -> None:
    lab.behave.wrong_audience = "https://other.example/mcp"
    tokens = await client.log_in()
    assert claims(tokens["access_token"])["aud"] == "https://other.example/mcp"
    answer = await client.call("echo", tokens["access_token"])
    assert (answer.status_code, "another audience" in answer.headers["www-authenticate"]) == (401, True)
