"""What the hosts themselves say, put beside what their files say: connected or not, which tools, and where the two differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor

from interlock.hosts.checks import running
from interlock.hosts.checks.codes import found
from interlock.hosts.declaration import Severity
from interlock.hosts.inventory import Inventory
from interlock.hosts.oracles.asked import Asked, Says
from interlock.hosts.oracles.asking import ORACLES, ask, compare
from interlock.hosts.reading import Reading

Ask = Callable[[Reading, float], Asked]
CONNECTED: Mapping[Says, bool] = {"connected": True, "failed": False}
"""States that only a host which really tried can report."""
AT_ONCE = 4


def ask_all(inventory: Inventory, seconds: float, using: Ask = ask) -> None:
    """Asks every host that has entries and a command for it; `seconds` for each."""
    readings = [each for each in inventory.readings if each.declarations and each.adapter.id in ORACLES]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        answers = list(threads.map(lambda reading: using(reading, seconds), readings))
    for reading, asked in zip(readings, answers, strict=True):
        put(reading, asked)


def put(reading: Reading, asked: Asked) -> None:
    """Sets `connected` and `tools`; adds a problem to each entry that the host sees in another way."""
    command = " ".join(asked.command) or reading.adapter.id
    if asked.trouble and asked.refuses:
        reading.problems.append(found("host-refuses", f"{reading.adapter.label}: {asked.trouble}"))
    elif asked.trouble:
        reading.problems.append(
            found("host-not-asked", f"{reading.adapter.label}: {asked.trouble}")
            if asked.installed
            else found(
                "host-not-asked", f"{reading.adapter.label} could not be asked: {asked.trouble}.", severity="note",
                todo="Nothing, if only its application is installed, or none.",
            )
        )  # fmt: skip
    for path in asked.wrote:
        reading.problems.append(found("host-wrote", f"`{command}` itself changed {path} while it was asked."))
    for note in asked.notes:
        reading.problems.append(found("host-says", f"`{command}`: {note}"))
    for name, says in asked.servers.items():
        for declaration in reading.of(name):
            if declaration.state in ("effective", "blocked"):
                declaration.connected = CONNECTED.get(says.state, declaration.connected)
                declaration.tools = says.tools if says.tools is not None else declaration.tools
    for differs in compare(reading, asked):
        ours, theirs = differs.ours, differs.theirs
        seen = f"By its files it is {ours}; `{command}` says {theirs}."
        if differs.what == "runs":
            seen = f"By its files it runs `{ours}`; `{command}` says `{theirs}`."
        declarations = reading.of(differs.server)
        severity: Severity | None = "note" if differs.reason else None
        if declarations:
            best = next((each for each in declarations if each.state == "effective"), declarations[0])
            best.problems.append(found("host-disagrees", seen, why=differs.reason, spot=best.spot, severity=severity))
        else:
            seen = f"`{command}` also has `{differs.server}` ({theirs}), which stands in none of these files."
            reading.problems.append(found("host-disagrees", seen, why=differs.reason, severity=severity))
    if any(each.tools is not None for each in reading.declarations):
        running.names_again(reading)
