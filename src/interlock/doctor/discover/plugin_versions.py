"""Which version of a plugin a host loads, which others lie beside it, and whether an older one still runs."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Sequence

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.processes import Process
from interlock.doctor.shown import listed, shown
from interlock.hosts.machine import Machine
from interlock.hosts.plugins.plugin import Copy, Plugin
from interlock.model.stage import Stage

CHECK = Check("plugin-version", Stage.DISCOVER)


async def check(examination: Examination) -> list[Finding]:
    from interlock.hosts.plugins.finding import found

    hosts = [each.adapter.id for each in (await examination.inventory()).readings if each.adapter.plugins]
    plugins = await asyncio.to_thread(found, examination.machine, hosts)
    running = await examination.processes()
    findings: list[Finding] = []
    for plugin in plugins:
        names = (plugin.name, plugin.source, *(each.server for each in plugin.servers))
        if plugin.enabled is False or examination.server not in (None, *names):
            continue
        findings += _troubles(plugin)
        findings += _versions(plugin)
        findings += _processes(plugin, running, examination.machine)
    return findings


def _name(plugin: Plugin) -> str:
    return f"the plugin `{shown(plugin.name, 80)}`"


def _troubles(plugin: Plugin) -> Iterator[Finding]:
    """What the files of the plugin themselves say."""
    for each in plugin.problems:
        yield CHECK.found(
            each.severity, f"{_name(plugin)} of {plugin.host}: {shown(each.seen, 300)}", each.spot or plugin.folder,
            shown(each.why, 300),
            shown(each.todo, 300), host=plugin.host, code=each.code,
        )  # fmt: skip


def _versions(plugin: Plugin) -> Iterator[Finding]:
    loaded = plugin.version or "without a version"
    written = plugin.recorded_version
    if written and plugin.version and _order(written) != _order(plugin.version):
        older = _order(plugin.version) < _order(written)
        yield CHECK.found(
            "problem" if older else "warning",
            f"{plugin.host} has version {shown(written, 40)} of {_name(plugin)} written down and loads {shown(loaded, 40)}",
            plugin.decided_by or plugin.folder, f"The folder {shown(plugin.folder)} is what counts, and it says {shown(loaded, 40)}.",
            "Update or install the plugin anew in the host, and start the host anew.", host=plugin.host,
        )  # fmt: skip
    newer = [each for each in plugin.others if plugin.version and _order(each.version) > _order(plugin.version)]
    if newer:
        newest = max(newer, key=lambda each: _order(each.version))
        yield CHECK.found(
            "problem", f"{plugin.host} loads version {shown(loaded, 40)} of {_name(plugin)}, and "
            f"{shown(newest.version, 40)} lies beside it", plugin.folder,
            f"The newer one, in {newest.folder}, was fetched and is not loaded{f': {shown(newest.why)}' if newest.why else ''}.",
            "Update or install the plugin anew in the host, and start the host anew.", host=plugin.host,
        )  # fmt: skip
    elif plugin.others:
        kept = listed(each.version or "one without a version" for each in plugin.others)
        yield CHECK.found(
            "note", f"{plugin.host} loads version {shown(loaded, 40)} of {_name(plugin)} and keeps {kept}", plugin.folder,
            host=plugin.host,
        )  # fmt: skip


def _processes(plugin: Plugin, running: Sequence[Process], machine: Machine) -> Iterator[Finding]:
    for other in plugin.others:
        pids = _of_folder(other, running, machine)
        if pids:
            yield CHECK.found(
                "problem", f"version {shown(other.version or '?', 40)} of {_name(plugin)} still runs (process {listed(pids)}), and "
                f"{plugin.host} has {shown(plugin.version or '?', 40)}", other.folder,
                "A server that was started before the update goes on as it was.",
                "Close the host and start it anew: its servers end with it.", host=plugin.host, code="plugin-running",
            )  # fmt: skip


def _of_folder(other: Copy, running: Sequence[Process], machine: Machine) -> list[str]:
    folder = machine.real(other.folder).rstrip(os.sep) + os.sep
    return [str(process.pid) for process in running if any(word.startswith(folder) for word in process.words)]


def _order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Numbers as numbers; what has a word after it (`2.0.0-rc1`) comes before what has not."""
    parts = re.findall(r"\d+|[A-Za-z]+", version.partition("+")[0])
    return (*((2, int(part), "") if part.isdigit() else (0, 0, part) for part in parts), (1, 0, ""))
