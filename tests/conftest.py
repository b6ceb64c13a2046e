"""What every test may use: a home of its own, deadlines instead of sleeps, and where the real programs are."""

from __future__ import annotations

import asyncio
import os
import reprlib
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# A shared two-core machine is slow at times: hypothesis judges examples, not milliseconds.
settings.register_profile("interlock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("interlock")


def _named_only(value: object, level: int) -> str:
    return object.__repr__(value)


# `asyncio.Runner` asks for SIGINT's handler after each async fixture, and in vain spells out the handler's task and with it
# the fixture's result (signal.getsignal tries to make an enum member of it). A result with a long repr took minutes.
reprlib.aRepr.repr_instance = _named_only  # type: ignore[method-assign]


@pytest.fixture
def interlock_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty Interlock home in an empty user home, so that no test reads or writes the real one."""
    home = tmp_path / "home"
    state = home / ".interlock"
    home.mkdir()
    state.mkdir(mode=0o700)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("INTERLOCK_HOME", str(state))
    for name in ("XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return state


@pytest.fixture
def within() -> Callable[[float], asyncio.Timeout]:
    """`async with within(5):` fails the test when its body has not finished in that many seconds."""

    def deadline(seconds: float) -> asyncio.Timeout:
        return asyncio.timeout(seconds)

    return deadline


@pytest.fixture(autouse=True)
def _imports_without_coverage(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Coverage imports a lot by itself, so a test of what a child process imports runs it without."""
    if "import" in request.node.name:
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


@pytest.fixture
def child_environment(interlock_home: Path) -> dict[str, str]:
    """Environment for a child process that runs `python -m interlock` or an example server from this checkout."""
    environment = {
        name: os.environ[name]
        for name in ("HOME", "USERPROFILE", "INTERLOCK_HOME", "LANG", "SYSTEMROOT", "TMPDIR", "COVERAGE_PROCESS_CONFIG")
        if name in os.environ
    }
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment["PYTHONPATH"] = str(ROOT / "src")
    return environment
