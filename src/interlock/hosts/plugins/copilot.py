"""Plugins of Copilot CLI: `enabledPlugins` in settings.json, `installedPlugins` in config.json.

Observed with 1.0.102: of a marketplace that is a folder of this machine, plugins are loaded from there and never copied;
others lie in `installed-plugins/MARKETPLACE/NAME` (`_direct` without a marketplace). Its formats are those of Claude Code.
"""

from __future__ import annotations

from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import files
from interlock.hosts.plugins.package import Layout, fill, place
from interlock.hosts.plugins.plugin import Plugin

LAYOUT = Layout(
    manifests=("plugin.json", ".github/plugin/plugin.json", ".claude-plugin/plugin.json"),
    servers=(".mcp.json", "mcp.json", ".github/mcp.json"),
    hooks=("hooks.json", "hooks/hooks.json"),
    place=place("<plugin>/.mcp.json", Fact(True, "O", "1.0.102"), rank=5),
    roots=("${CLAUDE_PLUGIN_ROOT}", "${COPILOT_PLUGIN_ROOT}", "${PLUGIN_ROOT}"),
)


def found(machine: Machine) -> list[Plugin]:
    home = machine.environ.get("COPILOT_HOME") or machine.user(".copilot")
    settings, config = machine.join(home, "settings.json"), machine.join(home, "config.json")
    said, record = files.document(machine, settings), files.document(machine, config)
    switches = files.inner(said.value if said else None, "enabledPlugins")
    markets = files.inner(said.value if said else None, "extraKnownMarketplaces")
    plugins: list[Plugin] = []
    listed = files.inner(record.value if record else None).get("installedPlugins")
    for index, each in enumerate(listed if isinstance(listed, list) else []):
        if not isinstance(each, dict):
            continue
        name, market = files.text_of(each.get("name")), files.text_of(each.get("marketplace"))
        plugin = Plugin(
            kind="copilot", host="copilot-cli", name=name, origin=market or _direct(each),
            folder=files.text_of(each.get("cache_path")), recorded_version=files.text_of(each.get("version")),
            enabled=each.get("enabled") is not False, decided="`enabled` in config.json",
            decided_by=files.spot(config, record, "installedPlugins", index),
        )  # fmt: skip
        id = f"{name}@{market}"
        if market and id in switches:
            plugin.enabled = switches[id] is not False
            plugin.decided, plugin.decided_by = "`enabledPlugins`", files.spot(settings, said, "enabledPlugins", id)
        plugins.append(fill(plugin, machine, LAYOUT))
    for id, on in switches.items():
        name, _, market = id.partition("@")
        if any(each.name == name and each.origin == market for each in plugins):
            continue
        source = files.inner(markets, market, "source")
        top = files.text_of(source.get("path"))
        plugin = Plugin(
            kind="copilot", host="copilot-cli", name=name, origin=f"{market} ({top})" if top else market,
            folder=_live(machine, top, name) if top else "", enabled=on is not False, decided="`enabledPlugins`",
            decided_by=files.spot(settings, said, "enabledPlugins", id),
        )  # fmt: skip
        plugins.append(fill(plugin, machine, LAYOUT) if plugin.folder else plugin)
    return plugins


def _direct(installed: dict[str, object]) -> str:
    source = files.inner(installed, "source")
    return next((files.text_of(source.get(key)) for key in ("path", "repo", "url") if source.get(key)), "")


def _live(machine: Machine, top: str, name: str) -> str:
    for catalogue in (".github/plugin/marketplace.json", ".claude-plugin/marketplace.json", "marketplace.json"):
        listed = files.table(machine, machine.join(top, *catalogue.split("/"))).get("plugins")
        for each in listed if isinstance(listed, list) else []:
            if isinstance(each, dict) and each.get("name") == name and isinstance(each.get("source"), str):
                folder: str = machine.paths.normpath(machine.join(top, *str(each["source"]).split("/")))
                return folder
    return ""
