"""Plugins of Codex: `[plugins."NAME@MARKETPLACE"]` in config.toml, and folders `plugins/cache/MARKETPLACE/NAME/VERSION`.

Observed with 0.171.0: a plugin without such a table is not loaded; without `enabled` it is on; of several version folders
`local` is loaded, else the highest version by number (1.10.0 before 1.9.0).
"""

from __future__ import annotations

import re

from interlock.hosts.declaration import Problem, Spot
from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import files
from interlock.hosts.plugins.package import Layout, fill, place
from interlock.hosts.plugins.plugin import Copy, Plugin

LAYOUT = Layout(
    manifests=(".codex-plugin/plugin.json", ".claude-plugin/plugin.json", "plugin.json"),
    servers=(".mcp.json",),
    hooks=("hooks/hooks.json",),
    place=place("<plugin>/.mcp.json", Fact(True, "OS", "0.171.0"), rank=5),
    roots=("${PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}"),
    joined=False,
)


def found(machine: Machine) -> list[Plugin]:
    home = machine.environ.get("CODEX_HOME") or machine.user(".codex")
    config = machine.join(home, "config.toml")
    loaded = files.document(machine, config, "toml")
    tables = files.inner(loaded.value if loaded else None, "plugins")
    markets = files.inner(loaded.value if loaded else None, "marketplaces")
    cache = machine.join(home, "plugins", "cache")
    ids = dict.fromkeys(tables)
    ids |= dict.fromkeys(
        f"{name}@{market}"
        for market in files.folders(machine, cache)
        for name in files.folders(machine, machine.join(cache, market))
    )
    plugins = []
    for id in ids:
        name, _, market = id.partition("@")
        versions = sorted(files.folders(machine, machine.join(cache, market, name)), key=_order)
        plugin = Plugin(kind="codex", host="codex", name=name, origin=_origin(market, markets))
        if id in tables:
            said = files.inner(tables, id).get("enabled")
            steps = ("plugins", id, "enabled") if said is not None else ("plugins", id)
            plugin.enabled = said is not False
            plugin.decided_by, plugin.decided = files.spot(config, loaded, *steps), f'[plugins."{id}"]'
        else:
            plugin.enabled, plugin.decided_by = False, Spot(config)
            plugin.decided = f'there is no [plugins."{id}"] in config.toml'
        if versions:
            plugin.folder = machine.join(cache, market, name, versions[-1])
            plugin.recorded_version = versions[-1]
            fill(plugin, machine, LAYOUT)
            for version in versions[:-1]:
                why = "a folder `local` is there" if versions[-1] == "local" else f"{versions[-1]} is higher"
                plugin.others.append(Copy(version, machine.join(cache, market, name, version), why))
        else:
            plugin.problems.append(
                Problem("plugin-missing", "warning", f"`{id}` is in config.toml and not installed here.",
                        spot=plugin.decided_by, todo=f"codex plugin add {id}")
            )  # fmt: skip
        plugins.append(plugin)
    return plugins


def _origin(market: str, markets: dict[str, object]) -> str:
    where = files.text_of(files.inner(markets, market).get("source"))
    return f"{market} ({where})" if where else market


def _order(version: str) -> tuple[bool, list[int], bool, str]:
    """As semantic versions; one before its release comes first, and `local` last."""
    numbers, _, before = version.partition("+")[0].partition("-")
    parts = [int(part) for part in re.findall(r"\d+", numbers)] if re.match(r"\d+(\.\d+)*\Z", numbers) else []
    return version == "local", parts, not before, version
