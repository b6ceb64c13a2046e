"""The driver's own eyes: what it records of a bridge that answers, answers late, never, or ends."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from .fake_bridge import AUTHORIZE
from .person import Person, Visit
from .session import Published, Session

SCRIPT = Path(__file__).with_name("fake_bridge.py")


@asynccontextmanager
async def fake(**settings: Any) -> AsyncIterator[Session]:
    session = await Session.start([sys.executable, str(SCRIPT), "url"], environment=dict(os.environ), **settings)
    try:
        assert (await session.open(seconds=10)).result is not None
        yield session
    finally:
        await session.close()


async def test_an_answer_and_its_time() -> None:
    async with fake() as session:
        reply = await session.call("echo", seconds=10)
    assert (reply.state, reply.failed, reply.text) == ("result", False, "x")
    assert reply.seconds is not None
    assert 0 < reply.seconds < 10
    assert session.exit_code == 0


async def test_a_late_answer_counts_as_none_and_is_still_written_down() -> None:
    async with fake() as session:
        reply = await session.call("late", seconds=0.05)
        assert (reply.state, reply.seconds) == ("unanswered", None)
        assert await session.wait_for(lambda: reply.state == "result", seconds=10)
        assert reply.text == "late"


async def test_silence_and_the_end_of_the_process() -> None:
    async with fake() as session:
        silent = await session.call("never", seconds=0.05)
        last = await session.call("end", seconds=10)
        after = await session.call("echo", seconds=10)
    assert (silent.state, last.state, after.state) == ("unanswered", "ended", "ended")
    assert session.exit_code == 3


async def test_an_error_its_verdict_and_the_url_on_both_surfaces() -> None:
    async with fake() as session:
        reply = await session.call("login", seconds=10)
        await session.wait_for(lambda: len(session.published) == 2, seconds=10)
    assert (reply.state, reply.failed, reply.verdict) == ("error", True, "wait")
    assert reply.urls == session.urls == [f"{AUTHORIZE}one"]
    assert {one.surface for one in session.published} == {"answer", "stderr"}


async def test_a_tool_result_that_is_an_error() -> None:
    async with fake() as session:
        reply = await session.call("failed", seconds=10)
    assert (reply.state, reply.failed, reply.verdict, reply.text) == ("result", True, "outcome_unknown", "no")


async def test_questions_are_answered_and_noise_is_kept() -> None:
    async with fake(answerer=lambda method, params: {"asked": method}) as session:
        asked = await session.call("ask", seconds=10)
        await session.call("noise", seconds=10)
    assert asked.text == '{"asked": "elicitation/create"}'
    assert session.noise == ["hello"]


async def test_the_person_clicks_each_url_once_and_not_before_time() -> None:
    opened: list[str] = []

    def visit(url: str) -> Visit:
        opened.append(url)
        return Visit("landed", 200)

    person = Person(after=0.05, most=2, visit=visit)
    for url in ("one", "one", "two", "three"):
        person.notice(Published(url, 1.0, "answer"))
    assert opened == []
    await asyncio.wait_for(person.settled(), 10)
    assert opened == ["one", "two"]
    for click in person.clicks:
        assert click.clicked is not None
        assert click.clicked >= 1.05
