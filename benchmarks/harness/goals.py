"""The speed goals, and whether one run met them. Every ratio is taken inside a round and then the median is used."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from harness import subjects
from harness.medians import Measurements

FLOOR_SHARE = 0.7
ADDED_P50 = 1.5
FASTMCP_TIMES = 25.0
SUPERGATEWAY_TIMES = 3.5
BUSY = (16, 64)


@dataclass(frozen=True, slots=True)
class Goal:
    """One goal as measured; `met` is None where a part of it was not measured."""

    text: str
    target: str
    measured: str
    met: bool | None


def judge(found: dict[str, Measurements]) -> list[Goal]:
    """All goals, for the upstream kinds that were measured."""
    goals: list[Goal] = []
    for kind, measurements in found.items():
        for concurrency in BUSY:
            share = measurements.ratio(subjects.INTERLOCK, subjects.FLOOR, concurrency)
            text = f"calls/s against the floor, {kind} upstream, concurrency {concurrency}"
            goals.append(_at_least(text, share, FLOOR_SHARE))
        added = added_p50_ratio(measurements)
        goals.append(
            Goal(
                f"added p50 against the floor's, {kind} upstream, concurrency 1",
                f"at most {ADDED_P50}",
                "-" if added is None else f"{added:.2f}",
                None if added is None else added <= ADDED_P50,
            )
        )
        times = measurements.ratio(subjects.INTERLOCK, subjects.FASTMCP_SHARED, 16)
        text = f"times the calls/s of FastMCP's proxy with a shared client, {kind} upstream, concurrency 16"
        goals.append(_at_least(text, times, FASTMCP_TIMES))
        if kind == subjects.STDIO:
            # supergateway keeps its child only for legacy clients, so ours with a legacy client is like for like.
            for row in (subjects.INTERLOCK, subjects.INTERLOCK_LEGACY):
                times = measurements.ratio(row, subjects.SUPERGATEWAY, 16)
                text = f"times the calls/s of supergateway, {row}, stdio upstream, concurrency 16"
                goals.append(_at_least(text, times, SUPERGATEWAY_TIMES))
    return goals


def added_p50_ratio(measurements: Measurements) -> float | None:
    """What Interlock adds to the median latency of a lone caller, over what the floor adds."""
    rows = (subjects.DIRECT, subjects.FLOOR, subjects.INTERLOCK)
    cells = [measurements.cells.get((row, 1), []) for row in rows]
    ratios = [
        (ours.p50_ms - direct.p50_ms) / (floor.p50_ms - direct.p50_ms)
        for direct, floor, ours in zip(*cells, strict=False)
        if floor.p50_ms > direct.p50_ms
    ]
    return median(ratios) if ratios else None


def _at_least(text: str, value: float | None, target: float) -> Goal:
    measured = "-" if value is None else f"{value:.2f}"
    return Goal(text, f"at least {target:g}", measured, None if value is None else value >= target)
