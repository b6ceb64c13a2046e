"""The official conformance suite and the MCP inspector through Interlock, compared with the same without it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from . import programs
from .run import Report, all_runs

RUNS = list(all_runs())


@pytest.fixture(scope="module", autouse=True)
def _programs_are_here() -> None:
    try:
        programs.node()
        programs.suite()
        programs.inspector()
        programs.sdist()
    except programs.Missing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.mark.conformance
@pytest.mark.timeout(300)
@pytest.mark.parametrize("run", [run for _, run in RUNS], ids=[name for name, _ in RUNS])
def test_nothing_is_lost(run: Callable[[], Report]) -> None:
    report = run()
    assert report.problems == []
    assert report.checks[1] > 0
