"""Session binding: who wrote keeps being said after a session is rebuilt, and no write ever goes out without its author."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from tests.upstream.authorized import Reached, authorized
from tests.upstream.reaching import LEGACY_ANN, LEGACY_BEN, reaching
from tests.upstream.scripted import TEXT, Out, Seen, legacy, scripted

from interlock.manifest.config import HeaderValue, HttpTransport, Replay
from interlock.model.fault import Fault
from interlock.model.verdict import Verdict
from interlock.upstream import bindings
from interlock.upstream.contract import Caller, Outgoing, Reply
from interlock.wire import messages

SIGN_IN = {"replay": (Replay("sign_in"),)}
ANN = LEGACY_ANN


def bound(tmp_path: Path, **transport: object):  # type: ignore[no-untyped-def]
    return authorized(tmp_path, era="legacy", transport=SIGN_IN | transport)


def authors(reached: Reached) -> list[tuple[str, str | None]]:
    return [(each.key, each.author) for each in reached.one.lab.applied]


async def write(reached: Reached, key: str, caller: Caller = ANN) -> Reply:
    return await reached.call("write", caller=caller, key=key, text="t")


async def test_the_author_is_said_again_after_the_session_was_lost(tmp_path: Path) -> None:
    async with bound(tmp_path) as reached:
        await reached.call("sign_in", caller=ANN, author="ann")
        await write(reached, "one")
        for key in ("two", "three"):
            reached.one.lab.forget_sessions()
            await write(reached, key)
        assert authors(reached) == [("one", "ann"), ("two", "ann"), ("three", "ann")]


async def test_many_calls_at_once_after_a_loss_have_one_new_session_and_their_author(tmp_path: Path) -> None:
    async with bound(tmp_path) as reached:
        await reached.call("sign_in", caller=ANN, author="ann")
        reached.one.lab.forget_sessions()
        await asyncio.gather(*(write(reached, f"k{number}") for number in range(10)))
        assert {author for _, author in authors(reached)} == {"ann"}
        assert reached.one.lab.truth.writes == {f"k{number}": 1 for number in range(10)}
        assert reached.one.lab.counts["sign_ins"] == 2


async def test_clients_keep_their_own_names(tmp_path: Path) -> None:
    async with bound(tmp_path) as reached:
        await reached.call("sign_in", caller=LEGACY_ANN, author="ann")
        await reached.call("sign_in", caller=LEGACY_BEN, author="ben")
        reached.one.lab.forget_sessions()
        await write(reached, "a", LEGACY_ANN)
        await write(reached, "b", LEGACY_BEN)
        assert authors(reached) == [("a", "ann"), ("b", "ben")]
        reached.server.release("ann")
        await asyncio.sleep(0)
        await write(reached, "c", LEGACY_ANN)  # a new client of that name has said nothing yet
        assert authors(reached)[-1] == ("c", None)


async def test_the_last_name_counts_and_a_failed_one_does_not(tmp_path: Path) -> None:
    async with bound(tmp_path) as reached:
        await reached.call("sign_in", caller=ANN, author="first")
        await reached.call("sign_in", caller=ANN, author="second")
        reached.one.lab.mishap("call", "status", status=500, times=1, only=("sign_in",))
        with pytest.raises(Fault):
            await reached.call("sign_in", caller=ANN, author="third")
        reached.one.lab.forget_sessions()
        await write(reached, "k")
        assert authors(reached) == [("k", "second")]


async def test_a_revoked_token_in_the_middle_of_the_rebuilding_is_no_hindrance(tmp_path: Path) -> None:
    async with bound(tmp_path) as reached:
        await reached.call("sign_in", caller=ANN, author="ann")
        reached.one.lab.forget_sessions()
        reached.one.lab.revoke_access()
        await write(reached, "k")
        assert authors(reached) == [("k", "ann")]
        assert reached.one.lab.counts["refreshes_ok"] == 1


@pytest.mark.parametrize("kind", ["status", "drop", "garbage"])
async def test_where_it_cannot_be_said_again_the_write_is_held_back(tmp_path: Path, kind: str) -> None:
    async with bound(tmp_path) as reached:
        await reached.call("sign_in", caller=ANN, author="ann")
        reached.one.lab.forget_sessions()
        reached.one.lab.mishap("call", kind, status=500, times=1, only=("sign_in",))  # type: ignore[arg-type]
        for _ in range(2):
            with pytest.raises(Fault) as raised:
                await write(reached, "k")
            fault = raised.value
            assert (fault.slug, fault.verdict) == ("binding-lost", Verdict.NEVER_REACHED)
            assert "sign_in" in fault.message
        assert authors(reached) == []
        await reached.call("sign_in", caller=ANN, author="ann")
        await write(reached, "k")
        assert authors(reached) == [("k", "ann")]


async def test_a_rebuilding_that_works_heals_one_that_did_not(tmp_path: Path) -> None:
    async with bound(tmp_path) as reached:
        await reached.call("sign_in", caller=ANN, author="ann")
        reached.one.lab.forget_sessions()
        reached.one.lab.mishap("call", "status", status=500, times=1, only=("sign_in",))
        with pytest.raises(Fault):
            await write(reached, "k")
        for session in list(reached.server.sessions.values()):
            reached.server._discard(session)
        await write(reached, "k")
        assert authors(reached) == [("k", "ann")]


async def test_what_is_too_long_to_be_remembered_is_not_replaced_by_an_older_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bindings, "MAX_REMEMBERED_BYTES", 100)
    async with bound(tmp_path) as reached:
        await reached.call("sign_in", caller=ANN, author="ann")
        await reached.call("sign_in", caller=ANN, author="b" * 200)
        reached.one.lab.forget_sessions()
        with pytest.raises(Fault, match="too long to be remembered"):
            await write(reached, "k")
        assert authors(reached) == []


async def test_only_the_named_arguments_are_remembered(tmp_path: Path) -> None:
    seen: list[dict[str, object]] = []

    async def call(got: Seen, out: Out) -> None:
        params = got.message["params"]
        assert isinstance(params, dict)
        seen.append(params)
        out.result(got, TEXT)

    transport_of: Callable[[str], HttpTransport] = lambda url: HttpTransport(  # noqa: E731
        "http", url, replay=(Replay("sign_in", ("author",)),)
    )
    async with scripted(legacy(call)) as there, reaching(transport_of(there.url)) as reached:

        async def ask(tool: str, **arguments: object) -> None:
            params = {"name": messages.raw(tool), "arguments": messages.raw(arguments)}
            await reached.server.request(Outgoing("tools/call", params, ANN, 5.0, name=tool))

        await ask("sign_in", author="ann", password="only-once")
        for session in list(reached.server.sessions.values()):
            reached.server._discard(session)
        await ask("write", key="k")
        assert seen[1] == {"name": "sign_in", "arguments": {"author": "ann"}}
        assert seen[2]["name"] == "write"


async def test_several_declared_calls_are_repeated_in_their_order(tmp_path: Path) -> None:
    names: list[str] = []

    async def call(got: Seen, out: Out) -> None:
        names.append(got.headers.get("mcp-name") or json.loads(got.body)["params"]["name"])
        out.result(got, TEXT)

    async with scripted(legacy(call)) as there:
        transport = HttpTransport("http", there.url, replay=(Replay("first"), Replay("second"), Replay("never")))
        async with reaching(transport) as reached:

            async def ask(tool: str) -> None:
                params = {"name": messages.raw(tool), "arguments": messages.raw({})}
                await reached.server.request(Outgoing("tools/call", params, ANN, 5.0, name=tool))

            for tool in ("second", "first"):
                await ask(tool)
            for session in list(reached.server.sessions.values()):
                reached.server._discard(session)
            await ask("write")
            assert names == ["second", "first", "first", "second", "write"]


async def test_a_header_of_the_opening_goes_with_each_opening_and_nowhere_else(tmp_path: Path) -> None:
    standing = HeaderValue("X-Standing", literal="reviewer")
    async with bound(tmp_path, session_headers=(standing,)) as reached:
        await reached.call("sign_in", caller=ANN, author="ann")
        reached.one.lab.forget_sessions()
        await write(reached, "k")
        opened = reached.one.lab.truth.opened
        assert [each.get("x-standing") for each in opened] == ["reviewer", "reviewer"]


async def test_a_session_that_is_lost_again_while_it_is_rebuilt_is_told_as_not_sent(tmp_path: Path) -> None:
    lost = asyncio.Event()
    names: list[str] = []

    async def call(got: Seen, out: Out) -> None:
        params = got.message["params"]
        assert isinstance(params, dict)
        names.append(str(params["name"]))
        if lost.is_set():
            out.send(404)
        else:
            out.result(got, TEXT)

    ask: Callable[[str], Awaitable[Reply]]
    async with scripted(legacy(call)) as there:
        transport = HttpTransport("http", there.url, replay=(Replay("sign_in"),))
        async with reaching(transport) as reached:

            async def ask(tool: str) -> Reply:
                params = {"name": messages.raw(tool), "arguments": messages.raw({})}
                return await reached.server.request(Outgoing("tools/call", params, ANN, 5.0, name=tool))

            await ask("sign_in")
            lost.set()
            with pytest.raises(Fault) as raised:
                await ask("write")
            assert raised.value.verdict is Verdict.NEVER_REACHED
            assert names == ["sign_in", "write", "sign_in"]
            lost.clear()
            await ask("write")
            assert names[-2:] == ["sign_in", "write"]
