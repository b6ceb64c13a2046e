"""What a host makes of the servers that its plugins bring, next to those of its own files."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.hosts.declaration import Decision, Declaration, Problem
from interlock.hosts.entry import Entry
from interlock.hosts.plugins import files
from interlock.hosts.plugins.plugin import Plugin
from interlock.hosts.reading import Reading

_OWN_WINS = frozenset(("codex", "gemini-cli", "qwen-code", "copilot-cli"))
"""An entry of the same name in the host's own files takes the place of the plugin's."""


def join(reading: Reading, plugins: Iterable[Plugin]) -> None:
    """Adds the servers of this host's plugins to its declarations, each with its state."""
    host = reading.adapter.id
    brought = []
    for plugin in plugins:
        if plugin.host == host:
            plugin.servers = [_already(reading, plugin, each) or each for each in plugin.servers]
            brought += [
                (plugin, each) for each in plugin.servers if all(each is not own for own in reading.declarations)
            ]
    own = [each for each in reading.declarations if each.state != "never-read" and each.server is not None]
    for plugin, each in brought:
        if each.state == "effective" and host == "codex":
            _codex_switch(reading, plugin, each)
        if each.state == "effective":
            _against(own, each, host)
    _own_rules(reading, [each for _, each in brought])
    _twice(reading, [each for _, each in brought])
    reading.declarations += [each for _, each in brought]


def _twice(reading: Reading, brought: list[Declaration]) -> None:
    """Two plugins, of two marketplaces perhaps, whose servers have one name: what a host does then is not known of any."""
    running = [each for each in brought if each.state == "effective"]
    for each in running:
        other = next((one for one in running if one is not each and one.server == each.server), None)
        if other is not None:
            each.problems.append(
                Problem(
                    "precedence-unknown", "warning", f"`{other.source}` brings a server of the same name ({other.spot}), and it is "
                    f"not known which of the two {reading.adapter.label} takes.", spot=each.spot,
                    todo="Keep one of the two plugins.",
                )
            )  # fmt: skip


def _already(reading: Reading, plugin: Plugin, each: Declaration) -> Declaration | None:
    """The same entry of the same file, where the adapter has found it by itself: it is told what the plugin knows."""
    for other in reading.declarations:
        if other.file == each.file and other.server == each.server and other.scope == each.scope:
            other.source = plugin.source
            if other.state == "effective":
                other.state, other.decided_by, other.entry = each.state, each.decided_by, each.entry
            return other
    return None


def _against(own: list[Declaration], each: Declaration, host: str) -> None:
    for other in own:
        if host in _OWN_WINS and other.server == each.server:
            _shadowed(each, other, f'{other.scope} entry "{other.server}"')
            return
        if host == "claude-code" and other.state == "effective" and _same_endpoint(other.runs, each.runs):
            _shadowed(each, other, f'{other.scope} entry "{other.server}" reaches the same server')
            return


def _shadowed(each: Declaration, other: Declaration, by: str) -> None:
    off = other.state == "disabled"
    each.state = "disabled" if off else "shadowed"
    each.decided_by = Decision("other-source", other.spot, by + (", which is off" if off else ""))
    each.shadowed_fields = dict.fromkeys(each.raw, other.spot)


def _same_endpoint(one: Entry | None, two: Entry | None) -> bool:
    if one is None or two is None:
        return False
    return one.command == two.command if two.command else one.url == two.url and two.url is not None


def _codex_switch(reading: Reading, plugin: Plugin, each: Declaration) -> None:
    """`[plugins."p@m".mcp_servers.s] enabled = false`."""
    machine = reading.machine
    home = machine.environ.get("CODEX_HOME") or machine.user(".codex")
    config = machine.join(home, "config.toml")
    loaded = reading.other(config, "toml")
    id = f"{plugin.name}@{plugin.origin.partition(' ')[0]}"
    steps = ("plugins", id, "mcp_servers", str(each.server))
    if files.inner(loaded.value if loaded else None, *steps).get("enabled") is False:
        each.state = "disabled"
        each.decided_by = Decision("list-off", files.spot(config, loaded, *steps, "enabled"), "the plugin's own table")


def _own_rules(reading: Reading, brought: list[Declaration]) -> None:
    """Trust, policy and lists of disabled servers hold for plugins too."""
    apart = Reading(reading.adapter, reading.machine, reading.seen, [], list[Problem](), reading._others)
    for rule in (reading.adapter.admit, reading.adapter.judge):
        if rule is not None:
            apart.declarations = [each for each in brought if each.state == "effective"]
            rule(apart)
