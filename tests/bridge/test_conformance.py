"""A seeded sample of the suite's client scenarios through the bridge; all of them are in `make conformance`."""

from __future__ import annotations

import os
import random
import subprocess

import pytest
from tests.conformance import programs

from . import bridges, conformance
from .conformance import OURS, REQUIRED_2025, REQUIRED_2026, SUITES, Suite

SEED = 7
SAMPLE = 8


def sample(seed: int, count: int) -> list[tuple[Suite, str, float]]:
    """Scenarios of all scored suites, each with the click delayed or not."""
    dice = random.Random(seed)
    everything = [(suite, scenario) for suite in SUITES if suite.scored for scenario in suite.scenarios]
    return [(suite, scenario, dice.choice(conformance.CLICKS)) for suite, scenario in dice.sample(everything, count)]


@pytest.fixture(scope="module", autouse=True)
def _programs_are_here() -> None:
    try:
        programs.node()
        programs.suite()
    except programs.Missing as missing:
        if os.environ.get("CI"):
            pytest.fail(str(missing))
        pytest.skip(str(missing))


@pytest.mark.conformance
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("suite", "scenario", "click"),
    [
        pytest.param(suite, scenario, click, id=f"{scenario}@{suite.revision}{'' if click else '-at-once'}")
        for suite, scenario, click in sample(SEED, SAMPLE)
    ],
)
def test_scenario(suite: Suite, scenario: str, click: float) -> None:
    result = conformance.run_scenario(OURS, scenario, suite.revision, click, bridges.rival_cache())
    assert result.why == ""
    assert result.passed
    assert result.checks[0] > 0


@pytest.mark.conformance
@pytest.mark.parametrize("suite", [REQUIRED_2025, REQUIRED_2026], ids=lambda suite: suite.name)
def test_the_list_is_the_suites_own(suite: Suite) -> None:
    command = [str(programs.node()), str(programs.suite()), "list", "--requirements", suite.revision]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    of_clients = printed.partition("Client scenarios")[2].partition("Run and reported")[0]
    listed = [line.strip()[2:] for line in of_clients.splitlines() if line.strip().startswith("- ")]
    assert sorted(listed) == sorted(suite.scenarios)
    assert len(listed) == {"2025-11-25": 18, "2026-07-28": 32}[suite.revision]
