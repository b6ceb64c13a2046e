"""One declared server: eras found and found anew, sessions that belong to one client, and calls that are never repeated."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.manifest.config import EnvValue, HeaderValue, HttpTransport, StdioTransport
from interlock.model.fault import Fault
from interlock.upstream import handshake, http
from interlock.upstream.contract import Caller, Outgoing
from interlock.wire import messages
from interlock.wire.eras import Era
from interlock.wire.messages import Raw

from .reaching import ANN, BEN, LEGACY_ANN, LEGACY_BEN, Reached, reaching
from .scripted import (
    DISCOVERED,
    INITIALIZED,
    SECONDS,
    TEXT,
    Out,
    Script,
    Seen,
    eventually,
    free_port,
    legacy,
    modern,
    scripted,
)

SOURCE = Path(__file__).resolve().parents[2] / "src"


async def answers(seen: Seen, out: Out) -> None:
    out.result(seen, TEXT)


def _connections(reached: Reached) -> int:
    pool = reached.server._pool
    return len(pool.open) if pool is not None else 0


def fixture(*options: str) -> StdioTransport:
    command = (sys.executable, "-m", "interlock.lab.matrix_server", "--stdio", *options)
    return StdioTransport(command, SOURCE, (EnvValue("PYTHONPATH", literal=str(SOURCE)),))


# -- verdicts ------------------------------------------------------------------------------------------------------------

EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


async def _lost_before(seen: Seen, out: Out) -> None:
    out.close()


async def _reset(seen: Seen, out: Out) -> None:
    out.reset()


async def _half_an_answer(seen: Seen, out: Out) -> None:
    out.raw(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{"jsonrpc"')
    out.close()


async def _half_a_head(seen: Seen, out: Out) -> None:
    out.raw(b"HTTP/1.1 200 OK\r\ncontent-ty")
    out.close()


async def _no_http(seen: Seen, out: Out) -> None:
    out.raw(b"SSH-2.0-OpenSSH_9.9\r\n")
    out.close()


async def _upgrade(seen: Seen, out: Out) -> None:
    out.raw(b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")


async def _stream_without_answer(seen: Seen, out: Out) -> None:
    out.begin_events()
    out.end_events()


async def _broken_stream(seen: Seen, out: Out) -> None:
    out.raw(EVENTS)
    out.close()


async def _huge_headers(seen: Seen, out: Out) -> None:
    out.raw(b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 100_000 + b"\r\n\r\n")


async def _nothing(seen: Seen, out: Out) -> None:
    return


def _status(status: int, headers: dict[str, str] | None = None, body: bytes = b"") -> Script:
    async def script(seen: Seen, out: Out) -> None:
        out.send(status, body, headers, "text/plain")

    return script


def _body(body: bytes, kind: str = "application/json") -> Script:
    async def script(seen: Seen, out: Out) -> None:
        out.send(200, body, kind=kind)

    return script


CHALLENGE = {"www-authenticate": "Bearer"}


@pytest.mark.parametrize("era", ["modern", "legacy"])
@pytest.mark.parametrize(
    ("call", "slug", "verdict"),
    [
        pytest.param(_lost_before, "connection-lost", "outcome_unknown", id="closed without an answer"),
        pytest.param(_reset, "connection-lost", "outcome_unknown", id="reset"),
        pytest.param(_half_a_head, "connection-lost", "outcome_unknown", id="half a head"),
        pytest.param(_half_an_answer, "connection-lost", "outcome_unknown", id="half an answer"),
        pytest.param(_no_http, "connection-lost", "outcome_unknown", id="no HTTP"),
        pytest.param(_upgrade, "connection-lost", "outcome_unknown", id="another protocol"),
        pytest.param(_huge_headers, "connection-lost", "outcome_unknown", id="huge headers"),
        pytest.param(_stream_without_answer, "connection-lost", "outcome_unknown", id="stream without answer"),
        pytest.param(_broken_stream, "connection-lost", "outcome_unknown", id="broken stream"),
        pytest.param(_nothing, "timeout", "outcome_unknown", id="silence"),
        pytest.param(_status(401, CHALLENGE), "unauthorized", "never_reached", id="401 with a challenge"),
        pytest.param(_status(401), "unauthorized", "outcome_unknown", id="401 without"),
        pytest.param(_status(403, CHALLENGE), "forbidden", "never_reached", id="403 with a challenge"),
        pytest.param(_status(403), "forbidden", "outcome_unknown", id="403 without"),
        pytest.param(_status(429, {"retry-after": "3"}), "rate-limited", "wait", id="429 with a time"),
        pytest.param(_status(429), "http-status", "outcome_unknown", id="429 without"),
        *[
            pytest.param(_status(status), "http-status", "outcome_unknown", id=str(status))
            for status in (204, 307, 408, 409, 425, 499, 500, 502, 503, 504)
        ],
        pytest.param(_status(202), "bad-answer", "outcome_unknown", id="202"),
        pytest.param(_body(b""), "bad-answer", "outcome_unknown", id="empty"),
        pytest.param(_body(b"<html>"), "bad-answer", "outcome_unknown", id="HTML"),
        pytest.param(_body(b"[]"), "bad-answer", "outcome_unknown", id="an array"),
        pytest.param(_body(b'{"jsonrpc":"2.0","id":999,"result":{}}'), "bad-answer", "outcome_unknown", id="another's answer"),
        pytest.param(_body(b'{"jsonrpc":"2.0","method":"notifications/x"}'), "bad-answer", "outcome_unknown", id="only a note"),
        pytest.param(_body(b'{"jsonrpc":"2.0","id":null,"error":7}'), "bad-answer", "outcome_unknown", id="malformed error"),
    ],
)  # fmt: skip
async def test_what_becomes_of_a_call(era: str, call: Script, slug: str, verdict: str) -> None:
    make = modern if era == "modern" else legacy
    async with scripted(make(call)) as there, reaching(there.url) as reached:
        fault = await reached.fault(ANN if era == "modern" else LEGACY_ANN, seconds=0.3)
        assert (fault.slug, fault.verdict.value, fault.server) == (slug, verdict, "srv")
        assert len(there.of("tools/call")) == 1  # never sent twice


@pytest.mark.parametrize(
    ("status", "id", "delivered"),
    [
        (200, "same", True),
        (400, "same", True),
        (404, "same", True),
        (500, "same", True),
        (400, None, True),
        (500, None, False),  # a gateway's words about some request, not the server's about this one
        (502, None, False),
        (400, 999, False),
        (401, "same", False),
        (403, "same", False),
        (429, "same", False),
    ],
)
async def test_a_protocol_error_is_an_answer_on_any_status(status: int, id: object, delivered: bool) -> None:
    async def call(seen: Seen, out: Out) -> None:
        out.error(seen, -31999, status, "vendor", id)

    async with scripted(modern(call)) as there, reaching(there.url) as reached:
        if delivered:
            reply = await reached.call()
            assert reply.is_error
            assert b'"code": -31999' in reply.body
        else:
            assert (await reached.fault()).verdict.value == "outcome_unknown"
        assert len(there.of("tools/call")) == 1


async def test_nobody_listens() -> None:
    port = free_port()
    for host in ("127.0.0.1", "localhost"):
        async with reaching(f"http://{host}:{port}/mcp") as reached:
            fault = await reached.fault()
            assert (fault.slug, fault.verdict.value, fault.retry) == ("unreachable", "never_reached", "safe")
            assert f"nothing listens at {host}:{port}" in fault.message
            assert reached.server.state == "failed"


async def test_a_name_that_does_not_resolve(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    async def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", refuse)
    async with reaching("http://no-such-name.invalid/mcp") as reached:
        fault = await reached.fault()
        assert (fault.slug, fault.verdict.value) == ("unreachable", "never_reached")
        assert "the name no-such-name.invalid does not resolve" in fault.message


async def test_tls_where_there_is_none() -> None:
    got = bytearray()

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        got.extend(await reader.read(65536))
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    there = await asyncio.start_server(plain, "127.0.0.1", 0)
    port = there.sockets[0].getsockname()[1]
    async with there, reaching(f"https://127.0.0.1:{port}/mcp") as reached:
        fault = await reached.fault()
    assert (fault.slug, fault.verdict.value) == ("tls-failed", "never_reached")
    assert b"POST" not in got  # nothing of the request left in the clear


async def test_a_call_that_waited_for_a_connection_was_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The deadline passed before there was a connection: nothing may have taken effect."""
    async with scripted(modern(answers)) as there, reaching(there.url) as reached:
        await reached.call()

        async def never(*_: object, **__: object) -> None:
            await asyncio.Event().wait()

        monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", never)
        for writer in list(there.open):
            writer.close()
        await eventually(lambda: not _connections(reached))
        fault = await reached.fault(seconds=0.2)
        assert (fault.slug, fault.verdict.value) == ("unreachable", "never_reached")
        assert "not sent" in fault.message
        assert len(there.of("tools/call")) == 1


