"""A seeded sample of the situations with 1 and 5 bridges, all of them in `make soak`, and the judge itself."""

from __future__ import annotations

import asyncio
import dataclasses
import random
from collections.abc import Iterable
from typing import Any

import pytest

from . import bridges, situations
from .situations import BY_ID, SITUATIONS, Situation, play, problems
from .stage import Counts

SEED = 3
SAMPLE_SECONDS = 30
_ALWAYS = (("V1", 5), ("V8", 5))


def sample(seed: int, seconds: int) -> list[tuple[Situation, int]]:
    """Situations with 1 and 5 processes that take about so many seconds together, and some that are always among them."""
    rest = [(one.id, count) for one in SITUATIONS for count in (1, 5) if (one.id, count) not in _ALWAYS]
    random.Random(seed).shuffle(rest)
    chosen = list(_ALWAYS)
    left = seconds - sum(BY_ID[name].cost for name, _ in chosen)
    for name, count in rest:
        if BY_ID[name].cost <= left:
            chosen.append((name, count))
            left -= BY_ID[name].cost
    return [(BY_ID[name], count) for name, count in sorted(chosen)]


def named(chosen: Iterable[tuple[Situation, int]]) -> list[Any]:
    return [pytest.param(situation, count, id=f"{situation.id}-{count}") for situation, count in chosen]


@pytest.mark.parametrize(("situation", "processes"), named(sample(SEED, SAMPLE_SECONDS)))
async def test_as_it_should_be(situation: Situation, processes: int) -> None:
    counts = await play(situation, bridges.Interlock(), processes)
    assert problems(situation, counts) == []


@pytest.mark.soak
@pytest.mark.parametrize(
    ("situation", "processes"), named((situation, count) for situation in SITUATIONS for count in (1, 5, 30))
)
async def test_all_as_they_should_be(situation: Situation, processes: int) -> None:
    counts = await play(situation, bridges.Interlock(), processes)
    assert problems(situation, counts) == []


def test_the_sample_stays_small() -> None:
    for seed in range(20):
        chosen = sample(seed, SAMPLE_SECONDS)
        assert sum(situation.cost for situation, _ in chosen) <= SAMPLE_SECONDS
        assert len(chosen) >= 4


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, []),
        ({"refreshes": 2}, ["2 refreshes"]),
        ({"families_revoked": 1}, ["1 families revoked"]),
        ({"urls": 1}, ["1 URLs"]),
        ({"tabs": 1}, ["1 tabs"]),
        ({"unanswered": 3}, ["3 of 10 calls unanswered"]),
        ({"applied_twice": 1}, ["1 writes applied twice"]),
        ({"verdicts": {"outcome_unknown": 2}}, ["verdicts outcome_unknown x2"]),
        ({"facts": {}}, ["healed: None"]),
    ],
)
def test_what_is_a_problem(changed: dict[str, Any], said: list[str]) -> None:
    counts = Counts(refreshes=1, calls=10, good=10, facts={"healed": True})
    assert problems(BY_ID["V1"], dataclasses.replace(counts, **changed)) == said


def test_every_goal_is_the_issues_goal_or_stricter() -> None:
    for situation in SITUATIONS:
        assert situation.refreshes <= 1
        # A takeover has a URL of its own beside the old one, which still lands.
        assert situation.urls <= (2 if situation.id == "V11" else 1)
        assert asyncio.iscoroutinefunction(situation.play)
    assert {situation.id.rstrip("+-") for situation in situations.SITUATIONS} == {
        f"V{number}" for number in range(1, 13)
    }
