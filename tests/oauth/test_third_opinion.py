"""The lab's servers as others see them: the MCP SDK's OAuth client, and the conformance suite's view of an authorization server."""

from __future__ import annotations

import asyncio
import re
import socket
from pathlib import Path

import httpx2
import pytest
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.session import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from tests.conformance import programs
from tests.conformance.checks import faults_of, read_outcome

from interlock.lab.auth import AuthLab, Behaviour

from .clicker import Seen, click
from .client import REDIRECT
from .oidc import oidc_lab


class Store:
    """The SDK's token storage, in memory."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


async def sdk_writes(url: str, key: str, store: Store) -> Seen | None:
    """Log in where that is needed, and call `write`, with the SDK alone. What the user saw, if anything."""
    seen: list[Seen] = []

    async def redirect(authorize: str) -> None:
        seen.append(await click(authorize, open_callback=False))

    async def callback() -> AuthorizationCodeResult:
        code = seen[-1].answer("code")
        assert code is not None
        return AuthorizationCodeResult(code=code, state=seen[-1].answer("state"), iss=seen[-1].answer("iss"))

    metadata = OAuthClientMetadata.model_validate({"redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none"})
    provider = OAuthClientProvider(url, metadata, store, redirect, callback)
    async with (
        httpx2.AsyncClient(auth=provider, trust_env=False) as http,
        streamable_http_client(url, http_client=http) as streams,
        ClientSession(streams[0], streams[1]) as session,
    ):
        await session.initialize()
        result = await session.call_tool("write", {"key": key})
        assert not result.is_error
    return seen[-1] if seen else None


async def test_the_sdk_logs_in_at_the_scripted_servers() -> None:
    async with AuthLab(era="legacy") as lab:
        store = Store()
        assert await sdk_writes(lab.url, "one", store) is not None
        assert await sdk_writes(lab.url, "two", store) is None
        assert lab.truth.writes == {"one": 1, "two": 1}
        assert (lab.counts["logins_finished"], lab.counts["registrations"]) == (1, 1)


@pytest.mark.conformance
async def test_the_sdk_logs_in_at_the_real_server() -> None:
    try:
        async with oidc_lab(era="legacy") as lab:
            seen = await sdk_writes(lab.url, "one", Store())
            assert seen is not None
            assert [method for method, _, _ in seen.steps].count("POST") == 2
            assert lab.truth.writes == {"one": 1}
            assert (await lab.counts())["logins_finished"] == 1
    except programs.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.conformance
async def test_the_conformance_suite_finds_a_conforming_authorization_server(tmp_path: Path) -> None:
    try:
        command = [programs.node(), programs.suite()]
    except programs.Missing as missing:
        pytest.skip(str(missing))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    async with AuthLab(behave=Behaviour(client_metadata_documents=True)) as lab:
        options = ["--url", lab.issuer, "--client-id", lab.clients.preset, "--resource", lab.url, "-p", str(port)]
        process = await asyncio.create_subprocess_exec(
            *command, "authorization", *options, "-o", tmp_path, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        url, printed = "", []
        async for line in process.stdout:
            printed.append(line.decode())
            found = re.search(r"http\S+/authorize\?\S+", printed[-1])
            url = found[0] if found else url
            if "Callback server started" in printed[-1]:
                assert (await click(url)).status == 200
        assert await process.wait() == 0, "".join(printed)
    outcome = read_outcome(tmp_path, "authorization-server-")
    assert outcome.scenarios == {"authorization-server-metadata-endpoint", "authorization-code-grant"}
    assert faults_of(outcome, []) == []
    assert outcome.total("SUCCESS") == 3