async def test_all_of_many_calls_get_an_answer_where_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """More calls than connections are allowed: none may be left waiting for one."""
    from interlock.upstream import http1

    monkeypatch.setattr(http1, "MAX_CONNECTIONS", 4)
    async with scripted(modern(answers)) as there, reaching(there.url) as reached:
        await reached.call()
        reached.server._pool.origin = http1.Origin("127.0.0.1", free_port(), False)  # type: ignore[union-attr]
        for writer in list(there.open):
            writer.close()
        await eventually(lambda: not _connections(reached))
        faults = await asyncio.gather(*(reached.fault(seconds=5.0) for _ in range(20)))
        assert {(fault.slug, fault.verdict.value) for fault in faults} == {("unreachable", "never_reached")}


async def test_a_cancelled_call_is_not_waited_for() -> None:
    async def call(seen: Seen, out: Out) -> None:
        await asyncio.Event().wait()

    for make, caller in ((modern, ANN), (legacy, LEGACY_ANN)):
        async with scripted(make(call)) as there, reaching(there.url) as reached:
            task = asyncio.ensure_future(reached.call(caller))
            await there.until(lambda there=there: there.of("tools/call"))
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            if make is legacy:
                # A closed stream is no cancellation in that era, so it is told.
                await there.until(lambda there=there: there.of("notifications/cancelled"))
                told = there.of("notifications/cancelled")[0].message["params"]
                assert told["requestId"] == there.of("tools/call")[0].message["id"]  # type: ignore[index]
            else:
                await eventually(lambda reached=reached: not _connections(reached))
                assert not there.of("notifications/cancelled")


