"""What the suite shares: one HTTP server, one cache, and a stage of its own for each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from . import programs
from .server import serve
from .stage import Stage, stage


@pytest.fixture(scope="session")
def web() -> Iterator[tuple[str, list[dict[str, str]]]]:
    with serve() as served:
        yield served


@pytest.fixture(scope="session")
def host_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("host-cache")


@pytest.fixture
def set_stage(
    tmp_path: Path, host_cache: Path, web: tuple[str, list[dict[str, str]]]
) -> Callable[[str, Mapping[str, str]], Stage]:
    """A stage for a host; the test is skipped where the host is not here."""

    def make(host: str, environ: Mapping[str, str]) -> Stage:
        why = programs.missing(host)
        if why is not None:
            pytest.skip(why)
        return stage(tmp_path, host_cache, web[0], environ)

    return make
