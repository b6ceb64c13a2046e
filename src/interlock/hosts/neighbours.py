"""The machines that one person works on at once, seen from one of them: a WSL and the Windows around it, users of a container."""

from __future__ import annotations

from interlock.hosts.machine import Machine


def machines(machine: Machine) -> list[Machine]:
    """This one first."""
    from interlock.hosts.platforms import home_candidates

    return home_candidates(machine)


def name(machine: Machine) -> str:
    """How it is called in a report and after `--machine`: `here`'s own kind, or `windows:NAME` for a neighbour."""
    if machine.surrounding == "windows-of-wsl":
        return f"windows:{machine.paths.basename(machine.home)}"
    if machine.surrounding == "wsl-of-windows":
        return f"wsl:{machine.environ.get('WSL_DISTRO_NAME', 'default')}"
    if machine.surrounding == "container" and not machine.environ:
        return f"container:{machine.paths.basename(machine.home)}"
    return machine.surrounding if machine.surrounding != "native" else machine.platform
