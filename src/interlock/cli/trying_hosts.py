"""Trying a host's Interlock entry: started as the host would start it, until every server's tools are listed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from interlock.catalog.naming import exposed_name, profile_for
from interlock.install.talking import Message, Talk, start, tool_names
from interlock.model.names import CanonicalName


@dataclass(frozen=True, slots=True)
class Tried:
    tools: Mapping[str, int]
    """How many tools each expected server shows; one that shows none is missing."""
    trouble: str | None = None
    """Why the entry as a whole does not work."""
    said: str = ""
    """What it wrote on standard error."""


def attempt(
    command: Sequence[str], environ: Mapping[str, str], folder: str, host: str, servers: Sequence[str],
    seconds: float,
) -> Tried:  # fmt: skip
    """Start it, and list until each of these servers has shown a tool or the time is over. Never raises."""
    try:
        process = start(command, environ, folder)
    except OSError as error:
        return Tried({}, f"{command[0]}: {error.strerror or error}")
    talk = Talk(process, time.monotonic() + seconds)
    try:
        return _until_all(talk, host, servers)
    finally:
        talk.leave()


def shows_tools(command: Sequence[str], environ: Mapping[str, str], folder: str, seconds: float) -> bool:
    """Start a server by itself: whether it lists a tool in that time. Never raises."""
    try:
        process = start(command, environ, folder)
    except (OSError, ValueError):
        return False
    talk = Talk(process, time.monotonic() + seconds)
    try:
        begun = talk.begin("interlock-adopt")
        listed = talk.ask(2, "tools/list", {}) if begun is not None and "result" in begun else None
        return listed is not None and bool(tool_names(listed))
    finally:
        talk.leave()


def _until_all(talk: Talk, host: str, servers: Sequence[str]) -> Tried:
    begun = talk.begin(f"interlock-adopt-{host}")
    if begun is None or "result" not in begun:
        return Tried({}, "it gave no answer to `initialize`", talk.said())
    counted: Mapping[str, int] = {}
    number = 2
    while True:
        listed = talk.ask(number, "tools/list", {})
        if listed is None:
            return Tried(counted, None if counted else "it gave no answer to `tools/list`", talk.said())
        counted = _counted(listed, host, servers)
        if all(counted.get(server) for server in servers) or not _changed(talk):
            return Tried(counted, None, talk.said())
        number += 1


def _changed(talk: Talk) -> bool:
    """Wait until it says that its list is another one; False where it never does."""
    return talk.wait(lambda message: message.get("method") == "notifications/tools/list_changed") is not None


def _counted(listed: Message, host: str, servers: Sequence[str]) -> dict[str, int]:
    """Tools of each server, told by the beginning of their names."""
    names = tool_names(listed)
    profile = profile_for(host)
    counted: dict[str, int] = {}
    for server in servers:
        key = exposed_name(CanonicalName(server, "x"), profile).partition(profile.separator)[0]
        counted[server] = sum(name.partition(profile.separator)[0] == key for name in names)
    return counted
