"""What really happened at the scripted servers: counters, and a list of everything that was applied.

Tests and benchmarks check a client's verdicts against this.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field

from interlock.lab.jsonrpc import JsonObject

KEPT = 10_000


@dataclass(frozen=True, slots=True)
class Applied:
    """One write that took effect."""

    at: float
    """When, on this machine's clock."""
    tool: str
    key: str
    text: str
    author: str | None
    """Who had signed in to the session (tool `sign_in`), where there was one."""
    client_id: str | None


@dataclass(slots=True)
class Truth:
    """Counts since the start. Nothing in here is a secret: tokens are not kept."""

    counts: Counter[str] = field(default_factory=Counter)
    """refreshes_ok, refreshes_refused, refreshes_repeated, reuse_detected, dead_family, families_revoked, registrations,
    authorize_requests, logins_finished, logins_refused, device_requests, revocations, answers_dropped, early_401 and more.
    families_revoked counts what reuse ended, families_ended what a command or a client's revocation did."""
    token_requests: Counter[str] = field(default_factory=Counter)
    """By grant type."""
    statuses: Counter[int] = field(default_factory=Counter)
    """Answers of the MCP endpoint, by HTTP status; 0: none was sent."""
    writes: Counter[str] = field(default_factory=Counter)
    """Writes applied, by idempotency key."""
    applied: list[Applied] = field(default_factory=list)
    token_forms: list[dict[str, str]] = field(default_factory=list)
    """Forms that came to the token endpoint, secrets taken out."""
    authorize_queries: list[dict[str, str]] = field(default_factory=list)
    registered: list[JsonObject] = field(default_factory=list)
    """Bodies of registrations."""
    opened: list[dict[str, str]] = field(default_factory=list)
    """Headers of each legacy `initialize`, without `authorization`."""
    calls: list[tuple[str, int]] = field(default_factory=list)
    """Method, or `tools/call NAME`, of each request to the MCP endpoint with the status of its answer, in the order of the
    answers; 0: none was sent."""

    def applied_once(self) -> bool:
        """Whether no write was applied twice."""
        return all(count == 1 for count in self.writes.values())

    def as_json(self) -> JsonObject:
        """For the control endpoint."""
        return {
            "counts": dict(self.counts),
            "token_requests": dict(self.token_requests),
            "statuses": {str(status): count for status, count in self.statuses.items()},
            "writes": dict(self.writes),
            "applied": [dataclasses.asdict(each) for each in self.applied],
            "token_forms": self.token_forms[-KEPT:],
            "authorize_queries": self.authorize_queries[-KEPT:],
            "registered": self.registered[-KEPT:],
            "opened": self.opened[-KEPT:],
            "calls": [list(each) for each in self.calls[-KEPT:]],
        }

    def clear(self) -> None:
        """Begin to count anew; what the servers issued stays valid."""
        for each in (self.counts, self.token_requests, self.statuses, self.writes):
            each.clear()
        self.applied.clear()
        self.token_forms.clear()
        self.authorize_queries.clear()
        self.registered.clear()
        self.opened.clear()
        self.calls.clear()
