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
    "The price: no sign-in shared with other hosts, no verdicts (a failed call does not say whether it may have taken effect), "
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
    using: str
    """What the host gets, in a few words."""
    reasons: tuple[str, ...]
    """One sentence for each rung that was looked at, top-down."""
    price: str | None = None

    def passed_over(self) -> tuple[str, ...]:
        """Why a better way was not taken. That no plugin carries the bridge is the usual case, and no news."""
        return self.reasons[1:-1] if self.rung is Rung.NATIVE else self.reasons[1:] if self.rung is Rung.NONE else ()


def choose(host: Host, machine: Machine) -> Choice:
    """The first rung that fits."""
    if machine.plugin is not None:
        return Choice(
            Rung.PLUGIN,
            f"the bridge that a plugin of {host.label} carries already ({machine.plugin.name} in {machine.plugin.file})",
            (f"A plugin of {host.label} carries the bridge already: {machine.plugin.name} in {machine.plugin.file}.",),
        )
    reasons = [f"No plugin of {host.label} carries the bridge to this URL."]
    if host.adapter is None:
        reasons.append(f"{host.label} starts no local process, so it cannot run the bridge.")
    elif machine.no_process is not None:
        reasons.append(f"The bridge cannot be started on this machine: {machine.no_process}.")
    else:
        reasons.append(f"{host.label} starts local processes, and the launcher runs here: the bridge.")
        return Choice(Rung.BRIDGE, "a local bridge", tuple(reasons))
    if host.takes_urls and host.authorizes:
        reasons.append(f"{host.label} can connect to the URL by itself and sign in: its own HTTP connection.")
        return Choice(Rung.NATIVE, f"{host.label}'s own HTTP connection", tuple(reasons), PRICE)
    if host.by_hand is not None and host.authorizes:
        reasons.append(
            f"{host.label} can connect and sign in by itself, but no file is for that: add the URL by hand "
            f"({host.by_hand}). {PRICE}"
        )
    elif not host.takes_urls:
        reasons.append(f"{host.label} takes no URL of a server.")
    elif host.authorizes is None:
        reasons.append(f"Whether {host.label} can sign in to a server by itself is not known, so no entry is written.")
    else:
        reasons.append(f"{host.label} cannot sign in to a server by itself.")
    reasons.append("Missing: " + _missing(host, machine))
    return Choice(Rung.NONE, "nothing", tuple(reasons))


def _missing(host: Host, machine: Machine) -> str:
    if host.adapter is None:
        return f"a way for {host.label} to start a program; use a host that can, or its own connectors."
    return f"a way to start the bridge here ({machine.no_process}). Repair that and run this again."
