"""Which scopes a server has asked for since it was first reached, and how many sign-ins that may cost.

2026-07-28, authorization, Step-Up Authorization Flow: the union of what is granted and what is asked for, a few times at most.
"""

from __future__ import annotations

import msgspec

from interlock.manifest.config import OAuth
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.grant import Grant
from interlock.upstream.oauth.refresh import signed_in_at
from interlock.upstream.oauth.scopes import union, wanted

MAX_STEP_UPS = 2
"""How many sign-ins one set of scopes may cost before the server is told to be at fault."""
MAX_ASKED = 64


class StepUps:
    """For one server of one process."""

    def __init__(self) -> None:
        self._wanted: tuple[str, ...] = ()
        self._begun = False
        self._tries: dict[tuple[str, ...], set[float]] = {}
        """For each set of scopes: the sign-ins that did not satisfy the server."""

    def also(self, asked: tuple[str, ...]) -> None:
        """A challenge names these scopes."""
        self._wanted = union(self._wanted, asked)

    def another(self, asked: tuple[str, ...], grant: Grant | None) -> bool:
        """The server wants these in place of what the grant has. True where enough sign-ins were spent on that already.

        Calls do not count, nor refreshes: only sign-ins that were finished.
        """
        self.also(asked)
        self._begun = True
        if grant is None:
            return False
        while len(self._tries) >= MAX_ASKED:
            del self._tries[next(iter(self._tries))]
        tries = self._tries.setdefault(tuple(sorted(asked)), set())
        tries.add(signed_in_at(grant))
        return len(tries) > MAX_STEP_UPS

    def scope(self, found: Discovered | None, grant: Grant | None, settings: OAuth) -> tuple[str, ...]:
        """What to ask for: the setting, else what the server names, else nothing; in a step-up also what was granted before."""
        if found is None:
            return settings.scopes
        if self._wanted and not settings.scopes:
            found = msgspec.structs.replace(found, challenge_scope=self._wanted)
        base = wanted(found, settings)
        if not self._begun:
            return base
        return union(grant.scope if grant is not None else (), base, self._wanted)
