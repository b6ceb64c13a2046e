"""The cases: for each number one bad message, from one side over one transport. The same seed and number give the same case."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from random import Random
from typing import Literal

from .oracle import Due

Side = Literal["client-http", "client-stdio", "server-http", "server-stdio"]
SIDES: tuple[Side, ...] = ("client-http", "client-stdio", "server-http", "server-stdio")
WEIGHTS = (32, 26, 21, 21)
HUGE_EVERY = 10_000
"""Every so many cases each side has one that is larger than the limit. They take seconds, so they are few."""


@dataclass(frozen=True, slots=True)
class Case:
    """`parts` are written one after the other, so that what is read may end anywhere."""

    number: int
    side: Side
    kind: str
    parts: list[bytes]
    due: Due = Due.EITHER
    """For clients: what has to come back."""
    id: int | str | None = None
    sound: bool | None = None
    """For servers: True where the client's call has to succeed, False where it has to fail, None where either is right."""
    modern: bool = True
    """For clients over HTTP: which headers it comes with. For servers: which of the bad ones says it."""

    @property
    def data(self) -> bytes:
        return b"".join(self.parts)


def sides(seed: int, count: int) -> list[Side]:
    """The side of each case. The huge ones come for each side in turn."""
    chosen = Random(f"{seed}:sides").choices(SIDES, WEIGHTS, k=count)
    return [SIDES[number % HUGE_EVERY] if is_huge(number) else side for number, side in enumerate(chosen)]


def is_huge(number: int) -> bool:
    return number % HUGE_EVERY < len(SIDES)


def case(seed: int, number: int, side: Side) -> Case:
    """Case `number`, which has to be of this side."""
    from . import client_cases, server_cases

    random = Random(f"{seed}:{number}")
    if is_huge(number):
        return (server_cases if side.startswith("server") else client_cases).huge(number, side, random.random() < 0.5)
    makers = {
        "client-http": client_cases.over_http,
        "client-stdio": client_cases.over_stdio,
        "server-http": server_cases.over_http,
        "server-stdio": server_cases.over_stdio,
    }
    return makers[side](number, random)


def cut(random: Random, data: bytes) -> list[bytes]:
    """In pieces, most of the time in one."""
    if random.random() < 0.8 or len(data) < 2:
        return [data]
    places = sorted(random.randint(0, len(data)) for _ in range(random.randint(1, 4)))
    return [data[start:end] for start, end in itertools.pairwise([0, *places, len(data)])]


def compact(message: dict[str, object]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
