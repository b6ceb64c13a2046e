"""The cells of the matrix: which client on which side, which server on the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .client import Era


@dataclass(frozen=True, slots=True)
class Upstream:
    """A fixture server as the gateway reaches it."""

    key: str
    era: Era
    transport: Literal["stdio", "http", "sse"]


UPSTREAMS = {
    each.key: each
    for each in (
        Upstream("lstdio", "legacy", "stdio"),
        Upstream("lhttp", "legacy", "http"),
        Upstream("lsse", "legacy", "sse"),
        Upstream("mstdio", "modern", "stdio"),
        Upstream("mhttp", "modern", "http"),
    )
}
DOWNSTREAMS: tuple[tuple[Era, Literal["stdio", "http"]], ...] = (
    ("legacy", "http"),
    ("legacy", "stdio"),
    ("modern", "http"),
    ("modern", "stdio"),
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One client and one server with the gateway in between."""

    client: Era
    down: Literal["stdio", "http"]
    server: Upstream

    def __str__(self) -> str:
        return f"{self.client}-{self.down}>{self.server.era}-{self.server.transport}"

    @property
    def pairing(self) -> tuple[Era, Era]:
        return self.client, self.server.era


CELLS = tuple(Cell(era, down, server) for era, down in DOWNSTREAMS for server in UPSTREAMS.values())