# -- lost sessions -------------------------------------------------------------------------------------------------------

GONE = [
    pytest.param(404, b"", id="404"),
    pytest.param(
        404, b'{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}', id="404 of an SDK"
    ),
    pytest.param(
        400, b'{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: No valid session ID"}}', id="400 of an SDK"
    ),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), GONE)
async def test_a_lost_session_is_opened_again_and_the_call_sent_once(status: int, body: bytes) -> None:
    current = "session-1"

    async def call(seen: Seen, out: Out) -> None:
        if seen.headers["mcp-session-id"] != current:
            out.send(status, body, kind="application/json")
        else:
            out.result(seen, TEXT)

    async def script(seen: Seen, out: Out) -> None:
        await legacy(call, session=current)(seen, out)

    async with scripted(script) as there, reaching(there.url) as reached:
        await reached.call(LEGACY_ANN)
        current = "session-2"
        assert not (await reached.call(LEGACY_ANN)).is_error
        sent = [each.headers["mcp-session-id"] for each in there.of("tools/call")]
        assert sent == ["session-1", "session-1", "session-2"]
        assert len(there.of("initialize")) == 2
        assert len(there.of("notifications/initialized")) == 2


async def test_a_session_that_is_lost_again_at_once_is_not_tried_for_ever() -> None:
    async with scripted(legacy(_status(404))) as there, reaching(there.url) as reached:
        fault = await reached.fault(LEGACY_ANN)
        assert (fault.verdict.value, fault.retry) == ("never_reached", "safe")
        assert len(there.of("tools/call")) == 2
        assert len(there.of("initialize")) == 2


async def test_many_calls_of_a_lost_session_all_go_through() -> None:
    """Each of them is told that the session is gone; none of them may be written off because another was told first."""
    current = "session-1"
    waiting: list[tuple[Seen, Out]] = []

    async def call(seen: Seen, out: Out) -> None:
        if seen.headers["mcp-session-id"] == current:
            out.result(seen, TEXT)
            return
        waiting.append((seen, out))
        if len(waiting) == 8:
            for number, (_, each) in enumerate(waiting):
                asyncio.get_running_loop().call_later(number * 0.02, each.send, 404)

    async def script(seen: Seen, out: Out) -> None:
        await legacy(call, session=current)(seen, out)

    async with scripted(script) as there, reaching(there.url) as reached:
        await reached.call(LEGACY_ANN)
        current = "session-2"
        replies = await asyncio.gather(*(reached.call(LEGACY_ANN) for _ in range(8)))
        assert not any(reply.is_error for reply in replies)
        assert len(there.of("initialize")) == 2


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"the argument session_name is wrong"}}'),
        (400, b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"the session of your cart is closed"}}'),
        (400, b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"saved, but the mail session failed"}}'),
        (404, b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}'),
        (404, b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32002,"message":"row 7 was not found after the insert"}}'),
        (500, b'{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"the session of the database broke"}}'),
    ],
)
async def test_an_error_that_only_sounds_like_a_lost_session_is_an_answer(status: int, body: bytes) -> None:
    async def call(seen: Seen, out: Out) -> None:
        out.send(status, body.replace(b"ID", str(seen.message["id"]).encode()), kind="application/json")

    async with scripted(legacy(call)) as there, reaching(there.url) as reached:
        assert (await reached.call(LEGACY_ANN)).is_error
        assert len(there.of("tools/call")) == 1
        assert len(there.of("initialize")) == 1


