"""Traces and homes for the journal's tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import interlock
from interlock.journal.trace_id import new_trace_id
from interlock.model.stage import Stage
from interlock.model.trace import Mark, RouteTrace

MakeTrace = Callable[..., RouteTrace]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that does not exist yet."""
    return tmp_path / "home"


@pytest.fixture
def make_trace() -> MakeTrace:
    """Makes a finished trace that needs only say what matters."""

    def make(**fields: object) -> RouteTrace:
        values: dict[str, object] = {
            "id": new_trace_id(),
            "at_ns": 1_735_689_600_000_000_000,
            "method": "tools/call",
            "principal": "local:1000",
            "client": "tester/1.0",
            "host": "claude-code",
            "server": "git",
            "name": "git/log",
            "status": "ok",
            "era_down": "2026-07-28",
            "era_up": "2025-11-25",
            "bytes_in": 120,
            "bytes_out": 4096,
            "micros": 1234,
            "marks": [
                Mark(Stage.DISCOVER, "connected", "shared process", None, 3),
                Mark(Stage.AUTHORIZE, "allow", "allowed by glob", "/etc/interlock/interlock.yaml:7", 5),
                Mark(Stage.EXECUTE, "ok", "answered", None, 1200),
            ],
        }
        return RouteTrace(**{**values, **fields})  # type: ignore[arg-type]

    return make


@pytest.fixture
def child_environ() -> dict[str, str]:
    """An environment in which a child process imports this Interlock."""
    source = Path(interlock.__file__).parent.parent
    return {**os.environ, "PYTHONPATH": str(source), "PYTHONUNBUFFERED": "1"}
