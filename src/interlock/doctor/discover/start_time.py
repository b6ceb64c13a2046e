"""What the time before the first call goes into: the process, what fetches it, its own imports, or the handshake."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import shown
from interlock.doctor.starting import Started, Target
from interlock.hosts.checks.launching import Package, name_of, package
from interlock.hosts.machine import Machine
from interlock.model.stage import Stage

CHECK = Check("start-time", Stage.DISCOVER)
SLOW = 2.0
"""Seconds from which a start is worth mending: hosts wait for all of it before the first answer."""


async def check(examination: Examination) -> list[Finding]:
    findings = []
    for started in await examination.all_started():
        if started.spawn is not None and started.handshake is not None:
            findings.append(_of(started, examination.machine))
    return findings


def _of(started: Started, machine: Machine) -> Finding:
    target = started.target
    assert started.spawn is not None
    assert started.handshake is not None
    total = started.spawn + started.handshake
    listing = f", its list of tools {started.listing:.1f} s" if started.listing is not None else ""
    parts = f"the process {started.spawn:.1f} s, up to the answered handshake {started.handshake:.1f} s{listing}"
    if total < SLOW:
        return CHECK.found(
            "ok",
            f"`{target.name}` is there after {total:.1f} s ({parts})",
            target.where,
            server=target.name,
            host=target.host,
        )
    why, todo = _reason(started, machine)
    return CHECK.found(
        "problem", f"`{target.name}` takes {total:.1f} s to start; the time goes in DISCOVER: {parts}", target.where, why, todo,
        server=target.name, host=target.host,
    )  # fmt: skip


def _reason(started: Started, machine: Machine) -> tuple[str, str]:
    target = started.target
    fetched = package(target.program)
    if fetched is not None:
        return _fetched(target, fetched, machine)
    if not target.program:
        return (
            "That is the server's connection and its first answer.",
            f"`interlock doctor bridge {shlex.quote(target.name)}` shows each step of the connection.",
        )
    if started.spawn is not None and started.handshake is not None and started.spawn > started.handshake:
        return (
            "The system takes that long to start the program.",
            "Look at what checks programs at their start on this machine.",
        )
    program = name_of(target.program[0])
    if program.startswith("python") or program == "uv":
        words = shlex.join([*target.program[:1], "-X", "importtime", *target.program[1:]])
        return (
            "The process is there at once, and what it does before it answers is its own: imports, most often.",
            f"See which: `{shown(words, 300)} < /dev/null`. Keeping it running saves the next clients all of it: "
            "`start: always` in its manifest entry.",
        )
    return (
        "The process is there at once, and what it does before it answers is its own.",
        "Let it answer the handshake first and do its work after. Keeping it running saves the next clients all of it: "
        "`start: always` in its manifest entry.",
    )


def _fetched(target: Target, fetched: Package, machine: Machine) -> tuple[str, str]:
    name = fetched.name + (f"@{fetched.version}" if fetched.version and fetched.runner == "npm" else "")
    if fetched.runner == "npm":
        kept = _in_npx_cache(fetched.name, machine)
        why = (
            f"`{fetched.tool}` looks up `{name}` at each start" if kept and not fetched.pinned
            else f"`{fetched.tool}` starts it from its cache" if kept
            else f"`{name}` is not in npm's cache here, so `{fetched.tool}` fetches it first"
        )  # fmt: skip
        return (
            f"{why}; the server itself runs only after that.",
            f"`npm install --global {shlex.quote(name)}`, and let the entry start the program that this installs.",
        )
    if fetched.runner == "python":
        pinned = f"{fetched.name}=={fetched.version}" if fetched.version else fetched.name
        return (
            f"`{fetched.tool}` makes an environment for `{name}` first, and looks for a newer one where no version is pinned.",
            f"`uv tool install {shlex.quote(pinned)}`, and let the entry start the program that this installs.",
        )
    return f"`{fetched.tool}` fetches or starts the image `{name}` first.", f"`{fetched.tool} pull {shlex.quote(name)}`"


def _in_npx_cache(name: str, machine: Machine) -> bool:
    """Where npx keeps what it has run: one folder a package below `_npx`."""
    cache = machine.environ.get("npm_config_cache") or (
        machine.local_application("npm-cache") if machine.platform == "windows" else machine.user(".npm")
    )
    folder = Path(machine.real(machine.join(cache, "_npx")))
    try:
        kept = os.listdir(folder)
    except OSError:
        return False
    return any((folder / each / "node_modules" / name / "package.json").is_file() for each in kept)