async def test_words_about_a_session_prove_nothing_about_a_call() -> None:
    """It is not sent again, for it may have been acted on; the next one goes out in a session of its own."""
    broken = True

    async def call(seen: Seen, out: Out) -> None:
        if broken:
            out.send(400, b"Your session cart was saved, but the mailer failed", kind="text/plain")
        else:
            out.result(seen, TEXT)

    async with scripted(legacy(call)) as there, reaching(there.url) as reached:
        fault = await reached.fault(LEGACY_ANN)
        assert (fault.slug, fault.verdict.value) == ("http-status", "outcome_unknown")
        assert len(there.of("tools/call")) == 1
        broken = False
        assert not (await reached.call(LEGACY_ANN)).is_error
        assert len(there.of("tools/call")) == len(there.of("initialize")) == 2


# -- streams -------------------------------------------------------------------------------------------------------------


async def test_a_broken_legacy_stream_is_resumed() -> None:
    async def call(seen: Seen, out: Out) -> None:
        out.begin_events()
        out.event(id="e1", retry=10)
        out.close()

    async def stream(seen: Seen, out: Out) -> None:
        if "last-event-id" not in seen.headers:
            out.send(405)
            return
        assert seen.headers["last-event-id"] == "e1"
        out.begin_events()
        sent = there.of("tools/call")[0].message["id"]
        out.event({"jsonrpc": "2.0", "id": sent, "result": TEXT}, "e2")
        out.end_events()

    async with scripted(legacy(call, stream=stream)) as there, reaching(there.url) as reached:
        assert not (await reached.call(LEGACY_ANN)).is_error
        assert len(there.of("tools/call")) == 1


@pytest.mark.parametrize("status", [404, 405, 400, 410])
async def test_a_stream_that_cannot_be_resumed_is_given_up_at_once(status: int) -> None:
    """And not taken for a lost session, after which the call would be sent again."""

    async def call(seen: Seen, out: Out) -> None:
        out.begin_events()
        out.event(id="e1", retry=1)
        out.close()

    async def stream(seen: Seen, out: Out) -> None:
        out.send(405 if "last-event-id" not in seen.headers else status, b"session")

    async with scripted(legacy(call, stream=stream)) as there, reaching(there.url) as reached:
        fault = await reached.fault(LEGACY_ANN)
        assert (fault.slug, fault.verdict.value) == ("connection-lost", "outcome_unknown")
        assert len([each for each in there.seen if "last-event-id" in each.headers]) == 1
        assert len(there.of("tools/call")) == 1


async def test_a_stream_that_keeps_breaking_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_RESUMES", 3)

    async def broken(seen: Seen, out: Out) -> None:
        if seen.method == "GET" and "last-event-id" not in seen.headers:
            out.send(405)
            return
        out.begin_events()
        if seen.method == "POST":
            out.event(id="e1", retry=1)
        out.close()

    async with scripted(legacy(broken, stream=broken)) as there, reaching(there.url) as reached:
        fault = await reached.fault(LEGACY_ANN)
        assert fault.verdict.value == "outcome_unknown"
        assert len([each for each in there.seen if "last-event-id" in each.headers]) == 3


async def test_a_server_that_never_ends_its_streams_does_not_use_up_the_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "LINGER_SECONDS", 0.05, raising=False)

    async def call(seen: Seen, out: Out) -> None:
        out.begin_events()
        out.event({"jsonrpc": "2.0", "id": seen.message["id"], "result": TEXT})

    async with scripted(modern(call)) as there, reaching(there.url) as reached:
        for _ in range(5):
            await reached.call()
        await eventually(lambda: len(there.open) <= 1)


# -- eras ----------------------------------------------------------------------------------------------------------------


def dual(call: Script) -> Script:
    """Speaks both."""

    async def script(seen: Seen, out: Out) -> None:
        is_modern = seen.headers.get("mcp-protocol-version") == "2026-07-28"
        await (modern if is_modern else legacy)(call)(seen, out)

    return script


@pytest.mark.parametrize("caller", [ANN, LEGACY_ANN], ids=["modern caller", "legacy caller"])
@pytest.mark.parametrize(
    ("make", "modern_era", "legacy_era"),
    [(modern, Era.MODERN, Era.MODERN), (legacy, Era.LEGACY, Era.LEGACY), (dual, Era.MODERN, Era.LEGACY)],
    ids=["modern-only", "legacy-only", "dual"],
)
async def test_the_era_is_found(
    caller: object, make: Callable[[Script], Script], modern_era: Era, legacy_era: Era
) -> None:
    async with scripted(make(answers)) as there, reaching(there.url) as reached:
        expected = modern_era if caller is ANN else legacy_era
        for _ in range(3):
            reply = await reached.call(caller)  # type: ignore[arg-type]
            assert reply.era is expected
        assert reached.server.state == "ready"
        probes = len(there.of("server/discover")) + len(there.of("initialize"))
        assert probes <= 2  # found once
        assert expected in reached.remembered[-1]


