"""Ways in which a fixture misbehaves on purpose, all the time rather than in one call."""

from __future__ import annotations

import asyncio
import itertools

from interlock.lab.jsonrpc import JsonObject, encode, notification
from interlock.lab.registry import Content
from interlock.lab.stdio import StdioPipe

FLOOD_BACKLOG = 10_000
"""Lines that may wait for a client that does not read; beyond this the flood pauses."""
TICK_SECONDS = 0.01


async def flood(content: Content, pipe: StdioPipe | None, per_second: int) -> None:
    """Send what nobody asked for, `per_second` messages of it, until cancelled.

    On stdio: junk lines, log messages, list changes, answers to requests that were never made and progress of unknown
    tokens in turn. Over HTTP: log messages and list changes to whoever listens.
    """
    batch = max(1, round(per_second * TICK_SECONDS))
    for tick in itertools.count():
        for number in range(tick * batch, (tick + 1) * batch):
            if pipe is None:
                _broadcast(content, number)
            elif pipe.backlog() < FLOOD_BACKLOG:
                pipe.write(_junk(number))
        await asyncio.sleep(TICK_SECONDS)


def _broadcast(content: Content, number: int) -> None:
    if number % 2:
        content.list_changed("tools")
    else:
        content.broadcast("notifications/message", {"level": "info", "data": f"flood {number}"})


def _junk(number: int) -> bytes:
    messages: list[JsonObject | bytes] = [
        b"this is no JSON " + b"x" * 200,
        notification("notifications/message", {"level": "info", "logger": "flood", "data": f"flood {number}"}),
        notification("notifications/tools/list_changed"),
        {"jsonrpc": "2.0", "id": f"never-asked-{number}", "result": {}},
        notification("notifications/progress", {"progressToken": f"unknown-{number}", "progress": number}),
    ]
    message = messages[number % len(messages)]
    return message if isinstance(message, bytes) else encode(message)
