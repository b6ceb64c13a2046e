"""Which transport a host gets on this machine: asked from the top, and the first that fits is taken, with the reason.

0  a plugin of the host carries the bridge already: nothing to do
1  a local process, `interlock bridge URL`, started through the launcher: the default
2  the host's own HTTP connection: only where no local process can be started, and at a price
3  none: what is missing is said plainly
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from interlock.install.entries import Found
from interlock.install.hosts import Host

PRICE = (
    "The price: no login shared with other hosts, no verdicts (a failed call does not say whether it may have taken effect), "
    "no session binding."
)


class Rung(IntEnum):
    PLUGIN = 0
    BRIDGE = 1
    NATIVE = 2
    NONE = 3


@dataclass(frozen=True, slots=True)
class Machine:
    """What was found out about this machine before choosing."""

    plugin: Found | None
    """A plugin's entry that carries the bridge to this URL."""
    no_process: str | None
    """Why the launcher cannot be started here; None where it can."""


@dataclass(frozen=True, slots=True)
class Choice:
    rung: Rung
    reasons: tuple[str, ...]
    """One sentence for each rung that was looked at, top-down."""
    price: str | None = None


def choose(host: Host, machine: Machine) -> Choice:
    """The first rung that fits."""
    if machine.plugin is not None:
        return Choice(
            Rung.PLUGIN,
            (
                f"(0) A plugin of {host.label} carries the bridge already: {machine.plugin.name} in {machine.plugin.file}.",
            ),
        )
    reasons = [f"(0) No plugin of {host.label} carries the bridge to this URL."]
    if host.bridge is None:
        reasons.append(f"(1) {host.label} starts no local process, so it cannot run the bridge.")
    elif machine.no_process is not None:
        reasons.append(f"(1) The bridge cannot be started on this machine: {machine.no_process}.")
    else:
        reasons.append(f"(1) {host.label} starts local processes, and the launcher runs here: the bridge.")
        return Choice(Rung.BRIDGE, tuple(reasons))
    if host.native is not None and host.authorizes:
        reasons.append(f"(2) {host.label} can connect to the URL by itself and log in: its own HTTP connection.")
        return Choice(Rung.NATIVE, tuple(reasons), PRICE)
    if host.by_hand is not None and host.authorizes:
        reasons.append(
            f"(2) {host.label} can connect and log in by itself, but no file is for that: add the URL by hand "
            f"({host.by_hand}). {PRICE}"
        )
    elif host.native is None:
        reasons.append(f"(2) {host.label} takes no URL of a server.")
    elif host.authorizes is None:
        reasons.append(
            f"(2) Whether {host.label} can log in to a server by itself is not known, so no entry is written."
        )
    else:
        reasons.append(f"(2) {host.label} cannot log in to a server by itself.")
    reasons.append("(3) Missing: " + _missing(host, machine))
    return Choice(Rung.NONE, tuple(reasons))


def _missing(host: Host, machine: Machine) -> str:
    if host.bridge is None:
        return f"a way for {host.label} to start a program; use a host that can, or its own connectors."
    return f"a way to start the bridge here ({machine.no_process}). Repair that and run this again."
