"""The lists of tools that are known: those that servers gave just now, else the last that Interlock kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from interlock.catalog.snapshot import Snapshot
from interlock.manifest.config import ServerConfig

if TYPE_CHECKING:
    from interlock.doctor.examination import Examination


@dataclass(frozen=True, slots=True)
class Listed:
    """`config` is None where only a host declares the server; `host` is then that host."""

    name: str
    where: str
    snapshot: Snapshot
    config: ServerConfig | None
    host: str
    fresh: bool


async def lists(examination: Examination) -> list[Listed]:
    kept = await examination.lists()
    fresh = await examination.all_started()
    asked = {
        started.target.name for started in fresh if started.target.config is not None and started.snapshot is not None
    }
    found = [
        Listed(config.key, str(config.origin), kept[config.key], config, "", config.key in asked)
        for config in examination.ready()
        if config.key in kept
    ]
    return found + [
        Listed(started.target.name, started.target.where, started.snapshot, None, started.target.host, True)
        for started in fresh
        if started.target.config is None and started.snapshot is not None
    ]
