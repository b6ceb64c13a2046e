"""One session: how long a call may last while its server asks, and how much a server may ask."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

from interlock.model.fault import Fault
from interlock.upstream import session as session_module
from interlock.upstream.contract import Outgoing, Progress, Reply
from interlock.upstream.session import HOLD_SECONDS, MAX_QUESTIONS, Call, Session
from interlock.wire import messages
from interlock.wire.eras import Era
from interlock.wire.messages import Raw, RawMap

from .reaching import LEGACY_ANN, Heard


@dataclass
class Wire:
    """A carrier that keeps what was said."""

    said: list[dict[str, object]] = field(default_factory=list)

    def send(self, call: Call, message: bytes, name: str | None, params: list[tuple[str, str]]) -> None:
        self.said.append(json.loads(message))

    def tell(self, message: bytes) -> None:
        self.said.append(json.loads(message))

    def cancel(self, call: Call) -> None:
        return

    def sent(self, call: Call) -> bool:
        return True

    async def close(self) -> None:
        return


class Thinking:
    """A client that takes its time over every question."""

    parked = False

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.questions = 0

    def on_notification(self, method: str, params: RawMap) -> None:
        return

    def on_interrupted(self) -> None:
        return

    async def on_question(self, method: str, params: Raw | None, progress: Progress) -> Reply:
        self.questions += 1
        await self.go_on.wait()
        return Reply(b"{}", False, Era.LEGACY)


def opened(sink: Thinking) -> tuple[Session, Wire, Call]:
    session, wire = Session("srv", "ann#1", LEGACY_ANN, Heard(), b"{}"), Wire()  # type: ignore[arg-type]
    session.carrier = wire
    session.era = Era.LEGACY
    params = {"name": messages.raw("tool")}
    call = session.start(Outgoing("tools/call", params, LEGACY_ANN, 10.0, sink=sink), lambda outcome: None)
    return session, wire, call


def asks(session: Session, id: object) -> None:
    message = {"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": {"message": "?"}}
    assert session.received(json.dumps(message).encode())


async def test_more_questions_than_a_neighbour_could_bear_are_refused() -> None:
    sink = Thinking()
    session, wire, _ = opened(sink)
    for number in range(MAX_QUESTIONS + 5):
        asks(session, number)
    asks(session, 0)  # an id that is still open: two answers to one question would be one too many
    await asyncio.sleep(0)
    assert sink.questions == MAX_QUESTIONS
    refused = [each for each in wire.said if "error" in each]
    assert [each["id"] for each in refused] == [*range(MAX_QUESTIONS, MAX_QUESTIONS + 5), 0]
    sink.go_on.set()
    while session._asking:  # noqa: ASYNC110
        await asyncio.sleep(0)
    assert sum("result" in each for each in wire.said) == MAX_QUESTIONS
    asks(session, 0)  # there is room again
    assert len(session._asking) == 1
    await session.close()


async def test_the_clock_of_a_call_stands_still_until_its_last_question_is_answered() -> None:
    session, _, call = opened(Thinking())
    start = call.expires - 10.0
    call.hold(start + 1)
    call.hold(start + 2)
    assert call.expires == start + 1 + 9 + HOLD_SECONDS
    call.go_on(start + 50)
    assert call.expires == start + 1 + 9 + HOLD_SECONDS  # the other one is still open
    call.go_on(start + 101)
    assert call.expires == start + 101 + 9  # what was left when the first came
    await session.close()


async def test_questions_without_end_do_not_keep_a_call_open_without_end() -> None:
    session, _, call = opened(Thinking())
    now = start = call.expires - 10.0
    for _ in range(100):
        call.hold(now)
        now += 60
        if now >= call.expires:
            break
        call.go_on(now)
    assert call.expires == start + HOLD_SECONDS + 10
    await session.close()


async def test_a_call_whose_question_nobody_answers_ends() -> None:
    sink = Thinking()
    session, wire = Session("srv", "ann#1", LEGACY_ANN, Heard(), b"{}"), Wire()  # type: ignore[arg-type]
    session.carrier = wire
    outcomes: list[object] = []
    call = session.start(Outgoing("tools/call", {}, LEGACY_ANN, 0.05, sink=sink), outcomes.append)
    call._patience = 0.05
    asks(session, 1)
    async with asyncio.timeout(5):
        while not outcomes:  # noqa: ASYNC110
            await asyncio.sleep(session_module.SWEEP_SECONDS / 4)
    assert getattr(outcomes[0], "slug", None) == "timeout"
    await session.close()


async def test_an_answer_that_breaks_the_protocol_ends_its_call() -> None:
    outcomes: list[object] = []
    session, wire = Session("srv", "ann#1", LEGACY_ANN, Heard(), b"{}"), Wire()  # type: ignore[arg-type]
    session.carrier = wire
    call = session.start(Outgoing("tools/call", {"name": messages.raw("tool")}, LEGACY_ANN, 10.0), outcomes.append)
    both = json.dumps({"jsonrpc": "2.0", "id": call.id, "result": {}, "error": {"code": 1, "message": "x"}})
    assert session.received(both.encode())
    (fault,) = outcomes
    assert isinstance(fault, Fault)
    assert (fault.slug, fault.verdict.value) == ("bad-answer", "outcome_unknown")
    assert not session.pending
