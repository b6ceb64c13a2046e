"""What the rows of the matrix start from: the twenty cells, and the cell's name in the report."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from .cells import CELLS, UPSTREAMS, Cell
from .world import Pair, World


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "row(text): the row of the behaviour matrix that a test fills")


async def five_servers(world: World) -> list[dict[str, Any]]:
    """One server of each kind."""
    return [await world.entry(each.key, each.era, each.transport, "--tools", "5") for each in UPSTREAMS.values()]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """All five kinds of server behind each gateway, for the rows that do no harm."""
    found = World(tmp_path_factory.mktemp("matrix"), five_servers)
    yield found
    await found.close()


@pytest_asyncio.fixture(loop_scope="session", params=CELLS, ids=str)
async def pair(request: pytest.FixtureRequest, world: World) -> Pair:
    """Each of the twenty cells."""
    cell: Cell = request.param
    return Pair(cell, await world.client(cell.client, cell.down), world, cell.server.key)


@pytest.fixture(autouse=True)
def cell_in_report(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """Name the row and the cell in the JUnit report, from which docs/matrix.md is made."""
    row = request.node.get_closest_marker("row")
    callspec = getattr(request.node, "callspec", None)
    cells = [each for each in (callspec.params.values() if callspec else ()) if isinstance(each, Cell)]
    if row is not None:
        record_property("row", row.args[0])
    for cell in cells:
        record_property("cell", json.dumps([cell.client, cell.down, cell.server.era, cell.server.transport]))
