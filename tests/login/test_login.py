"""One login for the machine: what is printed, what is asked of the server, how it ends, and what never shows."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interlock.lab.auth import AuthLab

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
    assert f"logged in at {lab.issuer}" in done.out
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
    assert "already logged in" in answer["message"]
    assert (lab.counts["authorize_requests"], lab.counts["registrations"]) == (1, 1)


async def test_a_rejected_token_is_renewed_without_a_person(shell: Shell, lab: AuthLab) -> None:
    await shell.run("login", lab.url, click=shell.click)
    lab.revoke_access()
    done = await shell.run("login", lab.url)
    assert (done.code, lab.counts["refreshes_ok"], lab.counts["authorize_requests"]) == (0, 1, 1)
    assert ": logged in at" in done.out


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
    assert "not logged in" in done.out
    assert shell.address.startswith(f"{lab.issuer}/authorize?")
    listed = (await shell.run("grants", "--json")).json
    assert [(each["state"], each["login"]["url"]) for each in listed] == [("none", shell.address)]


async def test_the_person_refuses(shell: Shell, lab: AuthLab) -> None:
    lab.behave.authorize_error = "access_denied"
    done = await shell.run("login", lab.url, click=shell.click)
    assert done.code == 6
    assert "not logged in" in done.out


async def test_the_address_is_pasted_by_another_command(shell: Shell, lab: AuthLab) -> None:
    await shell.run("login", lab.url, "--timeout", "0.1")
    redirect = await shell.authorize(shell.address)
    done = await shell.run("login", lab.url, "--paste", redirect)
    assert (done.code, lab.counts["logins_finished"]) == (0, 1)
    assert f"logged in at {lab.issuer}" in done.out


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
    assert lab.truth.token_requests["authorization_code"] == 0
    assert (await shell.run("login", lab.url, "--paste", redirect)).code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals")
async def test_the_address_is_pasted_at_the_terminal(shell: Shell, lab: AuthLab) -> None:
    import asyncio
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
    assert done.out.startswith(f"one: logged in at {lab.issuer}\n")
    assert lab.truth.authorize_queries[-1]["scope"] == "mcp more"
    # A bridge that is given the URL finds the same grant.
    assert "already logged in" in (await shell.run("login", lab.url)).out


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
        (("token",), 2, "uses a personal access token"),
        (("https://",), 2, "must be an http or https URL"),
        (("https://user:pass@x.example/",), 2, "a password must not stand in a URL"),
        (("one", "--timeout", "-1"), 2, "--timeout"),
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


async def test_a_server_that_is_not_there(shell: Shell) -> None:
    done = await shell.run("login", "http://127.0.0.1:9/mcp")
    assert done.code == 5
    assert "doctor bridge" in done.out


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
    assert "already logged in" in (await shell.run("login", "one")).out
    other = await shell.run("login", lab.url, "--scope", "mcp", click=shell.click)
    assert (other.code, lab.counts["registrations"]) == (0, 1)


async def test_the_url_of_the_environment(shell: Shell, lab: AuthLab) -> None:
    shell.environ["INTERLOCK_BRIDGE_URL"] = lab.url
    done = await shell.run("login", click=shell.click)
    assert (done.code, done.out.startswith(lab.url)) == (0, True)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
async def test_ctrl_c_stops_waiting_and_the_old_address_still_works(shell: Shell, lab: AuthLab) -> None:
    import asyncio
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
    assert "stopped waiting" in said
    assert "Traceback" not in said
    address = re.search(r"sign in at (\S+)", said)[1]

    async def click(again: str) -> None:
        assert again == address
        await shell.click(address)

    done = await shell.run("login", lab.url, click=click)
    assert (done.code, shell.clicked) == (0, [200])
