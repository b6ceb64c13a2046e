"""Who is calling. A principal comes from a credential or a local process, never from `clientInfo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PrincipalKind = Literal["local", "credential", "anonymous"]


@dataclass(frozen=True, slots=True)
class Principal:
    """`id` is stable and no secret (it may be logged); `host` is the AI host's adapter name, where known."""

    id: str
    kind: PrincipalKind
    host: str | None = None