@pytest.mark.parametrize(
    ("known", "probes"),
    [({Era.MODERN}, ["server/discover"]), ({Era.LEGACY}, ["server/discover", "initialize"])],
)
async def test_what_was_known_of_a_server_saves_a_probe_or_does_no_harm(known: set[Era], probes: list[str]) -> None:
    make = modern if Era.MODERN in known else legacy
    async with scripted(make(answers)) as there, reaching(there.url, known=frozenset(known)) as reached:
        await reached.call()
        assert [each.rpc for each in there.seen if each.rpc in ("server/discover", "initialize")] == probes


@pytest.mark.parametrize("known", [Era.MODERN, Era.LEGACY])
@pytest.mark.parametrize("now", [modern, legacy], ids=["now modern", "now legacy"])
@pytest.mark.parametrize("caller", [ANN, LEGACY_ANN], ids=["modern caller", "legacy caller"])
async def test_a_wrong_memory_is_corrected_in_the_first_call(
    known: Era, now: Callable[[Script], Script], caller: object
) -> None:
    async with scripted(now(answers)) as there, reaching(there.url, known=frozenset({known})) as reached:
        assert not (await reached.call(caller)).is_error  # type: ignore[arg-type]


@pytest.mark.parametrize("caller", [ANN, LEGACY_ANN], ids=["modern caller", "legacy caller"])
@pytest.mark.parametrize(("before", "after"), [(modern, legacy), (legacy, modern), (dual, legacy), (dual, modern)])
async def test_a_server_that_changes_its_era_is_found_again(
    caller: object, before: Callable[[Script], Script], after: Callable[[Script], Script]
) -> None:
    """A new build of the server runs at the same address. At most one call may fail on the way."""
    make = before

    async def script(seen: Seen, out: Out) -> None:
        if make is after and seen.headers.get("mcp-session-id") == "old":
            out.send(404)
            return
        await (legacy(answers, session="old" if make is before else "new") if make is legacy else make(answers))(
            seen, out
        )

    async with scripted(script) as there, reaching(there.url) as reached:
        await reached.call(caller)  # type: ignore[arg-type]
        make = after

        async def works() -> bool:
            try:
                return not (await reached.call(caller)).is_error  # type: ignore[arg-type]
            except Exception:
                return False

        outcomes = [await works() for _ in range(3)]
        assert outcomes[1:] == [True, True], outcomes


@pytest.mark.parametrize(
    "answer",
    [_status(401, CHALLENGE), _status(403), _status(500), _status(503), _status(429, {"retry-after": "1"})],
    ids=["401", "403", "500", "503", "429"],
)
async def test_what_settles_nothing_is_not_taken_for_an_era(answer: Script) -> None:
    """A server that is out of order is no legacy server: afterwards it is asked in the modern era first, as before."""
    broken = True

    async def script(seen: Seen, out: Out) -> None:
        await (answer if broken else modern(answers))(seen, out)

    async with scripted(script) as there, reaching(there.url) as reached:
        fault = await reached.fault()
        assert fault.verdict.value in ("never_reached", "wait")
        assert not there.of("tools/call")
        assert reached.remembered == []
        broken = False
        assert (await reached.call()).era is Era.MODERN


async def test_a_server_that_fails_on_the_probe_but_is_known_to_be_legacy_is_used() -> None:
    """Some legacy servers answer 500 to a method that they do not know."""

    async def script(seen: Seen, out: Out) -> None:
        if seen.rpc == "server/discover":
            out.send(500)
        else:
            await legacy(answers)(seen, out)

    async with scripted(script) as there, reaching(there.url, known=frozenset({Era.LEGACY})) as reached:
        assert (await reached.call(ANN)).era is Era.LEGACY
        assert (await reached.call(BEN)).era is Era.LEGACY
        assert len(there.of("initialize")) == 2


