"""`doctor bridge`: all checks in the order in which a call meets them. One that breaks or hangs never takes the rest with it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from interlock.doctor.authorize import (
    access_token,
    authorization_server,
    callback_port,
    client,
    grant,
    mode,
    open_login,
    resource_documents,
)
from interlock.doctor.case import Case, Machine
from interlock.doctor.discover import address, era, foreign_bridges, home_copy, host_entries, this_build, tls
from interlock.doctor.finding import Finding
from interlock.doctor.observe import recent_refusals
from interlock.doctor.safely import safely
from interlock.model.stage import Stage

OF_MACHINE: Final[Sequence[tuple[str, Callable[[Machine], Awaitable[list[Finding]]]]]] = (
    ("build", this_build.check),
    ("home-copy", home_copy.check),
    ("foreign-bridges", foreign_bridges.check),
)
OF_SERVER: Final[Sequence[tuple[str, Stage, Callable[[Case], Awaitable[list[Finding]]]]]] = (
    ("host-entries", Stage.DISCOVER, host_entries.check),
    ("address", Stage.DISCOVER, address.check),
    ("tls", Stage.DISCOVER, tls.check),
    ("era", Stage.DISCOVER, era.check),
    ("log-in", Stage.AUTHORIZE, mode.check),
    ("access-token", Stage.AUTHORIZE, access_token.check),
    ("resource-metadata", Stage.AUTHORIZE, resource_documents.check),
    ("authorization-server", Stage.AUTHORIZE, authorization_server.check),
    ("registration", Stage.AUTHORIZE, client.check),
    ("grant", Stage.AUTHORIZE, grant.check),
    ("callback-port", Stage.AUTHORIZE, callback_port.check),
    ("open-login", Stage.AUTHORIZE, open_login.check),
    ("grant-log", Stage.OBSERVE, recent_refusals.check),
)
FIRST_STEPS: Final = frozenset({"address", "tls", "era", "resource-metadata"})
"""Where one of them has a problem, all that follows would only say the same in other words."""
PATIENCE = 4
"""A check may wait for several answers, each of which has the case's own limit."""


async def of_machine(machine: Machine, seconds: float) -> list[Finding]:
    """What holds for every server. Never raises."""
    findings: list[Finding] = []
    for name, check in OF_MACHINE:
        findings += await safely(name, Stage.DISCOVER, check(machine), seconds * PATIENCE)
    return findings


async def of_server(case: Case) -> list[Finding]:
    """Everything about one server, in order, up to the first step that fails. Never raises."""
    findings: list[Finding] = []
    for done, (name, stage, check) in enumerate(OF_SERVER, 1):
        found = await safely(name, stage, check(case), case.seconds * PATIENCE)
        findings += found
        if name in FIRST_STEPS and any(each.severity == "problem" for each in found):
            (first, stage, _check), *others = OF_SERVER[done:]
            seen = f"not looked at before that is mended, nor {', '.join(name for name, _stage, _check in others)}"
            return [*findings, Finding(check=first, stage=stage, severity="unknown", seen=seen)]
    return findings
