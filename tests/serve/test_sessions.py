"""Legacy sessions over HTTP: whose they are, when they end, and their streams."""

from __future__ import annotations

import asyncio
import itertools
import json
from pathlib import Path

import pytest

from interlock.model.principal import Principal
from interlock.relay.client import Client
from interlock.serve import channels, endpoint, sessions, streams
from interlock.serve.sessions import Sessions
from interlock.wire import messages
from interlock.wire.eras import Era

from .desk import LEGACY, Desk, running
from .wire import SECONDS, Wire, eventually, request

ONE = Principal("host:one", "credential", "one")
OTHER = Principal("host:other", "credential", "other")


# -- the table of sessions ---------------------------------------------------------------------------------------------


@pytest.fixture
def ended() -> list[Client]:
    return []


@pytest.fixture
def table(ended: list[Client]) -> Sessions:
    return Sessions(ended.append)


def test_ids_cannot_be_guessed(table: Sessions) -> None:
    ids = {table.open(ONE, 0.0).id for _ in range(200)}
    assert len(ids) == 200
    assert all(len(id) >= 32 and id.isascii() and " " not in id for id in ids)  # 24 random bytes, visible ASCII
    assert not any(id in table.open(ONE, 0.0).client.id for id in ids)


def test_a_session_exists_for_its_own_principal_only(table: Sessions) -> None:
    session = table.open(ONE, 0.0)
    assert table.find(session.id, ONE, 1.0) is session
    assert table.find(session.id, OTHER, 1.0) is None
    assert table.find(session.id, Principal("host:one", "local", "one"), 1.0) is None
    assert table.find(session.id.upper(), ONE, 1.0) is None
    assert table.find(session.client.id, ONE, 1.0) is None
    table.close(session.id)
    assert table.find(session.id, ONE, 1.0) is None


def test_idle_sessions_end(table: Sessions, ended: list[Client]) -> None:
    used, unused = table.open(ONE, 0.0), table.open(ONE, 0.0)
    table.find(used.id, ONE, sessions.IDLE_SECONDS)
    table.find(unused.id, OTHER, sessions.IDLE_SECONDS)  # somebody else's attempt keeps nothing alive
    table.close_idle(sessions.IDLE_SECONDS + 1)
    assert ended == [unused.client]
    assert table.find(used.id, ONE, 0.0) is used


def test_a_principal_has_a_limited_number_of_sessions(
    table: Sessions, ended: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MAX_SESSIONS_PER_PRINCIPAL", 3)
    first, second, third = [table.open(ONE, float(number)) for number in range(3)]
    others = table.open(OTHER, 0.0)
    table.find(first.id, ONE, 10.0)
    table.open(ONE, 11.0)
    assert ended == [second.client]  # the least used of its own
    assert table.find(others.id, OTHER, 12.0) is others
    assert table.find(third.id, ONE, 12.0) is third


# -- over HTTP -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "status"),
    [("POST", 404), ("GET", 404), ("DELETE", 404)],
)
@pytest.mark.parametrize("whose", ["another principal's", "an ended one", "made up", "empty"])
async def test_a_session_of_somebody_else_is_not_there(desk: Desk, method: str, status: int, whose: str) -> None:
    token = desk.credentials.token("second")
    session = await desk.open_session()
    if whose == "an ended one":
        assert (await desk.send(request("DELETE", "/mcp", b"", desk.head(), mcp_session_id=session))).status == 200
        token = desk.token
    elif whose == "made up":
        session, token = "x" * 32, desk.token
    elif whose == "empty":
        session, token = " ", desk.token
    headers = {"accept": "text/event-stream", "mcp-session-id": session, **desk.head(token)}
    if method == "POST":
        answer = await desk.send(desk.legacy_request("ping", session=session, token=token))
    else:
        answer = await desk.send(request(method, "/mcp", b"", headers))
    assert answer.status == status
    assert answer.json["error"]["code"] == -32600  # type: ignore[index]


