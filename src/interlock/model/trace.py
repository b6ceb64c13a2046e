"""The route of one request through the seven stages: what a person sees with `--trace`, and what audit stores.

Structs that the garbage collector does not follow: thousands of them wait for the journal's writer at a time.
"""

from __future__ import annotations

import msgspec

from interlock.model.stage import Stage


class Mark(msgspec.Struct, array_like=True, gc=False):
    """One stage's part. `micros` is wall time spent in it; `rule` is `file:line` where a rule decided."""

    stage: Stage
    decision: str
    reason: str
    rule: str | None
    micros: int


class RouteTrace(msgspec.Struct, gc=False):
    """Filled in by the pipeline as the call goes. Holds no argument, result or secret."""

    id: str
    at_ns: int
    """Wall clock at arrival, nanoseconds since the epoch."""
    method: str
    principal: str
    client: str
    host: str | None
    server: str | None = None
    name: str | None = None
    """Canonical name, or None where the request has none."""
    status: str = "open"
    """ok, tool_error, error, denied, needs_approval, input_required, cancelled, never_reached, wait, outcome_unknown."""
    verdict: str | None = None
    slug: str | None = None
    era_down: str = ""
    era_up: str = ""
    bytes_in: int = 0
    bytes_out: int = 0
    micros: int = 0
    marks: list[Mark] = []
