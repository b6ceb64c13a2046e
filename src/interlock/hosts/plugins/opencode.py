"""Plugins of OpenCode: JavaScript that it loads, by files in `plugin/` and `plugins/`, and by `plugin` in its configuration.

They bring hooks in code, so what they do cannot be told from a file. Version 1 reads `plugin` (a list of packages, each a
text or a text with options), version 2 `plugins` too.
"""

from __future__ import annotations

from interlock.hosts.declaration import Spot
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import files
from interlock.hosts.plugins.plugin import Plugin


def found(machine: Machine) -> list[Plugin]:
    user = machine.config("opencode")
    bases = [user, machine.user(".opencode")]
    bases += [machine.join(folder, ".opencode") for folder in machine.project_folders()]
    plugins: dict[str, Plugin] = {}
    for base in dict.fromkeys(bases):
        for inner in ("plugin", "plugins"):
            for name in files.members(machine, machine.join(base, inner)):
                path = machine.join(base, inner, name)
                if name.endswith((".js", ".ts")) and files.is_file(machine, path):
                    plugins[path] = Plugin(
                        kind="opencode", host="opencode", name=name.rpartition(".")[0], folder=path, enabled=True,
                        origin=machine.join(base, inner), decided="it lies in a folder that is loaded",
                        decided_by=Spot(path),
                    )  # fmt: skip
    configs = [machine.join(base, f"opencode.{ending}") for base in bases for ending in ("json", "jsonc")]
    configs += [
        machine.join(folder, f"opencode.{ending}")
        for folder in machine.project_folders()
        for ending in ("json", "jsonc")
    ]
    for config in dict.fromkeys(configs):
        loaded = files.document(machine, config)
        for key in ("plugin", "plugins"):
            listed = files.inner(loaded.value if loaded else None).get(key)
            for index, item in enumerate(listed if isinstance(listed, list) else []):
                package = item[0] if isinstance(item, list) and item else item
                if isinstance(item, dict):
                    package = item.get("package")
                if isinstance(package, str) and package:
                    spot = files.spot(config, loaded, key, index)
                    plugins.setdefault(package, _listed(machine, package, config, spot, key))
    return list(plugins.values())


def _listed(machine: Machine, package: str, config: str, spot: Spot, key: str) -> Plugin:
    name, version, folder = package, "", ""
    if package.startswith("file://"):
        folder = package.removeprefix("file://")
    elif package.startswith((".", "/", "~")):
        folder = machine.paths.normpath(machine.join(machine.paths.dirname(config), package))
    else:
        at = package.rfind("@")
        if at > 0:
            name, version = package[:at], package[at + 1 :]
    return Plugin(
        kind="opencode", host="opencode", name=name, version=version, folder=folder, enabled=True,
        origin="folder" if folder else "npm", decided=f"`{key}` in the configuration", decided_by=spot,
    )  # fmt: skip
