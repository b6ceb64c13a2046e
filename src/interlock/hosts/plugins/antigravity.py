"""Plugins of Google Antigravity: a folder with `plugin.json`, in `.agents/plugins` or `~/.gemini/config/plugins`.

Documented (antigravity.google/docs/plugins). Whether one is switched on, and where that is written, is unknown; trying
`agy plugin disable NAME` and comparing the files below `~/.gemini` would tell.
"""

from __future__ import annotations

from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import files
from interlock.hosts.plugins.package import Layout, fill, manifest, place
from interlock.hosts.plugins.plugin import Plugin

LAYOUT = Layout(
    manifests=("plugin.json", ".antigravity-plugin/plugin.json"),
    servers=("mcp_config.json",),
    hooks=("hooks.json",),
    place=place("<plugin>/mcp_config.json", Fact(True, "DT"), rank=5),
    bare=False,
)


def found(machine: Machine) -> list[Plugin]:
    places = [
        (machine.user(".gemini", "config", "plugins"), "user"),
        (machine.user(".gemini", "antigravity-cli", "plugins"), "user, as agy installs them"),
    ]
    for folder in machine.project_folders():
        places += [(machine.join(folder, name, "plugins"), "project") for name in (".agents", "_agents")]
    plugins = []
    for base, origin in places:
        for name in files.folders(machine, base):
            folder = machine.join(base, name)
            path, loaded, _ = manifest(machine, folder, LAYOUT)
            if path:
                said = files.text_of(files.inner(loaded.value if loaded else None).get("name"))
                plugin = Plugin(
                    kind="antigravity", host="antigravity", name=said or name, folder=folder, origin=origin,
                    decided="where Antigravity keeps the switch is unknown",
                )  # fmt: skip
                plugins.append(fill(plugin, machine, LAYOUT))
    return plugins
