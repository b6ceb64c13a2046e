"""Which file setup writes for a host."""

from __future__ import annotations

from interlock.hosts.machine import Machine
from interlock.install.hosts import Host, place


def config_file(host: Host, machine: Machine) -> str | None:
    found = place(host, machine)
    return None if found is None else found[1]
