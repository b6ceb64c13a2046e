"""Gateways for the tests of serving, on the event loop that it runs on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path

import pytest

from .desk import Desk, running


def pytest_asyncio_loop_factories(
    config: object, item: object
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if sys.platform == "win32":
        return {"asyncio": asyncio.new_event_loop}
    import uvloop

    return {"uvloop": uvloop.new_event_loop}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A gateway with one modern server `lab` whose calls need no approval; the tool `secret` is denied."""
    async with running(tmp_path / "home", deny=("secret",)) as made:
        yield made


@pytest.fixture
async def legacy_desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """The same with a legacy server."""
    async with running(tmp_path / "home", era="legacy", deny=("secret",)) as made:
        yield made


@pytest.fixture
async def open_desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """The same as `desk`, serving anybody."""
    async with running(tmp_path / "home", credential=False, deny=("secret",)) as made:
        yield made
