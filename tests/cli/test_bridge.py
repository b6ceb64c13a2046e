"""`interlock bridge` as a host uses it: answered at once with and without a server and a grant, under the tools' own names."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.install.conftest import as_installed
from tests.oauth.clicker import click

from interlock.build import build
from interlock.lab.auth import AuthLab

SECONDS = 30.0
Json = dict[str, Any]


@dataclass
class Host:
    """A host that speaks 2025-11-25 to the bridge that it has started."""

    process: asyncio.subprocess.Process
    seen: list[Json] = field(default_factory=list)
    _next: int = 0

    def tell(self, method: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "method": method}).encode() + b"\n")

    async def ask(self, method: str, params: Json | None = None) -> Json:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._next += 1
        request = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params or {}}
        self.process.stdin.write(json.dumps(request).encode() + b"\n")
        async with asyncio.timeout(SECONDS):
            while True:
                message: Json = json.loads(await self.process.stdout.readline())
                if message.get("id") == self._next:
                    return message
                self.seen.append(message)

    async def begin(self) -> Json:
        info = {"name": "host", "version": "1"}
        hello = await self.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info})
        self.tell("notifications/initialized")
        result: Json = hello["result"]
        return result

    async def call(self, tool: str, **arguments: object) -> Json:
        result: Json = (await self.ask("tools/call", {"name": tool, "arguments": arguments}))["result"]
        return result

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in (await self.ask("tools/list"))["result"]["tools"]]

    async def until(self, method: str) -> None:
        """Wait for a notification that came or is to come."""
        assert self.process.stdout is not None
        async with asyncio.timeout(SECONDS):
            while not any(message.get("method") == method for message in self.seen):
                self.seen.append(json.loads(await self.process.stdout.readline()))

    async def sign_in(self) -> None:
        """Click the address that a call is answered with, and make calls until one goes through."""
        async with asyncio.timeout(SECONDS):
            await click((await self.call("whoami"))["_meta"]["authorize_url"])
            while (await self.call("whoami")).get("isError"):  # noqa: ASYNC110 the click has no event here
                await asyncio.sleep(0.02)

    async def leave(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(SECONDS):
            return await self.process.wait()


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("INTERLOCK_", "COV_"))}
    return {**kept, "INTERLOCK_HOME": str(tmp_path / "home"), "INTERLOCK_NO_BROWSER": "1"}


@pytest.fixture
async def lab() -> AsyncIterator[AuthLab]:
    async with AuthLab(era="both") as made:
        yield made


@contextlib.asynccontextmanager
async def bridge(environ: dict[str, str], *arguments: str) -> AsyncIterator[Host]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "interlock", "bridge", *arguments,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, env=environ,
    )  # fmt: skip
    try:
        yield Host(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def text_of(result: Json) -> str:
    text: str = result["content"][0]["text"]
    return text


async def test_a_call_without_a_grant_is_answered_with_the_address_and_works_after_the_click(
    environ: dict[str, str], lab: AuthLab
) -> None:
    async with bridge(environ, lab.url) as host:
        assert (await host.begin())["serverInfo"]["name"] == "interlock"
        assert await host.tools() == []
        refused = await host.call("whoami")
        facts = refused["_meta"]
        assert (refused["isError"], facts["verdict"], facts["error"]) == (True, "wait", "login-needed")
        assert text_of(refused).startswith(f"interlock {build()}: wait: ")
        assert facts["authorize_url"] in text_of(refused)
        again = await host.call("whoami")
        assert again["_meta"]["authorize_url"] == facts["authorize_url"]
        assert (await click(facts["authorize_url"])).status == 200
        await host.until("notifications/tools/list_changed")
        assert "whoami" in await host.tools()
        assert not (await host.call("whoami")).get("isError")
        assert lab.counts["registrations"] == lab.counts["authorize_requests"] == 1


async def test_the_login_is_told_to_the_host_too(environ: dict[str, str], lab: AuthLab) -> None:
    async with bridge(environ, lab.url) as host:
        await host.begin()
        refused = await host.call("whoami")
        await host.until("notifications/message")
        told = next(each["params"] for each in host.seen if each.get("method") == "notifications/message")
        assert (told["level"], told["logger"]) == ("warning", "interlock")
        assert refused["_meta"]["authorize_url"] in told["data"]


async def test_tools_are_known_at_the_next_start_though_the_server_is_away(
    environ: dict[str, str], lab: AuthLab
) -> None:
    async with bridge(environ, lab.url) as host:
        await host.begin()
        await host.sign_in()
        known = await host.tools()
        assert known
        await host.leave()
    await lab.mcp_listener.down()
    async with bridge(environ, lab.url) as host:
        await host.begin()
        assert await host.tools() == known
        result = await host.call("whoami")
        assert (result["_meta"]["verdict"], result["_meta"]["error"]) == ("never_reached", "unreachable")


async def test_a_token_from_the_environment_needs_no_login(environ: dict[str, str], lab: AuthLab) -> None:
    environ["LAB_TOKEN"] = lab.personal_token
    async with bridge(environ, lab.url, "--token-env", "LAB_TOKEN") as host:
        await host.begin()
        assert "whoami" in await host.tools()
        lab.behave.refuse_personal = True
        result = await host.call("whoami")
        assert (result["_meta"]["verdict"], result["_meta"]["error"]) == ("never_reached", "token-rejected")
        assert "the environment variable LAB_TOKEN" in text_of(result)
        assert lab.personal_token not in json.dumps(result)
    assert not lab.counts["metadata_requests"]
    assert not lab.counts["authorize_requests"]
    assert not (Path(environ["INTERLOCK_HOME"]) / "grants").exists()


async def test_a_server_of_which_nothing_was_ever_known_is_not_passed_over_in_silence(
    environ: dict[str, str], lab: AuthLab
) -> None:
    await lab.mcp_listener.down()
    async with bridge(environ, lab.url) as host:
        await host.begin()
        assert await host.tools() == []
        await host.until("notifications/message")
        told = next(each["params"]["data"] for each in host.seen if each.get("method") == "notifications/message")
        assert "nothing listens at" in told
        await host.leave()
        assert host.process.stderr is not None
        assert (await host.process.stderr.read()).decode().count("nothing listens at") == 1


async def test_a_rejected_token_is_not_passed_over_in_silence(environ: dict[str, str], lab: AuthLab) -> None:
    environ["LAB_TOKEN"] = "no-such-token"
    async with bridge(environ, lab.url, "--token-env", "LAB_TOKEN") as host:
        await host.begin()
        assert await host.tools() == []
        await host.until("notifications/message")
        assert any("LAB_TOKEN" in json.dumps(each) for each in host.seen)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")
async def test_a_token_file_that_others_may_read_is_refused(
    environ: dict[str, str], lab: AuthLab, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(lab.personal_token + "\n")
    file.chmod(0o644)
    async with bridge(environ, lab.url, "--token-file", str(file)) as host:
        await host.begin()
        assert "chmod 600" in text_of(await host.call("whoami"))
        file.chmod(0o600)
        assert not (await host.call("whoami")).get("isError")  # no restart is needed


async def test_nothing_of_a_grant_is_readable_by_others(environ: dict[str, str], lab: AuthLab) -> None:
    async with bridge(environ, lab.url) as host:
        await host.begin()
        await host.sign_in()
        await host.leave()
    _check_home(Path(environ["INTERLOCK_HOME"]))


def _check_home(home: Path) -> None:
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in [home, *home.rglob("*")]}
    assert {path: mode for path, mode in modes.items() if mode & 0o077} == {}
    grants = [json.loads(path.read_text())["value"] for path in (home / "grants").glob("*.json")]
    held = [grant for grant in grants if grant.get("access_token")]
    assert held
    words = (home / "grant.log").read_text()
    assert not any(grant[name] in words for grant in held for name in ("access_token", "refresh_token"))


async def test_a_write_whose_answer_is_lost_says_so_and_is_not_repeated(environ: dict[str, str], lab: AuthLab) -> None:
    environ["LAB_TOKEN"] = lab.personal_token
    async with bridge(environ, lab.url, "--token-env", "LAB_TOKEN") as host:
        await host.begin()
        await host.tools()
        lab.mishap("call", "drop", times=1, only=("write",))
        result = await host.call("write", key="k", text="t")
        assert (result["_meta"]["verdict"], result["_meta"]["retry"]) == ("outcome_unknown", "check-first")
        assert lab.truth.writes["k"] == 1
        assert not (await host.call("write", key="other", text="t")).get("isError")
        assert lab.truth.writes["k"] == 1


async def test_a_silent_server_is_answered_for_at_the_deadline(environ: dict[str, str], lab: AuthLab) -> None:
    environ["LAB_TOKEN"] = lab.personal_token
    async with bridge(environ, lab.url, "--token-env", "LAB_TOKEN", "--timeout", "0.5") as host:
        await host.begin()
        await host.tools()
        lab.mishap("call", "silent", times=1)
        result = await host.call("write", key="k", text="t")
        assert (result["_meta"]["verdict"], result["_meta"]["error"]) == ("outcome_unknown", "timeout")


async def test_the_author_survives_a_lost_session(environ: dict[str, str]) -> None:
    async with AuthLab(era="legacy") as lab:
        environ["LAB_TOKEN"] = lab.personal_token
        flags = ("--token-env", "LAB_TOKEN", "--replay", "sign_in=author", "--session-header", "X-Agent=night")
        async with bridge(environ, lab.url, *flags) as host:
            await host.begin()
            await host.tools()
            await host.call("sign_in", author="ada")
            lab.forget_sessions()
            result = await host.call("whoami")
            assert result["structuredContent"]["author"] == "ada"
            assert lab.counts["sign_ins"] == 2
        assert all(headers.get("x-agent") == "night" for headers in lab.truth.opened)
        assert len(lab.truth.opened) >= 2


def _know_of_a_release(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "settings.json").write_text('{"updates": true}')
    (home / "update.json").write_text(json.dumps({"at": time.time(), "newest": "99.0.0", "trouble": None}))


async def test_the_answer_that_follows_a_newer_release_says_so_once(
    environ: dict[str, str], lab: AuthLab, tmp_path: Path
) -> None:
    _know_of_a_release(Path(environ["INTERLOCK_HOME"]))
    environ["PYTHONPATH"] = str(
        as_installed(tmp_path / "site-packages")
    )  # one that came from an index hears of releases
    environ = {name: value for name, value in environ.items() if name not in ("CI", "INTERLOCK_NO_UPDATE")}
    environ["LAB_TOKEN"] = lab.personal_token
    async with bridge(environ, lab.url, "--token-env", "LAB_TOKEN") as host:
        await host.begin()
        told: list[str] = []
        async with asyncio.timeout(SECONDS):
            while not told:
                result = await host.call("echo", value="hello")
                told = [each["text"] for each in result["content"] if "99.0.0" in each["text"]]
                await asyncio.sleep(0.05)
        assert told == ["[Interlock 0.1.0 is behind: 99.0.0 is out; `interlock update`]"]
        assert len((await host.call("echo", value="hello"))["content"]) == 1


# -- what is typed wrong -------------------------------------------------------------------------------------------------

URL = "https://mcp.example.com/mcp"


def wrong() -> Iterator[tuple[list[str], str]]:
    yield [], "no URL"
    yield ["ftp://example.com/mcp"], "must be an http or https URL"
    yield ["https://"], "must be an http or https URL"
    yield ["https://exa mple.com/"], "must be an http or https URL"
    yield ["https://me:word@example.com/"], "it holds a URL with a password"
    yield [f"{URL}#part"], "has a fragment"
    yield [URL, "--timeout", "0"], "--timeout"
    yield [URL, "--flow", "client-credentials"], "needs --client-id"
    yield [URL, "--callback-port", "80"], "--callback-port"
    yield ["mcp.example.com/mcp"], "Did you mean http://mcp.example.com/mcp ?"
    yield [f"{URL}?token=0123456789abcdef0123"], "a secret must not stand in a command line"
    yield [URL, "--header-env", "X-Key"], "--header-env: write NAME=VARIABLE"
    yield [URL, "--header-env", "X-Key=not a name"], "takes the NAME of an environment variable"
    yield [URL, "--token-env", "sk-" + "a1B2c3D4" * 4], "takes the NAME of an environment variable"
    yield [URL, "--client-secret-env", "two words"], "takes the NAME of an environment variable"
    yield [URL, "--token-env", "X", "--no-auth"], "contradict each other"
    yield [URL, "--token-file", "x", "--scope", "a"], "with a token nobody signs in"
    yield ["https://mcp.example.com/a/../mcp"], "has `.` or `..` in its path"
    yield ["https://mcp.example.com/a/%2e%2e/mcp"], "has `.` or `..` in its path"
    yield [URL, "--resource", "foo"], "--resource is an absolute URI"
    yield [URL, "--issuer", "http://login.example.com"], "--issuer is the https URL"
    yield [URL, "--issuer", "https://login.example.com?t=1"], "--issuer is the https URL"
    yield [URL, "--issuer", "login.example.com"], "--issuer is the https URL"
    yield [URL, "--client-metadata-url", "http://example.com/x"], "--client-metadata-url is an https URL"
    yield [URL, "--session-header", "X Y=z"], "--session-header: write NAME=VALUE"
    yield [URL, "--session-header", "Authorization=Bearer 0123456789abcdef"], "a secret must not stand"
    yield [URL, "--replay", "=name"], "--replay"
    yield [URL, "--name", "a/b"], "--name"


@pytest.mark.parametrize(("arguments", "words"), list(wrong()))
async def test_wrong_flags_are_named(environ: dict[str, str], arguments: list[str], words: str) -> None:
    async with bridge(environ, *arguments) as host:
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        out, err = await host.process.communicate(json.dumps(request).encode() + b"\n")
        assert host.process.returncode == 2
        assert out == b""
        assert words in err.decode()
        assert "Traceback" not in err.decode()
