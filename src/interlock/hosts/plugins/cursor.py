"""Plugins of Cursor: `.cursor-plugin/plugin.json`, or an Agent Plugin, in `~/.cursor/plugins`.

`local/NAME` is documented. `cache/MARKETPLACE/NAME/COMMIT` is told by third parties. Whether a plugin is switched on
stands in the application's own state, which no file tells: so it is unknown.
"""

from __future__ import annotations

from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import files
from interlock.hosts.plugins.package import Layout, fill, manifest, place
from interlock.hosts.plugins.plugin import Copy, Plugin

LAYOUT = Layout(
    manifests=(".cursor-plugin/plugin.json", "plugin.json"),
    servers=("mcp.json",),
    hooks=("hooks/hooks.json",),
    place=place("~/.cursor/plugins/local/<plugin>/mcp.json", Fact(True, "D"), rank=5),
    roots=("${CURSOR_PLUGIN_ROOT}", "${PLUGIN_ROOT}"),
    bare=False,
)
_STATE = "Cursor keeps the switch in its own state"


def found(machine: Machine) -> list[Plugin]:
    base = machine.user(".cursor", "plugins")
    plugins = []
    for name in files.folders(machine, machine.join(base, "local")):
        folder = machine.join(base, "local", name)
        if manifest(machine, folder, LAYOUT)[0]:
            plugins.append(_plugin(machine, name, folder, "local folder"))
    for market in files.folders(machine, machine.join(base, "cache")):
        for name in files.folders(machine, machine.join(base, "cache", market)):
            top = machine.join(base, "cache", market, name)
            versions = [
                each for each in files.folders(machine, top) if manifest(machine, machine.join(top, each), LAYOUT)[0]
            ]
            if len(versions) == 1:
                plugins.append(_plugin(machine, name, machine.join(top, versions[0]), market))
            elif versions:
                plugin = Plugin(kind="cursor", host="cursor", name=name, origin=market, decided=_STATE)
                plugin.others = [
                    Copy(each, machine.join(top, each), "which copy Cursor loads is unknown") for each in versions
                ]
                plugins.append(plugin)
    return plugins


def _plugin(machine: Machine, name: str, folder: str, origin: str) -> Plugin:
    plugin = Plugin(kind="cursor", host="cursor", name=name, folder=folder, origin=origin, decided=_STATE)
    path, loaded, _ = manifest(machine, folder, LAYOUT)
    if loaded is not None:
        plugin.name = files.text_of(files.inner(loaded.value).get("name")) or name
    if path and not path.replace("\\", "/").endswith(".cursor-plugin/plugin.json"):
        plugin.kind = "agent-plugin"
    return fill(plugin, machine, LAYOUT)
