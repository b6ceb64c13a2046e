"""What the call that `interlock setup` ends with means: a sentence, and the exit code."""

from __future__ import annotations

import shlex

from interlock.cli.exit_codes import CONFIGURATION, NEVER_REACHED, OF_VERDICT, OK, OUTCOME_UNKNOWN, WAIT
from interlock.install.proof import Outcome

WAITED_SECONDS = 120.0
"""How long the bridge that setup started keeps its sign-in page's address open (Timing.linger_seconds)."""


def told(outcome: Outcome, url: str) -> str:
    """For people."""
    if outcome.kind == "tools":
        names = ", ".join(outcome.tools[:8]) + (", ..." if len(outcome.tools) > 8 else "")
        tools = f"{len(outcome.tools)} tool{'' if len(outcome.tools) == 1 else 's'}"
        return f"It works: {tools}{f' ({names})' if names else ''} in {outcome.seconds:.1f} s."
    if outcome.kind == "login":
        # The address has a line of its own, so that nothing is copied along with it.
        return (
            f"Sign in once for this machine to use it:\n\n  {outcome.authorize_url}\n\n"
            f"The page is waited for during the next {WAITED_SECONDS / 60:g} minutes. After that, a call of a tool offers it again, "
            f"and so does:\n\n  interlock login {shlex.quote(url)}"
        )
    if outcome.kind == "not_started":
        return f"The entry is written, but what it starts does not run: {outcome.said}"
    return f"The entry is written, but the call did not succeed: {outcome.said}"


def exit_code(outcome: Outcome) -> int:
    """That of the verdict, as for any call (docs/exit-codes.md); a sign-in that waits for a person is a wait."""
    if outcome.kind == "tools":
        return OK
    if outcome.kind in ("login", "wait"):
        return WAIT
    if outcome.kind == "not_started":
        return CONFIGURATION
    if outcome.kind == "silent":
        return OUTCOME_UNKNOWN
    return OF_VERDICT.get(outcome.verdict or "", NEVER_REACHED)
