"""Plugins of Claude Code: `installed_plugins.json` says what is installed, `enabledPlugins` in the settings what is on.

Observed with 2.1.332: the version in `installed_plugins.json` is the one loaded, older ones stay in the cache with a file
`.orphaned_at`; of a marketplace that is a folder of this machine the folder itself is loaded and not the cache; where that
folder is gone the plugin is not loaded; a project's `enabledPlugins` wins over the user's. A folder of skills that holds a
plugin's manifest is loaded as NAME@skills-dir without being installed; a project's only where the project is trusted, and
its servers wait for approval.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.hosts.declaration import Decision, Problem, Spot
from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import files
from interlock.hosts.plugins.package import Layout, fill, place
from interlock.hosts.plugins.plugin import Copy, Plugin

LAYOUT = Layout(
    manifests=(".claude-plugin/plugin.json",),
    servers=(".mcp.json",),
    hooks=("hooks/hooks.json",),
    place=place("<plugin>/.mcp.json", Fact(True, "O", "2.1.332"), rank=5),
    roots=("${CLAUDE_PLUGIN_ROOT}",),
    server_name="plugin:{plugin}:{server}",
)


def found(machine: Machine) -> list[Plugin]:
    home = machine.environ.get("CLAUDE_CONFIG_DIR") or machine.user(".claude")
    base = machine.environ.get("CLAUDE_CODE_PLUGIN_CACHE_DIR") or machine.join(home, "plugins")
    record = machine.join(base, "installed_plugins.json")
    switches = _switches(machine, home)
    markets = files.table(machine, machine.join(base, "known_marketplaces.json"))
    plugins = []
    for id, where, installed in _installed(machine, record):
        name, _, market = id.partition("@")
        scope = files.text_of(installed.get("scope")) or "user"
        project = files.text_of(installed.get("projectPath"))
        if project and machine.repository() != project and project not in machine.upward():
            continue
        plugin = Plugin(
            kind="claude-code", host="claude-code", name=name, origin=_origin(market, markets),
            recorded_version=files.text_of(installed.get("version")),
            folder=files.text_of(installed.get("installPath")),
        )  # fmt: skip
        plugin.enabled, plugin.decided_by, plugin.decided = switches.get(
            id, (False, where, f"installed for {scope}, and in no `enabledPlugins`")
        )
        _locate(plugin, machine, markets, market)
        plugins.append(fill(plugin, machine, LAYOUT) if plugin.folder else plugin)
        _copies(
            plugins[-1], machine, machine.join(base, "cache", market, name), files.text_of(installed.get("installPath"))
        )
    for id, (on, spot, words) in switches.items():
        if on and all(f"{each.name}@{each.origin.partition(' ')[0]}" != id for each in plugins) and "@" in id:
            name, _, market = id.partition("@")
            if market in ("builtin", "skills-dir"):
                continue
            missing = Problem(
                "plugin-missing", "warning", f"`{id}` is switched on and not installed here.", spot=spot,
                todo=f"claude plugin install {id}",
            )  # fmt: skip
            plugins.append(
                Plugin(kind="claude-code", host="claude-code", name=name, origin=market, enabled=True,
                       decided_by=spot, decided=words, problems=[missing])
            )  # fmt: skip
    return plugins + list(_skills_dir(machine, home, switches))


def _skills_dir(machine: Machine, home: str, switches: dict[str, tuple[bool, Spot, str]]) -> Iterator[Plugin]:
    top = machine.repository() or machine.folder
    main = machine.join(home if machine.environ.get("CLAUDE_CONFIG_DIR") else machine.home, ".claude.json")
    trusted = files.inner(files.table(machine, main), "projects", top).get("hasTrustDialogAccepted") is True
    for base, project in ((machine.join(home, "skills"), False), (machine.join(top, ".claude", "skills"), True)):
        for name in files.folders(machine, base):
            path = machine.join(base, name, ".claude-plugin", "plugin.json")
            if not files.is_file(machine, path):
                continue
            plugin = Plugin(
                kind="claude-code", host="claude-code", name=files.text_of(files.table(machine, path).get("name")) or name,
                origin="skills-dir", folder=machine.join(base, name),
            )  # fmt: skip
            plugin.enabled, plugin.decided_by, plugin.decided = switches.get(
                f"{plugin.name}@skills-dir", (True, Spot(path), "a folder of skills with a plugin's manifest is loaded")
            )
            if project and not trusted:
                plugin.enabled, plugin.decided_by, plugin.decided = False, Spot(main), "the project is not trusted"
            fill(plugin, machine, LAYOUT)
            for server in plugin.servers:
                if project and server.state == "effective":
                    server.state = "blocked"
                    server.decided_by = Decision("not-approved", server.spot, "no approval of this project's plugin")
            yield plugin


def _installed(machine: Machine, record: str) -> Iterator[tuple[str, Spot, dict[str, object]]]:
    """Version 1 of the record has one object for a plugin, version 2 a list of them."""
    loaded = files.document(machine, record)
    for id, value in files.inner(loaded.value if loaded else None, "plugins").items():
        for index, installed in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(installed, dict):
                steps = ("plugins", id, index) if isinstance(value, list) else ("plugins", id)
                yield id, files.spot(record, loaded, *steps), installed


def _switches(machine: Machine, home: str) -> dict[str, tuple[bool, Spot, str]]:
    """What `enabledPlugins` says of each plugin, from the weakest settings to the strongest."""
    top = machine.repository() or machine.folder
    managed = {
        "windows": "C:\\Program Files\\ClaudeCode\\managed-settings.json",
        "macos": "/Library/Application Support/ClaudeCode/managed-settings.json",
    }.get(machine.platform, "/etc/claude-code/managed-settings.json")
    switches: dict[str, tuple[bool, Spot, str]] = {}
    for path, words in (
        (machine.join(home, "settings.json"), "user settings"),
        (machine.join(top, ".claude", "settings.json"), "project settings"),
        (machine.join(top, ".claude", "settings.local.json"), "local settings"),
        (managed, "managed settings"),
    ):
        loaded = files.document(machine, path)
        for id, value in files.inner(loaded.value if loaded else None, "enabledPlugins").items():
            spot = files.spot(path, loaded, "enabledPlugins", id)
            switches[id] = (value is not False and value is not None, spot, f"`enabledPlugins` in the {words}")
    return switches


def _origin(market: str, markets: dict[str, object]) -> str:
    source = files.inner(markets, market, "source")
    where = next((files.text_of(source.get(name)) for name in ("repo", "url", "path") if source.get(name)), "")
    return f"{market} ({where})" if where else market


def _locate(plugin: Plugin, machine: Machine, markets: dict[str, object], market: str) -> None:
    """Of a marketplace that is a folder, the plugin's folder in it is loaded."""
    source = files.inner(markets, market, "source")
    if source.get("source") != "directory":
        if plugin.folder and not files.is_folder(machine, plugin.folder):
            plugin.problems.append(
                Problem("plugin-missing", "problem", "The folder that it was installed into is gone.",
                        spot=Spot(plugin.folder), todo="Install the plugin again.")
            )  # fmt: skip
        return
    top = files.text_of(source.get("path"))
    catalogue = machine.join(top, ".claude-plugin", "marketplace.json")
    listed = files.table(machine, catalogue).get("plugins")
    if not isinstance(listed, list):
        plugin.problems.append(
            Problem("plugin-missing", "problem", f"Its marketplace `{market}` is a folder that is gone: it is not loaded.",
                    spot=Spot(catalogue), todo=f"claude plugin marketplace remove {market}, and add it where it is now.")
        )  # fmt: skip
        plugin.enabled = False
        plugin.decided = "its marketplace cannot be read"
        return
    for each in listed:
        if isinstance(each, dict) and each.get("name") == plugin.name and isinstance(each.get("source"), str):
            plugin.folder = machine.paths.normpath(machine.join(top, *str(each["source"]).split("/")))


def _copies(plugin: Plugin, machine: Machine, cache: str, installed: str) -> None:
    for version in files.folders(machine, cache):
        folder = machine.join(cache, version)
        if folder == plugin.folder:
            continue
        if folder == installed:
            why = "its marketplace is a folder of this machine, and that is loaded in place of the cache"
        elif files.is_file(machine, machine.join(folder, ".orphaned_at")):
            why = "replaced by an update; it will be removed. A session that was started before still runs it"
        else:
            why = "`installed_plugins.json` names another version"
        plugin.others.append(Copy(version, folder, why))