async def test_what_a_stranger_sends_into_a_session_is_not_heard(desk: Desk) -> None:
    """A cancellation and an answer with the right ids, by another principal."""
    token = desk.credentials.token("second")
    session = await desk.open_session()
    async with desk.wire() as client:
        client.send(desk.legacy_request("tools/call", {"name": "lab__hold"}, id=7, session=session))
        await desk.tools.started.wait()
        cancel = {"requestId": 7}
        for message in (
            desk.legacy_request("notifications/cancelled", cancel, id=None, session=session, token=token),
            desk.legacy_request("notifications/cancelled", cancel, id=None, token=token),
        ):
            await desk.send(message)
        other = await desk.open_session(token)
        await desk.send(desk.legacy_request("notifications/cancelled", cancel, id=None, session=other, token=token))
        assert not desk.tools.cancelled.is_set()
        desk.tools.go_on.set()
        assert (await client.answer()).json["result"]["content"][0]["text"] == "let go"  # type: ignore[index]


async def test_deleting_a_session_ends_what_it_had_open(desk: Desk) -> None:
    session = await desk.open_session()
    async with desk.wire() as call, desk.wire() as stream:
        stream.send(_listen(desk, session))
        await stream.head()
        call.send(desk.legacy_request("tools/call", {"name": "lab__hold"}, session=session))
        await desk.tools.started.wait()
        assert (await desk.send(request("DELETE", "/mcp", b"", desk.head(), mcp_session_id=session))).status == 200
        answer = await call.answer()  # no answer to a call that was given up, but an end of the exchange
        assert (answer.status, answer.body) == (202, b"")
        async with asyncio.timeout(SECONDS):
            await desk.tools.cancelled.wait()
        with pytest.raises(EOFError):
            await stream.event()
    assert (await desk.legacy(session, "ping")).status == 404
    assert len(desk.endpoint.sessions) == 0


async def test_a_cancelled_call_leaves_nothing_waiting(desk: Desk) -> None:
    session = await desk.open_session()
    async with desk.wire() as client:
        client.send(desk.legacy_request("tools/call", {"name": "lab__hold"}, id="a", session=session))
        await desk.tools.started.wait()
        told = desk.legacy_request("notifications/cancelled", {"requestId": "a"}, id=None, session=session)
        assert (await desk.send(told)).status == 202
        answer = await client.answer()
        assert (answer.status, answer.body) == (202, b"")
        # The connection and the id may be used again.
        client.send(desk.legacy_request("tools/call", {"name": "lab__echo"}, id="a", session=session))
        assert (await client.answer()).json["id"] == "a"
    async with asyncio.timeout(SECONDS):
        await desk.tools.cancelled.wait()


async def test_an_id_that_is_still_open_is_refused(desk: Desk) -> None:
    session = await desk.open_session()
    async with desk.wire() as client:
        client.send(desk.legacy_request("tools/call", {"name": "lab__hold"}, id=5, session=session))
        await desk.tools.started.wait()
        answer = await desk.legacy(session, "ping", id=5)
        assert answer.json["error"]["message"] == "a request with this id is still open"  # type: ignore[index]
        assert "result" in (await desk.legacy(session, "ping", id="5")).json  # text is another id
        desk.tools.go_on.set()
        assert "result" in (await client.answer()).json


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),  # there is no handshake in that revision
        ("nonsense", "2025-11-25"),
    ],
)
async def test_initialize(desk: Desk, asked: str, given: str) -> None:
    answer = await desk.send(desk.legacy_request("initialize", {"protocolVersion": asked, "capabilities": {}}))
    result = answer.json["result"]
    assert isinstance(result, dict)
    assert result["protocolVersion"] == given
    assert result["serverInfo"]["name"] == "interlock"
    assert set(result["capabilities"]) >= {"tools", "prompts", "resources", "completions", "logging"}
    assert answer.headers["mcp-session-id"]


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 7}, {"protocolVersion": None}])
async def test_a_refused_initialize_opens_no_session(desk: Desk, params: dict[str, object]) -> None:
    answer = await desk.send(desk.legacy_request("initialize", params))
    assert answer.json["error"]["code"] == -32602  # type: ignore[index]
    await eventually(lambda: len(desk.endpoint.sessions) == 0)


@pytest.mark.parametrize(
    ("version", "status"),
    [("", 200), ("2025-11-25", 200), ("2025-03-26", 200), ("1999-01-01", 400), ("x" * 500, 400)],
)
async def test_the_version_header_of_a_session(desk: Desk, version: str, status: int) -> None:
    session = await desk.open_session()
    answer = await desk.legacy(session, "ping", mcp_protocol_version=version)
    assert answer.status == status


