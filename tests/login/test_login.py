"""One login for the machine: what is printed, what is asked of the server, how it ends, and what never shows."""

from __future__ import annotations

import asyncio
import json
import os
import re
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from interlock.lab.auth import AuthLab
from interlock.upstream.oauth.grant_store import GrantStore, grant_id

if TYPE_CHECKING:
    from .conftest import Shell


def secrets_of(home: Path) -> list[str]:
    """Tokens and secrets that are kept on disk."""
    found = []
    for file in (home / "grants").glob("*.json"):
        found += re.findall(
            r'"(?:access_token|refresh_token|client_secret|verifier|device_code)": "([^"]+)"', file.read_text()
        )
    return found


async def test_a_login_with_a_click(shell: Shell, lab: AuthLab) -> None:
    done = await shell.run("login", lab.url, click=shell.click)
    assert (done.code, shell.clicked) == (0, [200])
    assert f"signed in at {lab.issuer}" in done.out
    assert "scopes   mcp" in done.out
    assert re.search(r"ends     in 60 min \(.* UTC\), renewed by itself", done.out)
    kept = secrets_of(shell.home)
    assert len(kept) == 2
    assert not any(secret in done.all for secret in kept)
    assert (lab.counts["registrations"], lab.counts["logins_finished"]) == (1, 1)


async def test_a_second_login_asks_nobody(shell: Shell, lab: AuthLab) -> None:
    await shell.run("login", lab.url, click=shell.click)
    done = await shell.run("login", lab.url, "--json")
    (answer,) = done.json
    assert (done.code, answer["loggedIn"], answer["scopes"], answer["issuer"]) == (0, True, ["mcp"], lab.issuer)
    assert "already signed in" in answer["message"]
    assert (lab.counts["authorize_requests"], lab.counts["registrations"]) == (1, 1)


async def test_a_rejected_token_is_renewed_without_a_person(shell: Shell, lab: AuthLab) -> None:
    await shell.run("login", lab.url, click=shell.click)
    lab.revoke_access()
    done = await shell.run("login", lab.url)
    assert (done.code, lab.counts["refreshes_ok"], lab.counts["authorize_requests"]) == (0, 1, 1)
    assert ": signed in at" in done.out


async def test_again_asks_the_person_again(shell: Shell, lab: AuthLab) -> None:
    await shell.run("login", lab.url, click=shell.click)
    done = await shell.run("login", lab.url, "--again", click=shell.click)
    assert (done.code, lab.counts["logins_finished"], lab.counts["registrations"]) == (0, 2, 1)


async def test_a_dead_grant_needs_the_person(shell: Shell, lab: AuthLab) -> None:
    await shell.run("login", lab.url, click=shell.click)
    lab.kill_families()
    done = await shell.run("login", lab.url, click=shell.click)
    assert (done.code, lab.counts["logins_finished"]) == (0, 2)


async def test_nobody_clicks(shell: Shell, lab: AuthLab) -> None:
    done = await shell.run("login", lab.url, "--timeout", "0.3")
    assert done.code == 6
    assert "not signed in" in done.out
    assert shell.address.startswith(f"{lab.issuer}/authorize?")
    listed = (await shell.run("grants", "--json")).json
    assert [(each["state"], each["login"]["url"]) for each in listed] == [("none", shell.address)]


async def test_the_person_refuses(shell: Shell, lab: AuthLab) -> None:
    lab.behave.authorize_error = "access_denied"
    done = await shell.run("login", lab.url, click=shell.click)
    assert done.code == 6
    assert "not signed in" in done.out


async def test_the_address_is_pasted_by_another_command(shell: Shell, lab: AuthLab) -> None:
    await shell.run("login", lab.url, "--timeout", "0.1")
    redirect = await shell.authorize(shell.address)
    done = await shell.run("login", lab.url, "--paste", redirect)
    assert (done.code, lab.counts["logins_finished"]) == (0, 1)
    assert f"signed in at {lab.issuer}" in done.out


async def test_the_address_is_read_from_standard_input(shell: Shell, lab: AuthLab) -> None:
    await shell.run("login", lab.url, "--timeout", "0.1")
    done = await shell.run("login", lab.url, "--paste", "-", stdin=await shell.authorize(shell.address) + "\n")
    assert done.code == 0


@pytest.mark.parametrize("change", ["state=forged", "iss=https://evil.example"])
async def test_a_forged_address_is_not_taken(shell: Shell, lab: AuthLab, change: str) -> None:
    await shell.run("login", lab.url, "--timeout", "0.1")
    redirect = await shell.authorize(shell.address)
    name = change.partition("=")[0]
    forged = re.sub(rf"(?<=[?&]){name}=[^&]*", change, redirect)
    assert forged != redirect
    done = await shell.run("login", lab.url, "--paste", forged)
    assert done.code != 0
    assert done.out.startswith(f"{lab.url}: that address was not accepted: ")
    assert "did not act on the request" not in done.out
    assert lab.truth.token_requests["authorization_code"] == 0
    assert (await shell.run("login", lab.url, "--paste", redirect)).code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