async def test_a_modern_server_that_is_silent_on_initialize_serves_legacy_clients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handshake, "PROBE_SECONDS", 0.3)
    inner = modern(answers)

    async def script(seen: Seen, out: Out) -> None:
        if seen.rpc != "initialize":
            await inner(seen, out)

    async with scripted(script) as there, reaching(there.url) as reached:
        assert not (await reached.call(ANN)).is_error
        reply = await reached.call(LEGACY_ANN)  # known to be modern by now
        assert (reply.era, reply.is_error) == (Era.MODERN, False)
        assert len(there.of("initialize")) == 1


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_an_era_that_the_manifest_sets_is_not_doubted(era: str) -> None:
    other = legacy if era == "modern" else modern
    async with scripted(other(answers)) as there, reaching(there.url, era=era) as reached:
        fault = await reached.fault()
        assert fault.verdict.value == "never_reached"
        assert not there.of("initialize" if era == "modern" else "server/discover")
    make = modern if era == "modern" else legacy
    async with scripted(make(answers)) as there, reaching(there.url, era=era) as reached:
        for caller in (ANN, LEGACY_ANN):
            assert (await reached.call(caller)).era.value == era
        assert not there.of("initialize" if era == "modern" else "server/discover")


@pytest.mark.parametrize(
    ("versions", "works"),
    [(["2026-07-28"], True), (["2099-01-01", "2026-07-28"], True), (["2099-01-01"], False), ([], False)],
)
async def test_versions_of_a_modern_server(versions: list[str], works: bool) -> None:
    async def script(seen: Seen, out: Out) -> None:
        if seen.rpc == "server/discover":
            out.result(seen, {**DISCOVERED, "supportedVersions": versions})
        elif seen.rpc == "tools/call":
            out.result(seen, TEXT)
        else:
            out.error(seen, -32601, 404)

    async with scripted(script) as there, reaching(there.url) as reached:
        if works:
            assert (await reached.call()).era is Era.MODERN
        else:
            assert (await reached.fault()).verdict.value == "never_reached"


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2099-01-01", None])
async def test_versions_of_a_legacy_server(version: str | None) -> None:
    async def script(seen: Seen, out: Out) -> None:
        if seen.rpc == "initialize":
            out.result(seen, {**INITIALIZED, "protocolVersion": version}, {"mcp-session-id": "s"})
        else:
            await legacy(answers)(seen, out)

    async with scripted(script) as there, reaching(there.url) as reached:
        if version in (None, "2099-01-01"):
            assert (await reached.fault(LEGACY_ANN)).slug == "handshake-failed"
            return
        await reached.call(LEGACY_ANN)
        assert there.of("tools/call")[0].headers["mcp-protocol-version"] == version


# -- whose sessions ------------------------------------------------------------------------------------------------------


async def _pids(reached: Reached, callers: list[Caller]) -> list[object]:
    found = []
    for caller in callers:
        out = Outgoing("tools/call", {"name": messages.raw("whoami"), "arguments": messages.raw({})}, caller, 10.0)
        reply = await reached.server.request(out)
        found.append(json.loads(reply.body)["structuredContent"]["pid"])
    return found


