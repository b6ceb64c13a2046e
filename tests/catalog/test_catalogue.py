"""The catalogue beside servers that fail, hang and never stop changing: nothing that was known is lost, nobody waits long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from interlock.catalog import catalogue as catalogue_module
from interlock.catalog.catalogue import COALESCE, Catalogue
from interlock.catalog.snapshot import Kind
from interlock.manifest.config import Origin, Policy, ServerConfig, StdioTransport
from interlock.upstream.contract import Caller, Outgoing, Reply
from interlock.upstream.server import Server
from interlock.wire import messages
from interlock.wire.eras import Era
from interlock.wire.messages import Raw

ANN = Caller("ann", "ann", Raw(b"{}"))
SECONDS = 5.0
Answer = Callable[[str], Awaitable[Reply]]


def tools(*names: str) -> Reply:
    listed = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return Reply(messages.encode({"tools": listed}), False, Era.LEGACY)


BROKEN = Reply(messages.error_body(-32603, "a bad moment"), True, Era.LEGACY)


@dataclass
class FakeServer:
    """Answers every `tools/list` with the next of `script`; the last one for ever."""

    script: list[Reply]
    key: str = "srv"
    asked: int = 0
    hang: bool = False
    sessions: dict[str, object] = field(default_factory=dict)
    config: ServerConfig = field(
        default_factory=lambda: ServerConfig(
            "srv", "test.srv", "user", Origin(Path("/m.yaml"), 1), StdioTransport(("x",), Path("/")), Policy()
        )
    )

    def binding_for(self, caller: Caller) -> str:
        return f"{caller.client}#1"

    async def session(self, caller: Caller) -> object:
        if self.hang:
            await asyncio.Event().wait()
        capabilities = {"tools": Raw(b'{"listChanged":true}')}
        return SimpleNamespace(
            era=Era.LEGACY,
            capabilities=capabilities,
            instructions=None,
            server_info=None,
            binding=self.binding_for(caller),
        )

    async def request(self, out: Outgoing) -> Reply:
        self.asked += 1
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


@dataclass
class Told:
    kinds: list[frozenset[Kind]] = field(default_factory=list)
    kept: list[bytes] = field(default_factory=list)
    event: asyncio.Event = field(default_factory=asyncio.Event)

    def changed(self, server: str, binding: str, told: frozenset[Kind], found: frozenset[Kind]) -> None:
        self.kinds.append(told | found)
        self.event.set()


def made(server: FakeServer, told: Told) -> Catalogue:
    return Catalogue(
        {"srv": cast(Server, server)},
        remember=lambda key, principal, payload: told.kept.append(payload),
        recall_bytes=lambda key, principal: None,
        changed=told.changed,
    )


def names(catalogue: Catalogue, server: FakeServer) -> list[str]:
    snapshot = catalogue.snapshot(cast(Server, server), ANN)
    return list(snapshot.tools) if snapshot is not None else []


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def test_a_list_that_fails_hides_nothing_that_was_known() -> None:
    server, told = FakeServer([tools("one"), BROKEN]), Told()
    catalogue = made(server, told)
    await catalogue.settle(ANN)
    catalogue.invalidate("srv", "ann#1", "tools")
    await until(lambda: server.asked == 2 and not catalogue._tasks)
    assert names(catalogue, server) == ["one"]
    assert len(told.kept) == 1  # and the failure is not remembered for the next start
    catalogue.close()


async def test_a_list_that_failed_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "MAX_RETRY", 0.01)
    server, told = FakeServer([BROKEN, BROKEN, tools("late")]), Told()
    catalogue = made(server, told)
    await catalogue.settle(ANN)
    assert names(catalogue, server) == []
    await until(lambda: names(catalogue, server) == ["late"])
    assert told.kinds == [frozenset({"tools"})]  # clients hear of it
    assert server.asked == 3
    catalogue.close()


async def test_a_list_that_always_fails_is_not_asked_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "MAX_RETRY", 0.001)
    server, told = FakeServer([BROKEN]), Told()
    catalogue = made(server, told)
    await catalogue.settle(ANN)
    await until(lambda: server.asked == 1 + catalogue_module.MAX_RELISTS and not catalogue._tasks)
    assert not catalogue._retries
    catalogue.close()


async def test_what_a_server_really_dropped_is_gone() -> None:
    server, told = FakeServer([tools("one", "two"), tools("two")]), Told()
    catalogue = made(server, told)
    await catalogue.settle(ANN)
    catalogue.invalidate("srv", "ann#1", "tools")
    await until(lambda: names(catalogue, server) == ["two"])
    catalogue.close()


async def test_a_list_waits_once_however_many_rounds_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "COLD_WAIT", 0.2)
    server, told = FakeServer([tools("one")], hang=True), Told()
    catalogue = made(server, told)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    # A binding that differs each time it is asked for: every round finds something new to wait for.
    count = iter(range(100))
    server.binding_for = lambda caller: f"ann#{next(count)}"  # type: ignore[method-assign]
    waits: list[float] = []
    within = catalogue_module._within

    async def counted(task: asyncio.Task[None], seconds: float) -> None:
        waits.append(max(seconds, 0.0))
        await within(task, seconds)

    monkeypatch.setattr(catalogue_module, "_within", counted)
    await catalogue.settle(ANN)
    assert sum(waits) <= 0.2 + 0.05
    assert loop.time() > begun
    catalogue.close()


async def test_a_server_that_never_stops_changing_is_listed_more_and_more_rarely() -> None:
    server, told = FakeServer([tools("one")]), Told()
    catalogue = made(server, told)
    place = ("srv", "ann#1")
    paces = [catalogue._pace_of(place) for _ in range(12)]
    assert paces[0] == COALESCE
    assert paces == sorted(paces)
    assert paces[-1] == catalogue_module.MAX_PACE
    assert catalogue._pace_of(("other", "ann#1")) == COALESCE  # its neighbours are none the slower
