"""One gateway for each kind of server and names, started when first needed, and clients of both eras for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from . import cases
from .gateway import Gateway, HttpClient, StdioClient
from .peer import Era, HttpPeer, Script, StdioPeer

ENVIRONMENT = {"FIDELITY_SECRET": "  s3cret \t"}
Transport = Literal["http", "stdio"]
Names = Literal["verbatim", "prefixed"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A server and how it is declared."""

    up: Era
    transport: Transport
    names: Names

    def __str__(self) -> str:
        return f"{self.up}-{self.transport}-{self.names}"


KINDS = [
    Kind(up, transport, names)
    for up in ("modern", "legacy")
    for transport in ("http", "stdio")
    for names in ("verbatim", "prefixed")
]


@dataclass(slots=True)
class Setting:
    """A running gateway in front of a running server."""

    kind: Kind
    script: Script
    peer: HttpPeer | StdioPeer
    gateway: Gateway
    folder: Path
    clients: dict[tuple[str, Era], HttpClient | StdioClient] = field(default_factory=dict)

    def client(self, down: Era, transport: Transport = "http") -> HttpClient | StdioClient:
        key = (transport, down)
        if key not in self.clients:
            made = (
                HttpClient(self.gateway.port, down)
                if transport == "http"
                else StdioClient(self.folder, down, ENVIRONMENT)
            )
            # A first list makes the server known; everything after it is about what the server says.
            made.request("tools/list")
            self.clients[key] = made
        return self.clients[key]

    def http(self, down: Era) -> HttpClient:
        found = self.client(down)
        assert isinstance(found, HttpClient)
        return found

    def exposed(self, method: str, item: str) -> str:
        """What clients call an item of the server."""
        if self.kind.names == "verbatim":
            return item
        return f"{cases.KEY}+{item}" if method == "resources/read" else f"{cases.KEY}__{item}"

    def close(self) -> None:
        for client in self.clients.values():
            if isinstance(client, StdioClient):
                client.stop()
        self.gateway.stop()
        self.peer.close()


def entry(kind: Kind, port: int) -> dict[str, object]:
    if kind.transport == "http":
        headers = {"x-secret": {"fromEnv": "FIDELITY_SECRET", "prefix": "Bearer "}}
        transport: dict[str, object] = {"http": {"endpoint": f"http://127.0.0.1:{port}/mcp", "headers": headers}}
    else:
        transport = {"stdio": {"command": [sys.executable, "-S", str(Path(__file__).with_name("pump.py")), str(port)]}}
    return {
        "schemaVersion": "agent-routing/v1",
        "integrationId": f"test.{cases.KEY}",
        "key": cases.KEY,
        "transports": transport,
        "policy": {"defaultApproval": "auto"},
        **({"names": "verbatim"} if kind.names == "verbatim" else {}),
    }


def start(kind: Kind, folder: Path) -> Setting:
    lists = {method: cases.pages(method, kind.up) for method in cases.LISTS}
    script = Script(kind.up, cases.hello(kind.up), lists)
    peer = HttpPeer(script) if kind.transport == "http" else StdioPeer(script)
    gateway = Gateway.start(folder, [entry(kind, peer.port)], ENVIRONMENT)
    return Setting(kind, script, peer, gateway, folder)


def each(kinds: Sequence[Kind]) -> pytest.MarkDecorator:
    """For tests that these kinds of server are put to."""
    return pytest.mark.parametrize("setting", kinds, ids=str, indirect=True)


EACH = each(KINDS)
DOWN = pytest.mark.parametrize("down", ["modern", "legacy"])


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[Kind], Setting]]:
    """All that run, each started when first asked for."""
    running: dict[Kind, Setting] = {}

    def of(kind: Kind) -> Setting:
        if kind not in running:
            running[kind] = start(kind, tmp_path_factory.mktemp(str(kind)))
        return running[kind]

    yield of
    for each in running.values():
        each.close()


@pytest.fixture
def setting(request: pytest.FixtureRequest, settings: Callable[[Kind], Setting]) -> Iterator[Setting]:
    """The one that a test is about, and afterwards without the answers that the test gave it."""
    found = settings(request.param)
    yield found
    script = found.script
    script.answer = None
    while not script.answers.empty():
        script.answers.get_nowait()
