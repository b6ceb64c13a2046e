"""Collects cells of interleaved rounds and gives medians and spreads."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from harness.wrk import Cell


@dataclass(frozen=True, slots=True)
class Summary:
    """Medians over the rounds of one row at one concurrency."""

    rps: float
    rps_low: float
    rps_high: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    bad: int
    rounds: int
    sample: str = ""


@dataclass(slots=True)
class Measurements:
    """Cells by row and concurrency, in the order in which rows were first seen."""

    cells: dict[tuple[str, int], list[Cell]] = field(default_factory=dict)

    def add(self, row: str, concurrency: int, cell: Cell) -> None:
        self.cells.setdefault((row, concurrency), []).append(cell)

    def rows(self) -> list[str]:
        return list(dict.fromkeys(row for row, _ in self.cells))

    def concurrencies(self) -> list[int]:
        return sorted({concurrency for _, concurrency in self.cells})

    def summary(self, row: str, concurrency: int) -> Summary | None:
        cells = self.cells.get((row, concurrency))
        if not cells:
            return None
        rates = [cell.rps for cell in cells]
        return Summary(
            rps=median(rates),
            rps_low=min(rates),
            rps_high=max(rates),
            p50_ms=median(cell.p50_ms for cell in cells),
            p99_ms=median(cell.p99_ms for cell in cells),
            cpu_us=median(cell.cpu_us for cell in cells),
            bad=sum(cell.bad for cell in cells),
            rounds=len(cells),
            sample=next((cell.sample for cell in cells if cell.sample), ""),
        )

    def ratio(self, row: str, other: str, concurrency: int) -> float | None:
        """Median over the rounds of row/other, each taken within one round; None where either is missing."""
        mine = self.cells.get((row, concurrency))
        theirs = self.cells.get((other, concurrency))
        if not mine or not theirs:
            return None
        pairs = [a.rps / b.rps for a, b in zip(mine, theirs, strict=False) if b.rps > 0]
        return median(pairs) if pairs else None