@pytest.mark.parametrize("options", [[], ["--before-initialize", "silent"]], ids=["answers the probe", "silent"])
@pytest.mark.parametrize("callers", [[ANN, BEN], [LEGACY_ANN, LEGACY_BEN]], ids=["modern callers", "legacy callers"])
async def test_a_legacy_process_serves_one_client(
    options: list[str], callers: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of one principal reaches another, however the server's era was found."""
    monkeypatch.setattr(handshake, "PROBE_SECONDS", 0.5)
    async with reaching(fixture("--era", "legacy", *options), startup=20.0) as reached:
        ann, ben, ann_again, ben_again = await _pids(reached, [*callers, *callers])
        assert ann != ben
        assert (ann_again, ben_again) == (ann, ben)
        assert all("#" in binding for binding in reached.server.sessions)
        reached.server.release("ann")
        assert [binding.partition("#")[0] for binding in reached.server.sessions] == ["ben"]


async def test_a_shared_legacy_process_serves_all() -> None:
    async with reaching(fixture("--era", "legacy"), startup=20.0, processes="shared") as reached:
        pids = await _pids(reached, [ANN, BEN, LEGACY_ANN, LEGACY_BEN])
        assert len(set(pids)) == 1


async def test_a_modern_process_serves_all() -> None:
    async with reaching(fixture("--era", "modern"), startup=20.0) as reached:
        pids = await _pids(reached, [ANN, BEN, LEGACY_ANN])
        assert len(set(pids)) == 1


async def _sse_script(seen: Seen, out: Out, streams: dict[str, Out]) -> None:
    """A 2024-11-05 server: each GET is a session, named in the address for its POSTs."""
    if seen.method == "GET":
        name = f"s{len(streams)}"
        streams[name] = out
        out.begin_events()
        data = f"event: endpoint\ndata: /post?s={name}\n\n".encode()
        out.raw(b"%x\r\n%b\r\n" % (len(data), data))
        await asyncio.Event().wait()
    name = seen.path.partition("=")[2]
    out.send(202)
    if seen.rpc == "initialize":
        result: object = {**INITIALIZED, "protocolVersion": "2024-11-05"}
    elif seen.rpc == "tools/call":
        result = {"content": [{"type": "text", "text": name}]}
    else:
        return
    streams[name].event({"jsonrpc": "2.0", "id": seen.message["id"], "result": result})


@pytest.mark.parametrize("callers", [[ANN, BEN], [LEGACY_ANN, LEGACY_BEN]], ids=["modern callers", "legacy callers"])
@pytest.mark.parametrize("declared", ["sse", "http"])
async def test_an_sse_session_serves_one_client(callers: list[object], declared: str) -> None:
    """Also where the manifest says `http` and the server turns out to speak only the old transport."""
    streams: dict[str, Out] = {}

    async def script(seen: Seen, out: Out) -> None:
        if declared == "http" and seen.method == "POST" and "?" not in seen.path:
            out.send(405)
        else:
            await _sse_script(seen, out, streams)

    async with scripted(script) as there, reaching(HttpTransport(declared, there.url)) as reached:  # type: ignore[arg-type]
        replies = [(await reached.call(caller)).body for caller in [*callers, *callers]]  # type: ignore[arg-type]
        assert replies[0] != replies[1]
        assert replies[2:] == replies[:2]
        assert len(streams) == 2


@pytest.mark.parametrize(
    "address", ["http://evil.example/post", "ftp://x/post", "//evil.example/post", "http://[::bad/x"]
)
async def test_an_sse_server_may_name_its_own_origin_only(address: str) -> None:
    async def script(seen: Seen, out: Out) -> None:
        out.begin_events()
        data = f"event: endpoint\ndata: {address}\n\n".encode()
        out.raw(b"%x\r\n%b\r\n" % (len(data), data))
        await asyncio.Event().wait()

    async with scripted(script) as there, reaching(HttpTransport("sse", there.url)) as reached:
        fault = await reached.fault()
        assert fault.verdict.value == "never_reached"
        assert not [each for each in there.seen if each.method == "POST"]


async def test_a_client_whose_capabilities_keep_changing_gets_only_so_many_sessions() -> None:
    async with scripted(legacy(answers)) as there, reaching(there.url) as reached:
        for number in range(10):
            await reached.call(Caller("ann", "ann", Raw(b'{"experimental":{"n":%d}}' % number), era=Era.LEGACY))
        assert len(reached.server.sessions) <= 5
        assert len(there.of("initialize")) == 10


# -- configuration -------------------------------------------------------------------------------------------------------


async def test_headers_come_from_the_environment() -> None:
    headers = (
        HeaderValue("authorization", source="TOKEN", prefix="Bearer "),
        HeaderValue("x-plain", literal="plain"),
    )

    async with scripted(modern(answers)) as there:
        transport = HttpTransport("http", None, "URL", headers)
        environ = {"URL": there.url, "TOKEN": " secret\n"}
        async with reaching(transport, environ=environ) as reached:
            await reached.call()
            sent = there.of("tools/call")[0].headers
            assert (sent["authorization"], sent["x-plain"]) == ("Bearer secret", "plain")
            assert sent["host"] == f"127.0.0.1:{there.port}"


@pytest.mark.parametrize(
    ("environ", "slug", "words"),
    [
        ({}, "env-missing", "URL"),
        ({"URL": ""}, "env-missing", "URL"),
        ({"URL": "http://x/", "OTHER": "x"}, "env-missing", "TOKEN"),
        ({"URL": "not a url", "TOKEN": "x"}, "unreachable", "not an http or https URL"),
        ({"URL": "ftp://x/", "TOKEN": "x"}, "unreachable", "not an http or https URL"),
        ({"URL": "http://", "TOKEN": "x"}, "unreachable", "not an http or https URL"),
        ({"URL": "http://x:99999/", "TOKEN": "x"}, "unreachable", "not an http or https URL"),
        ({"URL": "http://x:port/", "TOKEN": "x"}, "unreachable", "not an http or https URL"),
        ({"URL": "http://[::1/", "TOKEN": "x"}, "unreachable", "not an http or https URL"),
        ({"URL": "http://x/", "TOKEN": "a\r\nx-evil: 1"}, "env-missing", "authorization"),
        ({"URL": "http://x/", "TOKEN": "\u20ac"}, "env-missing", "authorization"),
    ],
)
async def test_an_environment_that_lacks_something(environ: dict[str, str], slug: str, words: str) -> None:
    transport = HttpTransport("http", None, "URL", (HeaderValue("authorization", source="TOKEN"),))
    async with reaching(transport, environ=environ) as reached:
        fault = await reached.fault()
        assert (fault.slug, fault.verdict.value) == (slug, "never_reached")
        assert words in fault.message
        assert environ.get("TOKEN", "?")[:3] not in fault.message or environ.get("TOKEN") == "x"


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        ("/mcp", "/mcp"),
        ("", "/"),
        ("/a b", "/a%20b"),
        ("/\u00e4?q=\u00e4&r=%2F", "/%C3%A4?q=%C3%A4&r=%2F"),
        ("/x#y", "/x"),
    ],
)
async def test_paths(path: str, sent: str) -> None:
    async with scripted(modern(answers)) as there, reaching(f"http://127.0.0.1:{there.port}{path}") as reached:
        await reached.call()
        assert {each.path for each in there.seen} == {sent}


