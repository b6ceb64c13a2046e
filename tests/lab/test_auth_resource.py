"""The lab's protected MCP server: challenges, writes whose answer goes wrong, sessions, and its remote control."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest
from tests.oauth.client import BareClient

from interlock.lab.auth import AuthLab, RemoteLab
from interlock.lab.auth.behaviour import Kind


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