@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18", "2025-03-26"])
async def test_batches_belong_to_one_revision(desk: Desk, version: str) -> None:
    session = await desk.open_session(version=version)
    body = (
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},'
        b'{"jsonrpc":"2.0","id":2,"method":"nonsense/x"},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"no"}}]'
    )
    answer = await desk.send(request("POST", "/mcp", body, desk.head(), mcp_session_id=session))
    if version != "2025-03-26":
        assert (answer.status, answer.json["error"]["code"]) == (400, -32600)  # type: ignore[index]
        return
    answers = {each["id"]: each for each in json.loads(answer.body)}
    assert set(answers) == {1, 2, 3}
    assert answers[1]["result"] == {}
    assert answers[3]["error"]["code"] == -32602
    only_notes = b'[{"jsonrpc":"2.0","method":"notifications/initialized"}]'
    answer = await desk.send(request("POST", "/mcp", only_notes, desk.head(), mcp_session_id=session))
    assert (answer.status, answer.body) == (202, b"")


# -- streams -------------------------------------------------------------------------------------------------------------


def _listen(desk: Desk, session: str, **more: str) -> bytes:
    headers = {"accept": "text/event-stream", "mcp-session-id": session, "mcp-protocol-version": LEGACY}
    return request("GET", "/mcp", b"", headers | desk.head(), **more)


async def _raw_events(client: Wire, count: int) -> list[tuple[str, bytes]]:
    """Id and data of the next events, priming ones included."""
    found: list[tuple[str, bytes]] = []
    while len(found) < count:
        chunk = await client.chunk()
        if not chunk:
            break
        for block in chunk.split(b"\n\n"):
            lines = dict(line.split(b": ", 1) for line in block.split(b"\n") if b": " in line and line[:1] != b":")
            if lines:
                found.append((lines.get(b"id", b"").decode(), lines.get(b"data", b"")))
    return found


async def test_a_call_that_says_nothing_meanwhile_is_plain_json(desk: Desk) -> None:
    session = await desk.open_session()
    answer = await desk.legacy(session, "tools/call", {"name": "lab__echo", "arguments": {"a": 1}})
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["mcp-session-id"] == session


async def test_a_stream_begins_with_the_first_thing_to_say(desk: Desk) -> None:
    session = await desk.open_session()
    params = {"name": "lab__steps", "_meta": {"progressToken": "t"}}
    async with desk.wire() as client:
        client.send(desk.legacy_request("tools/call", params, id=9, session=session))
        head = await client.head()
        assert head.headers["content-type"] == "text/event-stream"
        progress = await client.event()
        assert progress["params"] == {"progressToken": "t", "progress": 1, "total": 2, "message": "first"}
        desk.tools.go_on.set()
        assert (await client.event())["params"]["progress"] == 2  # type: ignore[index]
        assert (await client.event())["id"] == 9
        assert await client.chunk() == b""  # the answer ends the stream


@pytest.mark.parametrize("accept", ["application/json", ""])
async def test_a_client_without_streams_gets_json(desk: Desk, accept: str) -> None:
    session = await desk.open_session()
    desk.tools.go_on.set()
    params = {"name": "lab__steps", "_meta": {"progressToken": 1}}
    answer = await desk.legacy(session, "tools/call", params, accept=accept)
    if accept:
        assert answer.headers["content-type"] == "application/json"
        assert answer.json["result"]["content"][0]["text"] == "stepped"  # type: ignore[index]
    else:
        assert answer.headers["content-type"] == "text/event-stream"  # nothing said is anything taken