@pytest.mark.parametrize("state", ["disabled", "blocked"])
async def test_a_server_that_may_not_run_is_not_reached(state: str) -> None:
    said = {"enabled": False} if state == "disabled" else {"blocked": "its manifest is not trusted"}
    async with scripted(modern(answers)) as there, reaching(there.url, **said) as reached:
        fault = await reached.fault()
        assert (fault.slug, fault.verdict.value, fault.retry) == ("server-disabled", "never_reached", "never")
        assert reached.server.state == state
        assert there.connections == 0


async def test_a_server_that_takes_too_long_to_be_ready() -> None:
    async with scripted(_nothing) as there, reaching(there.url, startup=0.3) as reached:
        fault = await reached.fault()
        assert (fault.slug, fault.verdict.value, fault.stage.value) == ("startup-timeout", "never_reached", "discover")
        assert not there.of("tools/call")


async def test_a_server_that_is_silent_in_the_handshake_was_not_sent_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "PROBE_SECONDS", 0.2)
    async with scripted(_nothing) as there, reaching(there.url) as reached:
        fault = await reached.fault()
        assert (fault.verdict.value, fault.stage.value, fault.retry) == ("never_reached", "discover", "safe")
        assert "may have taken effect" not in fault.message
        assert "not sent" in fault.message
        assert not there.of("tools/call")


async def test_after_closing_nothing_is_sent() -> None:
    async with scripted(modern(answers)) as there, reaching(there.url) as reached:
        await reached.call()
        await reached.server.close()
        fault = await reached.fault()
        assert (fault.slug, fault.verdict.value) == ("draining", "never_reached")
        assert len(there.of("tools/call")) == 1


async def test_closing_ends_open_calls_with_what_is_known() -> None:
    for make, caller in ((modern, ANN), (legacy, LEGACY_ANN)):
        async with scripted(make(_nothing)) as there, reaching(there.url) as reached:
            task = asyncio.ensure_future(reached.fault(caller, 30.0))
            await there.until(lambda there=there: there.of("tools/call"))
            await reached.server.close()
            async with asyncio.timeout(SECONDS):
                fault = await task
            assert (fault.slug, fault.verdict.value) == ("connection-lost", "outcome_unknown")


async def test_a_child_that_dies_in_a_call() -> None:
    async with reaching(fixture("--era", "modern"), startup=20.0) as reached:
        params = {"name": messages.raw("crash"), "arguments": messages.raw({"code": 5})}
        with pytest.raises(Fault) as caught:
            await reached.server.request(Outgoing("tools/call", params, ANN, 10.0))
        fault = caught.value
        assert (fault.slug, fault.verdict.value) == ("connection-lost", "outcome_unknown")
        assert "5" in fault.message
        # A moment later it is started again; callers wait that moment or are told how long it is.
        waits: list[Fault] = []
        async with asyncio.timeout(SECONDS):
            while not await _started_again(reached, waits):  # noqa: ASYNC110
                await asyncio.sleep((waits[-1].wait_seconds or 0) + 0.05)
        assert {(each.slug, each.verdict.value) for each in waits} <= {("server-exited", "wait")}
        assert all(each.wait_seconds is not None and 0 < each.wait_seconds < 2 for each in waits)


async def _started_again(reached: Reached, waits: list[Fault]) -> bool:
    try:
        return bool((await _pids(reached, [ANN]))[0])
    except Fault as fault:
        waits.append(fault)
        return False


async def test_a_child_that_dies_at_once() -> None:
    async with reaching(fixture("--era", "modern", "--die", "3"), startup=20.0) as reached:
        fault = await reached.fault()
        assert fault.verdict.value == "never_reached"
        assert "exit code 3" in fault.message


@pytest.mark.parametrize(
    ("command", "slug"),
    [(("/no/such/program",), "command-not-found"), (("no-such-program-anywhere",), "command-not-found")],
)
async def test_a_command_that_is_not_there(command: tuple[str, ...], slug: str) -> None:
    async with reaching(StdioTransport(command, Path("/"))) as reached:
        fault = await reached.fault()
        assert (fault.slug, fault.verdict.value) == (slug, "never_reached")
        assert command[0] in fault.message
