"""A grant given back: revoked where that is possible, forgotten always, and what was done is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interlock.lab.auth import AuthLab

if TYPE_CHECKING:
    from .conftest import Shell


@pytest.fixture
async def logged_in(shell: Shell, lab: AuthLab) -> AuthLab:
    assert (await shell.run("login", lab.url, click=shell.click)).code == 0
    return lab


async def states(shell: Shell) -> list[str]:
    return [each["state"] for each in (await shell.run("grants", "--json")).json]


async def test_revoked_and_forgotten(shell: Shell, logged_in: AuthLab) -> None:
    done = await shell.run("logout", logged_in.url)
    assert done.code == 0
    assert f"revoked at {logged_in.issuer} and forgotten here" in done.out
    assert logged_in.counts["revocations"] == 2
    assert await states(shell) == []
    assert "logged-out" in (shell.home / "grant.log").read_text()
    again = await shell.run("logout", logged_in.url)
    assert (again.code, "There is no grant" in again.out) == (0, True)


async def test_a_server_that_cannot_be_told(shell: Shell, logged_in: AuthLab) -> None:
    logged_in.mishap("revoke", "status", status=503)
    done = await shell.run("logout", logged_in.url)
    assert done.code == 1
    assert "did not revoke it: HTTP 503" in done.out
    assert "stay good there until they end" in done.out
    assert await states(shell) == []


async def test_a_server_that_is_silent_does_not_keep_the_grant_here(shell: Shell, logged_in: AuthLab) -> None:
    await logged_in.auth_listener.down()
    done = await shell.run("logout", logged_in.url, "--json")
    (answer,) = done.json
    assert (done.code, answer["revoked"]) == (1, False)
    assert await states(shell) == []


@pytest.mark.parametrize("away", [True, False])
async def test_a_server_that_names_another_issuer_now(shell: Shell, logged_in: AuthLab, away: bool) -> None:
    """The old one is told where it is still there; where it is not, it is not said to lack an endpoint."""
    for file in (shell.home / "grants").glob("*.found.json"):
        file.unlink()
    async with AuthLab(era="modern") as other:
        logged_in.behave.authorization_servers = (other.issuer,)
        if away:
            await logged_in.auth_listener.down()
        done = await shell.run("logout", logged_in.url)
        assert other.counts["revocations"] == 0
    if away:
        assert done.code == 1
        assert "its metadata could not be read" in done.out
        assert "nothing listens at 127.0.0.1:" in done.out
        assert "no revocation endpoint" not in done.out
    else:
        assert (done.code, logged_in.counts["revocations"]) == (0, 2)
    assert await states(shell) == []


async def test_only_here(shell: Shell, logged_in: AuthLab) -> None:
    done = await shell.run("logout", logged_in.url, "--local")
    assert (done.code, logged_in.counts["revocations"]) == (0, 0)
    assert await states(shell) == []


async def test_every_grant(shell: Shell, logged_in: AuthLab) -> None:
    async with AuthLab(era="legacy") as other:
        await shell.run("login", other.url, click=shell.click)
        assert await states(shell) == ["live", "live"]
        done = await shell.run("logout", "--all")
        assert (done.code, other.counts["revocations"]) == (0, 2)
    assert await states(shell) == []


async def test_an_open_login_is_given_up(shell: Shell, lab: AuthLab) -> None:
    await shell.run("login", lab.url, "--timeout", "0.1")
    done = await shell.run("logout", lab.url)
    assert done.code == 0
    assert "the sign-in that was open is given up" in done.out
    assert await states(shell) == []


async def test_a_configured_client_is_let_go_also_where_there_is_no_grant(shell: Shell, lab: AuthLab) -> None:
    flags = ("--client-id", lab.clients.preset)
    await shell.run("login", lab.url, *flags, "--timeout", "0.1")
    assert (await shell.run("logout", lab.url)).code == 0
    assert list((shell.home / "grants").glob("*.issuer.json")) == []
    await shell.run("login", lab.url, *flags, "--timeout", "0.1")
    for file in (shell.home / "grants").glob("*.flow.json"):
        file.unlink()
    for file in (shell.home / "grants").glob("*.snooze.json"):
        file.unlink()
    done = await shell.run("logout", lab.url)
    assert "no longer held to the authorization server" in done.out
    assert list((shell.home / "grants").glob("*.issuer.json")) == []


@pytest.mark.parametrize("args", [(), ("https://x.example/", "--all")])
async def test_it_wants_exactly_one_or_all(shell: Shell, args: tuple[str, ...]) -> None:
    done = await shell.run("logout", *args)
    assert done.code == 2
    assert "interlock grants" in done.err