async def test_the_address_is_pasted_at_the_terminal(shell: Shell, lab: AuthLab) -> None:
    import pty

    master, slave = pty.openpty()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "interlock", "login", lab.url,
            cwd=shell.cwd, env=shell.environ, stdin=slave, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stderr is not None

        async def paste(url: str) -> None:
            redirect = await shell.authorize(url)
            os.write(master, b"https://not.it.example/?code=x\n" + redirect.encode() + b"\n")

        async with asyncio.timeout(30):
            said = await shell._listen(process.stderr, paste)
            assert await process.wait() == 0
    finally:
        os.close(master)
        os.close(slave)
    assert "paste the address here" in said
    assert lab.counts["logins_finished"] == 1


async def test_a_code_for_another_device(shell: Shell, lab: AuthLab) -> None:
    lab.behave.device = "approve"
    done = await shell.run("login", lab.url, "--device")
    assert done.code == 0
    assert re.search(r"open \S+/device\S* at any browser and enter the code \S+", done.err)
    assert (lab.counts["device_requests"], lab.counts["authorize_requests"]) == (1, 0)


async def test_client_credentials_need_nobody(shell: Shell, lab: AuthLab, entry: Callable[..., str]) -> None:
    settings = (
        "    auth: oauth\n    oauth: {flow: client-credentials, clientId: MACHINE, clientSecretEnv: ACME_SECRET}\n"
    )
    shell.manifest(entry("one", lab.url, settings.replace("MACHINE", lab.clients.machine)))
    shell.environ["ACME_SECRET"] = lab.clients.machine_secret
    done = await shell.run("login", "one")
    assert (done.code, lab.counts["client_credentials_ok"], shell.address) == (0, 1, "")
    assert lab.clients.machine_secret not in done.all


async def test_a_server_of_the_manifest_by_its_key(shell: Shell, lab: AuthLab, entry: Callable[..., str]) -> None:
    shell.manifest(entry("one", lab.url, "    auth: oauth\n    scopes: [mcp, more]\n"))
    done = await shell.run("login", "one", click=shell.click)
    assert done.code == 0
    assert done.out.startswith(f"one: signed in at {lab.issuer}\n")
    assert lab.truth.authorize_queries[-1]["scope"] == "mcp more"
    # A bridge that is given the URL finds the same grant.
    assert "already signed in" in (await shell.run("login", lab.url)).out


async def test_all_servers_of_the_manifest(shell: Shell, lab: AuthLab, entry: Callable[..., str]) -> None:
    async with AuthLab(era="legacy") as other:
        shell.manifest(entry("one", lab.url) + entry("two", other.url) + entry("three", lab.url, ""))
        done = await shell.run("login", "--json", click=shell.click)
        assert [(each["server"], each["loggedIn"]) for each in done.json] == [("one", True), ("two", True)]
        assert (done.code, other.counts["logins_finished"]) == (0, 1)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("nope",), 2, "there is no server `nope` (known: one, open, token)"),
        (("open",), 2, "has no `auth: oauth`"),
        (("token", "--device"), 2, "uses a personal access token"),
        (("https://",), 2, "must be an http or https URL"),
        (("https://user:pass@x.example/",), 2, "a URL with a password"),
        (("https://x.example/mcp?token=abcdefgh12345678",), 2, "this URL is refused because"),
        (("127.0.0.1:7421/mcp",), 2, "Did you mean http://127.0.0.1:7421/mcp ?"),
        (("mcp.example.com/mcp",), 2, "Did you mean https://mcp.example.com/mcp ?"),
        (("one", "--timeout", "-1"), 2, "--timeout"),
        (("one", "--timeout", "soon"), 2, "'soon' is no number of seconds"),
    ],
)
async def test_what_cannot_be_logged_in_to(
    shell: Shell, entry: Callable[..., str], args: tuple[str, ...], code: int, words: str
) -> None:
    url = "http://127.0.0.1:9/mcp"
    shell.manifest(
        entry("one", url) + entry("open", url, "") + entry("token", url, "    auth: token\n    token: {fromEnv: T}\n")
    )
    done = await shell.run("login", *args)
    assert (done.code, done.out) == (code, "")
    assert words in done.err


async def test_without_any_manifest_it_says_what_to_write(shell: Shell) -> None:
    done = await shell.run("login")
    assert done.code == 2
    assert "interlock login https://mcp.example.com/mcp" in done.err


