"""How long logins, graces and refreshes take. One value for a process, so that tests can live faster."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """All in seconds."""

    login_seconds: float = 600.0
    """For so long, an offered login counts as being worked on by somebody."""
    snooze_seconds: float = 600.0
    """For so long, no login is offered after one that nobody finished."""
    linger_seconds: float = 120.0
    """A process that is asked to leave stays for so long, while a login is open."""
    grace_seconds: float = 120.0
    knock_seconds: float = 10.0
    refresh_lead: float = 60.0
    step_up_seconds: float = 600.0
    step_ups: int = 3
    """In `step_up_seconds`, so many different sets of scopes may be asked a person (or a token endpoint) for."""
