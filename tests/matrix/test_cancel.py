"""Row: a cancelled call is cancelled at its server, and nothing else is."""

from __future__ import annotations

import asyncio

import pytest

from .cells import CELLS, Cell
from .client import SECONDS, Message, NoAnswer
from .world import Pair, World

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def log_of(pair: Pair, label: str) -> Message:
    """What the server knows of cancellations, once it knows of `label`."""
    async with asyncio.timeout(SECONDS):
        while True:
            seen = (await pair.call("cancel_log")).structured
            if label in seen["cancelledLabels"]:
                return seen


@pytest.mark.row("cancellation reaches the right upstream request, and only it")
async def test_a_cancelled_call(pair: Pair) -> None:
    client, mark = pair.client, pair.client.mark()
    run = f"{pair.cell}-{mark}"
    before = (await pair.call("cancel_log")).structured

    def sleep(name: str, ms: int) -> Message:
        return pair.params("sleep", {"ms": ms, "label": f"{run}-{name}"})

    first = client.start("tools/call", sleep("first", 300))
    victim = client.start("tools/call", sleep("victim", 60_000), meta={"progressToken": f"{run}-victim"})
    last = client.start("tools/call", sleep("last", 300))
    await client.until("notifications/progress", lambda params: params["progressToken"] == f"{run}-victim", since=mark)
    await victim.cancel()
    seen = await log_of(pair, f"{run}-victim")
    assert (await first.answer()).text == f"slept {run}-first"
    assert (await last.answer()).text == f"slept {run}-last"
    seen = (await pair.call("cancel_log")).structured
    assert seen["cancelledLabels"][len(before["cancelledLabels"]) :] == [f"{run}-victim"]
    assert len(seen["cancelledIds"]) == len(before["cancelledIds"]) + 1
    assert seen["strayIds"] == before["strayIds"], "the server was told of no other request"
    assert victim.id not in [message.get("id") for message in client.inbox[mark:]], "a cancelled request has no answer"
    if client.era == "legacy" and pair.cell.down == "http":
        with pytest.raises(NoAnswer):  # its response ends all the same, so that no connection hangs
            await victim.answer()


@pytest.mark.parametrize("cell", [c for c in CELLS if c.client == "legacy" and c.down == "http"], ids=str)
@pytest.mark.row("a client that leaves: its open calls are cancelled at their servers")
async def test_a_client_that_leaves(cell: Cell, world: World) -> None:
    if cell.server.key == "lstdio":
        pytest.skip("its process of the server ends with it (see the isolation rows)")
    staying = Pair(cell, await world.client("legacy", "http"), world, cell.server.key)
    leaving = Pair(cell, await world.new_client("legacy", "http"), world, cell.server.key)
    client, mark = leaving.client, leaving.client.mark()
    label = f"{cell} leaves {client.hello['serverInfo']['name']}"
    client.start("tools/call", leaving.params("sleep", {"ms": 60_000, "label": label}), meta={"progressToken": label})
    await client.until("notifications/progress", lambda params: params["progressToken"] == label, since=mark)
    await client.close()
    await log_of(staying, label)


@pytest.mark.row("a cancellation of what is finished or unknown is ignored")
async def test_a_late_cancellation(pair: Pair) -> None:
    client = pair.client
    before = (await pair.call("cancel_log")).structured
    done = client.start("tools/call", pair.params("echo", {"value": "x"}))
    await done.answer()
    if client.era == "legacy" or pair.cell.down == "stdio":
        for identity in (done.id, "never-sent", 0, None):
            await client.notify("notifications/cancelled", {"requestId": identity})
    else:
        await done.cancel()
    after = (await pair.call("cancel_log")).structured
    assert after["cancelledIds"] == before["cancelledIds"]
    assert after["strayIds"] == before["strayIds"]
    assert (await pair.call("echo", {"value": "y"})).text == "y"
