"""Serving is tested on the event loop that it runs on."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping


def pytest_asyncio_loop_factories(config: object, item: object) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    if sys.platform == "win32":
        return {"asyncio": asyncio.new_event_loop}
    import uvloop

    return {"uvloop": uvloop.new_event_loop}