async def test_a_manifest_that_is_not_trusted_gets_no_login(
    shell: Shell, lab: AuthLab, entry: Callable[..., str]
) -> None:
    (shell.cwd / "interlock.yaml").write_text(entry("one", lab.url))
    done = await shell.run("login", "one", click=shell.click)
    assert (done.code, lab.counts["authorize_requests"]) == (8, 0)
    assert "may not run" in done.err
    every = await shell.run("login")
    assert every.code == 8
    assert "`interlock trust` shows what to allow" in every.err
    assert "no server of the manifests has" not in every.err


async def test_a_server_that_is_not_there(shell: Shell) -> None:
    done = await shell.run("login", "http://127.0.0.1:9/mcp")
    assert (done.code, done.out) == (
        5,
        "http://127.0.0.1:9/mcp: nothing listens at 127.0.0.1:9. `interlock doctor bridge http://127.0.0.1:9/mcp` shows each step.\n",
    )
    done = await shell.run("login", "https://nosuch.invalid/mcp")
    assert (done.code, "the name nosuch.invalid does not resolve" in done.out) == (5, True)


@pytest.mark.parametrize("wrong", ["/mpc", "/mcp/"])
async def test_an_address_without_a_server(shell: Shell, lab: AuthLab, wrong: str) -> None:
    await shell.run("login", lab.url, click=shell.click)
    url = lab.url.removesuffix("/mcp") + wrong
    done = await shell.run("login", url)
    assert done.code == 5
    assert done.out == f"{url}: HTTP 404: there is no MCP server at {url}. Check the path of its URL.\n"
    assert (lab.counts["registrations"], lab.counts["authorize_requests"]) == (1, 1)


async def test_a_server_that_wants_no_sign_in(shell: Shell) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        found = re.search(rb"(?i)content-length: (\d+)", head)
        body = await reader.readexactly(int(found[1])) if found is not None else b""
        status, said = "404 Not Found", b"{}"
        if body and json.loads(body)["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
            status, said = (
                "200 OK",
                json.dumps({"jsonrpc": "2.0", "id": json.loads(body)["id"], "result": result}).encode(),
            )
        elif body:
            status = "400 Bad Request"
        head_out = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(said)}\r\n\r\n"
        writer.write(head_out.encode() + said)
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        done = await shell.run("login", url)
    assert (done.code, done.out) == (0, f"{url}: it takes requests without a sign-in, so there is nothing to do.\n")


async def test_a_server_that_keeps_a_person_waiting_is_named(shell: Shell) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "interlock", "login", url,
            cwd=shell.cwd, env=shell.environ, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stderr is not None
        async with asyncio.timeout(12):
            said = (await process.stderr.readline()).decode()
        process.kill()
        await process.wait()
    assert said == f"interlock: {url}: no answer yet; it has 15 s in all\n"


async def test_a_configured_client_is_held_to_its_authorization_server(shell: Shell, lab: AuthLab) -> None:
    """Until the person signs out, or says with --issuer which one it is."""
    flags = ("--flow", "client-credentials", "--client-id", lab.clients.machine, "--client-secret-env", "SECRET")
    shell.environ["SECRET"] = lab.clients.machine_secret
    assert (await shell.run("login", lab.url, *flags)).code == 0
    async with AuthLab(era="modern") as other:
        lab.behave.authorization_servers = (other.issuer,)
        done = await shell.run("login", lab.url, *flags)
        assert done.code == 8
        for text in (lab.issuer, other.issuer, f"`interlock logout {lab.url}`", "oauth.issuer (--issuer)"):
            assert text in done.out
        assert lab.clients.machine_secret not in done.all
        done = await shell.run("login", lab.url, *flags, "--issuer", lab.issuer)
        assert done.code == 8
        assert f"the settings allow {lab.issuer} alone" in done.out
        assert not other.truth.token_requests
        # The other one is asked as soon as the person wants it; it does not know the client.
        done = await shell.run("login", lab.url, *flags, "--issuer", other.issuer)
        assert (done.code, "invalid_client" in done.out) == (8, True)
        assert other.truth.token_requests["client_credentials"] == 1
        done = await shell.run("login", lab.url, *flags)
        assert other.truth.token_requests["client_credentials"] == 2
        lab.behave.authorization_servers = None
        done = await shell.run("login", lab.url, *flags)
        assert (done.code, f"belongs to {other.issuer}" in done.out) == (8, True)
        assert (await shell.run("logout", lab.url)).code == 0
        assert (await shell.run("login", lab.url, *flags)).code == 0


async def test_a_server_without_metadata_is_said_not_to_conform(shell: Shell) -> None:
    async with AuthLab(era="legacy", one_origin=True) as lab:
        lab.behave.resource_metadata = "absent"
        lab.behave.metadata = ()
        done = await shell.run("login", lab.url, click=shell.click)
        assert done.code == 0
        assert "Not conforming: nothing says that the authorization server checks PKCE" in done.err
        assert lab.counts["logins_finished"] == 1


