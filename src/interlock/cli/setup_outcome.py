"""What the call that `interlock setup` ends with means: a sentence, and the exit code."""

from __future__ import annotations

from interlock.cli.exit_codes import CONFIGURATION, NEVER_REACHED, OF_VERDICT, OK, OUTCOME_UNKNOWN, WAIT
from interlock.install.proof import Outcome


def told(outcome: Outcome) -> str:
    """For people."""
    if outcome.kind == "tools":
        names = ", ".join(outcome.tools[:8]) + (", ..." if len(outcome.tools) > 8 else "")
        tools = f"{len(outcome.tools)} tool{'' if len(outcome.tools) == 1 else 's'}"
        return f"It works: {tools}{f' ({names})' if names else ''} in {outcome.seconds:.1f} s."
    if outcome.kind == "login":
        return f"It works; log in once for this machine: {outcome.authorize_url}"
    if outcome.kind == "not_started":
        return f"The entry is written, but what it starts does not run: {outcome.said}"
    return f"The entry is written, but the call did not succeed: {outcome.said}"


def exit_code(outcome: Outcome) -> int:
    """That of the verdict, as for any call (docs/exit-codes.md); a login that waits for a person is a wait."""
    if outcome.kind == "tools":
        return OK
    if outcome.kind in ("login", "wait"):
        return WAIT
    if outcome.kind == "not_started":
        return CONFIGURATION
    if outcome.kind == "silent":
        return OUTCOME_UNKNOWN
    return OF_VERDICT.get(outcome.verdict or "", NEVER_REACHED)
