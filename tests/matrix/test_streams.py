"""Rows: what a server says while a call is open: progress, log messages, notifications that nobody knows."""

from __future__ import annotations

import asyncio

import pytest

from .client import PREFIX, Message
from .world import Pair

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.mark.row("progress: each call's own, under the client's token, before the answer")
async def test_progress_reaches_its_own_call(pair: Pair) -> None:
    client, mark = pair.client, pair.client.mark()
    tokens: list[str | int] = ["token \u00e9", 7]
    answers = await asyncio.gather(
        *(
            client.request(
                "tools/call", pair.params("sleep", {"ms": 170, "label": str(token)}), meta={"progressToken": token}
            )
            for token in tokens
        ),
        client.request("tools/call", pair.params("sleep", {"ms": 120, "label": "silent"})),
    )
    assert [answer.text for answer in answers] == ["slept token \u00e9", "slept 7", "slept silent"]
    progress = client.since(mark, "notifications/progress")
    assert {params["progressToken"] for params in progress} == set(tokens), "a call without a token has no progress"
    for token, answer in zip(tokens, answers, strict=False):
        steps = [params for params in progress if params["progressToken"] == token]
        assert len(steps) >= 2
        assert [(params["progress"], params["message"]) for params in steps] == [
            (n, f"step {n}") for n in range(len(steps))
        ]
        last = max(
            i for i, m in enumerate(client.inbox) if i >= mark and m.get("params", {}).get("progressToken") == token
        )
        assert last < client.inbox.index({"id": answer.message["id"]}, mark), "no progress after the answer"


@pytest.mark.row("logging: at the level that the client set, data intact")
async def test_log_messages_reach_the_client_at_its_level(pair: Pair) -> None:
    client = pair.client
    data: Message = {"x": [1, 2.5], "nested": {"b": None}}
    meta: dict[str, Message] = {}
    if client.era == "modern":
        meta = {level: {f"{PREFIX}logLevel": level} for level in ("debug", "error")}

    async def log(level: str, threshold: str) -> None:
        if client.era == "legacy":
            assert (await client.request("logging/setLevel", {"level": threshold})).result == {}
        await pair.call("log", {"level": level, "data": data}, meta=meta.get(threshold))

    mark = client.mark()
    await log("info", "debug")
    said = await client.until("notifications/message", since=mark)
    assert said == {"level": "info", "logger": "fixture", "data": data}
    mark = client.mark()
    await log("warning", "error")
    await log("critical", "error")
    await client.until("notifications/message", lambda params: params["level"] == "critical", since=mark)
    assert [params["level"] for params in client.since(mark, "notifications/message")] == ["critical"]
    mark = client.mark()
    if client.era == "legacy":
        await log("debug", "debug")  # leaves the shared client as it was
        await client.until("notifications/message", since=mark)
    else:
        await pair.call("log", {"level": "critical"})
        await pair.call("log", {"level": "info"}, meta=meta["debug"])
        await client.until("notifications/message", since=mark)
        assert [params["level"] for params in client.since(mark, "notifications/message")] == ["info"], (
            "a request that asked for no log messages gets none"
        )


@pytest.mark.row("a notification that no specification knows")
async def test_an_unknown_notification_of_a_call_passes(pair: Pair) -> None:
    mark = pair.client.mark()
    await pair.call("vendor_notification", {})
    tick = await pair.client.until("notifications/vendor/tick", since=mark)
    assert tick["tick"] == 1
    assert len(pair.client.since(mark, "notifications/vendor/tick")) == 1