async def test_a_server_that_has_moved_is_said(shell: Shell, lab: AuthLab) -> None:
    await shell.run("login", lab.url, click=shell.click)
    former = lab.issuer
    store = GrantStore(shell.home)
    ((held_id, held_grant),) = store.all()
    moved = msgspec.structs.replace(held_grant, issuer="https://former.example")
    async with store.locked(grant_id(moved.resource, moved.issuer, None), 5) as held:
        held.write(moved)
    assert store.forget(held_id)
    done = await shell.run("login", lab.url, click=shell.click)
    assert done.code == 0
    assert f"the server now names another authorization server, {former}" in done.err
    assert "from https://former.example is of no use there" in done.err


@pytest.mark.parametrize(
    ("form", "code", "words"),
    [
        ("good", 0, "the server takes the token from the environment variable ACME_TOKEN"),
        ("bad", 5, "the server rejects the token from the environment variable ACME_TOKEN (HTTP 401)"),
        ("unset", 5, "the environment variable ACME_TOKEN: there is no token there"),
        ("missing file", 5, "it cannot be read (No such file or directory)"),
    ],
)
async def test_a_personal_access_token_is_tried(shell: Shell, lab: AuthLab, form: str, code: int, words: str) -> None:
    token = secrets.token_urlsafe(24) if form == "bad" else lab.personal_token
    if form in ("good", "bad"):
        shell.environ["ACME_TOKEN"] = token
    source = ("--token-file", str(shell.home / "none")) if form == "missing file" else ("--token-env", "ACME_TOKEN")
    done = await shell.run("login", lab.url, *source)
    assert done.code == code
    assert words in done.out
    assert token not in done.all
    (answer,) = (await shell.run("login", lab.url, *source, "--json")).json
    assert (answer["loggedIn"], lab.counts["authorize_requests"]) == (code == 0, 0)


async def test_an_authorization_server_that_is_down(shell: Shell, lab: AuthLab) -> None:
    await lab.auth_listener.down()
    done = await shell.run("login", lab.url)
    assert done.code == 6
    assert not done.out.count("Traceback")


async def test_an_issuer_that_lies_ends_it(shell: Shell, lab: AuthLab) -> None:
    lab.behave.metadata_issuer = "https://other.example"
    done = await shell.run("login", lab.url, "--json")
    (answer,) = done.json
    assert (done.code, answer["loggedIn"], lab.counts["authorize_requests"]) == (8, False, 0)


async def test_json_of_an_unfinished_login_names_the_address(shell: Shell, lab: AuthLab) -> None:
    done = await shell.run("login", lab.url, "--timeout", "0.1", "--json")
    assert json.loads(done.out)[0]["authorizeUrl"] == shell.address


async def test_a_url_that_a_manifest_declares_has_the_manifest_s_settings(
    shell: Shell, lab: AuthLab, entry: Callable[..., str]
) -> None:
    shell.manifest(entry("one", lab.url, f"    auth: oauth\n    oauth: {{clientId: {lab.clients.preset}}}\n"))
    done = await shell.run("login", lab.url, click=shell.click)
    assert (done.code, lab.counts["registrations"]) == (0, 0)
    assert "already signed in" in (await shell.run("login", "one")).out
    other = await shell.run("login", lab.url, "--scope", "mcp", click=shell.click)
    assert (other.code, lab.counts["registrations"]) == (0, 1)


async def test_the_url_of_the_environment(shell: Shell, lab: AuthLab) -> None:
    shell.environ["INTERLOCK_BRIDGE_URL"] = lab.url
    done = await shell.run("login", click=shell.click)
    assert (done.code, done.out.startswith(lab.url)) == (0, True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_ctrl_c_stops_waiting_and_the_old_address_still_works(shell: Shell, lab: AuthLab) -> None:
    import signal

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "interlock", "login", lab.url,
        cwd=shell.cwd, env=shell.environ, stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    said = ""
    async with asyncio.timeout(30):
        while "waiting (" not in said:
            said += (await process.stderr.readline()).decode()
        process.send_signal(signal.SIGINT)
        said += (await process.stderr.read()).decode()
        assert await process.wait() == 130
    assert "stopped waiting, so nobody listens for the sign-in now. The same address works again once" in said
    assert f"`interlock login {lab.url}` runs" in said
    assert "Traceback" not in said
    listed = await shell.run("grants")
    assert f"nobody listens for it now: `interlock login {lab.url}` opens the same address again" in listed.out
    address = re.search(r"sign in at (\S+)", said)[1]

    async def click(again: str) -> None:
        assert again == address
        await shell.click(address)

    done = await shell.run("login", lab.url, click=click)
    assert (done.code, shell.clicked) == (0, [200])