async def test_a_broken_stream_is_picked_up_where_it_broke(desk: Desk) -> None:
    session = await desk.open_session()
    params = {"name": "lab__steps", "_meta": {"progressToken": "t"}}
    async with desk.wire() as client:
        client.send(desk.legacy_request("tools/call", params, id=9, session=session))
        await client.head()
        events = await _raw_events(client, 2)
        client.writer.transport.abort()
    assert [data[:1] for _, data in events] == [b"", b"{"]  # the priming event, the first progress
    last = events[-1][0]
    desk.tools.go_on.set()
    async with desk.wire() as client:
        client.send(_listen(desk, session, last_event_id=last))
        await client.head()
        assert (await client.event())["params"]["progress"] == 2  # type: ignore[index]
        assert (await client.event())["result"]["content"][0]["text"] == "stepped"  # type: ignore[index]
        assert await client.chunk() == b""
    assert not desk.tools.cancelled.is_set()  # a break is no cancellation (2025-11-25, transports)
    # Once more from the same place: what was sent is still there.
    async with desk.wire() as client:
        client.send(_listen(desk, session, last_event_id=last))
        await client.head()
        assert len(await _raw_events(client, 2)) == 2


@pytest.mark.parametrize("last", ["", "zzz.1", "1.99999999999999", "1.-1", "1.x", ".", "1", "1.\xb2"])
async def test_an_event_id_that_means_nothing_opens_a_plain_stream(desk: Desk, last: str) -> None:
    session = await desk.open_session()
    async with desk.wire() as client:
        client.send(_listen(desk, session, last_event_id=last))
        assert (await client.head()).status == 200
        assert [data for _, data in await _raw_events(client, 1)] == [b""]


async def test_event_ids_of_another_session_open_nothing_of_it(desk: Desk) -> None:
    """Names of streams are short and alike in all sessions; they are looked up in the caller's own session only."""
    mine, others = await desk.open_session(), await desk.open_session()
    params = {"name": "lab__steps", "_meta": {"progressToken": "t"}}
    async with desk.wire() as client, desk.wire() as thief:
        client.send(desk.legacy_request("tools/call", params, session=mine))
        await client.head()
        events = await _raw_events(client, 2)
        thief.send(_listen(desk, others, last_event_id=events[0][0]))
        await thief.head()
        assert [data for _, data in await _raw_events(thief, 1)] == [b""]


async def test_what_belongs_to_no_request_waits_for_the_get_stream(desk: Desk) -> None:
    session = await desk.open_session()
    await desk.legacy(session, "tools/list")
    client_of = next(iter(desk.endpoint.sessions._sessions.values())).client
    client_of.list_changed("tools")
    async with desk.wire() as first:
        first.send(_listen(desk, session))
        await first.head()
        assert (await first.event())["method"] == "notifications/tools/list_changed"
        client_of.list_changed("prompts")
        assert (await first.event())["method"] == "notifications/prompts/list_changed"
        # A second stream takes over; the first ends.
        async with desk.wire() as second:
            second.send(_listen(desk, session))
            await second.head()
            with pytest.raises(EOFError):
                await first.event()
            client_of.list_changed("resources")
            assert (await second.event())["method"] == "notifications/resources/list_changed"


async def test_streams_are_kept_alive(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "KEEP_ALIVE_SECONDS", 0.05)
    monkeypatch.setattr(endpoint, "KEEP_ALIVE_SECONDS", 0.05)
    session = await desk.open_session()
    params = {"name": "lab__steps", "_meta": {"progressToken": "t"}}
    async with desk.wire() as get, desk.wire() as legacy, desk.wire() as modern:
        get.send(_listen(desk, session))
        legacy.send(desk.legacy_request("tools/call", params, session=session))
        modern.send(desk.modern_request("tools/call", params))
        for client in (get, legacy, modern):
            await client.head()
            async with asyncio.timeout(SECONDS):
                while await client.chunk() != b": keep-alive\n\n":
                    pass


