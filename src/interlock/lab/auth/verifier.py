"""What the protected MCP server needs to know of tokens, whoever issued them: the lab itself, or a real authorization server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Holder:
    """What a token says about its bearer."""

    client_id: str
    scope: tuple[str, ...]
    audience: str | None


class Verifier(Protocol):
    def now(self) -> float:
        """The servers' clock, in seconds since the epoch."""
        ...

    def refusal(self, token: str) -> str | None:
        """Why the token is not taken; None: it is."""
        ...

    def holder(self, token: str) -> Holder | None:
        """Who bears the token; None where that is not known."""
        ...