async def test_a_stream_keeps_only_so_much(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_STREAM_BYTES", 1000)
    session = await desk.open_session()
    client_of = next(iter(desk.endpoint.sessions._sessions.values())).client
    for number in range(100):
        client_of.tell("notifications/x", {"n": messages.raw(number)})
    async with desk.wire() as client:
        client.send(_listen(desk, session))
        await client.head()
        seen = [(await client.event())["params"]["n"] for _ in range(5)]  # type: ignore[index]
    assert seen == sorted(seen)
    assert seen[0] > 80


class _Slow:
    """A response whose client does not read."""

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.ended = False
        self.backlog = 0
        self.gone = False

    def write(self, data: bytes) -> None:
        self.events.append(data)

    def end_stream(self) -> None:
        self.ended = True


def test_no_event_is_left_out_for_a_slow_client() -> None:
    """It is interrupted instead, so that it comes back and gets everything in order."""
    stream = streams.Streams().new()
    slow = _Slow()
    stream.attach(slow, None)  # type: ignore[arg-type]
    stream.send(b'{"n":1}')
    slow.backlog = streams.MAX_WRITE_BUFFER
    stream.send(b'{"n":2}')
    assert slow.ended
    stream.send(b'{"n":3}')
    stream.end()
    assert len(slow.events) == 2
    back = _Slow()
    stream.attach(back, 2)  # type: ignore[arg-type]
    assert [event.partition(b"data: ")[2].strip() for event in back.events] == [b'{"n":2}', b'{"n":3}']
    assert back.ended


def test_ended_streams_are_forgotten_before_their_session_grows_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "MAX_SESSION_BYTES", 10_000)
    monkeypatch.setattr(streams, "MAX_STREAMS", 50)
    kept = streams.Streams()
    still_open = kept.new()
    still_open.send(b"x" * 3000)
    names = []
    for _ in range(20):
        stream = kept.new()
        stream.send(b"y" * 1000)
        stream.end()
        names.append(stream.name)
    found = [name for name in names if kept.find(f"{name}.0") is not None]
    assert found == names[-len(found) :]  # the newest
    assert 4 <= len(found) <= 7
    assert kept.find(f"{still_open.name}.0") == (still_open, 0)
    for _ in range(100):
        kept.new().end()
    assert len(kept._streams) <= 51


async def test_a_revoked_credential_ends_what_it_opened(tmp_path: Path) -> None:
    async with running(tmp_path) as desk:
        session = await desk.open_session()
        other = desk.credentials.token("second")
        kept = await desk.open_session(other)
        async with desk.wire() as get, desk.wire() as call, desk.wire() as listen:
            get.send(_listen(desk, session))
            await get.head()
            call.send(desk.legacy_request("tools/call", {"name": "lab__hold"}, session=session))
            listen.send(desk.modern_request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
            await listen.head()
            await listen.event()
            await desk.tools.started.wait()
            # As `interlock credential first --revoke` does it, in another process.
            type(desk.credentials)(tmp_path).revoke("first")
            desk.credentials.refresh()
            desk.endpoint.end_revoked(desk.credentials.valid)
            for client in (get, listen):
                with pytest.raises(EOFError):
                    await client.event()
            assert (await call.answer()).status == 202
        assert (await desk.legacy(session, "ping")).status == 401
        assert (await desk.legacy(kept, "ping", token=other)).status == 200


async def test_two_sessions_of_one_principal_are_two_clients(tmp_path: Path) -> None:
    """A server with sessions of its own gets one for each of ours; neither hears what the other is told."""
    async with running(tmp_path, era="legacy") as desk:
        sessions_ = [await desk.open_session(capabilities={"elicitation": {}}) for _ in range(2)]
        ids = []
        for session in sessions_:
            async with desk.wire() as client:
                client.send(desk.legacy_request("tools/call", {"name": "lab__asks"}, id=1, session=session))
                await client.head()
                question = await client.event()
                assert question["method"] == "elicitation/create"
                ids.append(question["id"])
                # The other session's answer to the same id is not taken.
                wrong = next(each for each in sessions_ if each != session)
                accept = {"action": "accept", "content": {"value": "wrong"}}
                assert (await desk.send(_answer(desk, wrong, question["id"], accept))).status == 202
                right = {"action": "accept", "content": {"value": session[:5]}}
                assert (await desk.send(_answer(desk, session, question["id"], right))).status == 202
                result = (await client.event())["result"]
                assert session[:5] in result["content"][0]["text"]  # type: ignore[index]
        bindings = [binding.partition("#")[0] for binding in desk.runtime.servers["lab"].sessions]
        assert len(set(bindings)) == 2
        assert all(left != right for left, right in itertools.pairwise(bindings))


def _answer(desk: Desk, session: str, id: object, result: dict[str, object]) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()
    return request("POST", "/mcp", body, desk.head(), mcp_session_id=session)


def test_a_client_of_a_session_is_legacy(table: Sessions) -> None:
    client = table.open(ONE, 0.0).client
    assert (client.era, client.principal) == (Era.LEGACY, ONE)
