"""What lies in a plugin's folder: its manifest, the servers, hooks and skills it brings. One reader for all kinds.

A kind says in a Layout what its files are called; everything else is alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from interlock.hosts import registry
from interlock.hosts.declaration import Decision, Declaration, Problem, Spot
from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine
from interlock.hosts.place import Format, Place, Scope
from interlock.hosts.plugins import files, hooks, skills
from interlock.hosts.plugins.plugin import Plugin
from interlock.hosts.reading import BadEntry
from interlock.hosts.text.document import Document, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    manifests: tuple[str, ...]
    """The first that exists counts."""
    servers: tuple[str, ...]
    """Files of servers that are found without being named."""
    hooks: tuple[str, ...]
    scope: Scope = "plugin"
    place: Place
    roots: tuple[str, ...] = ()
    """Variables that mean the plugin's folder, as they are written."""
    server_name: str = "{server}"
    """How the host calls a server of a plugin, with `{plugin}` and `{server}`."""
    joined: bool = True
    """A manifest's `mcpServers` adds to the files above. False: it is in place of them."""
    bare: bool = True
    """A file of servers may be the table itself, without `mcpServers`."""
    skills: tuple[str, ...] = ("skills",)


def place(shown: str, known: Fact[bool], rank: int, scope: Scope = "plugin", format: Format = "jsonc") -> Place:
    return Place(
        scope=scope,
        find=lambda machine: (),
        format=format,
        tables=(("mcpServers",),),
        rank=rank,
        shown=shown,
        known=known,
    )


def manifest(machine: Machine, folder: str, layout: Layout) -> tuple[str, Document | None, Problem | None]:
    """Its path, content, and what is wrong with it. The path is empty where the folder has none."""
    for name in layout.manifests:
        path = machine.join(folder, *name.split("/"))
        if files.is_file(machine, path):
            loaded, fault = files.attempt(machine, path)
            if fault is None:
                return path, loaded, None
            problem = Problem("plugin-manifest", "problem", f"The plugin's manifest: {fault[0]}",
                              spot=Spot(path, *(fault[1] or (0, 0))))  # fmt: skip
            return path, None, problem
    return "", None, None


def fill(plugin: Plugin, machine: Machine, layout: Layout) -> Plugin:
    """Version, servers, hooks and skills from `plugin.folder`, as far as they are there."""
    path, loaded, problem = manifest(machine, plugin.folder, layout)
    if problem is not None:
        plugin.problems.append(problem)
    top = files.inner(loaded.value) if loaded is not None else {}
    plugin.version = files.text_of(top.get("version")) or plugin.version or plugin.recorded_version
    plugin.servers = list(_servers(plugin, machine, layout, path, loaded, top))
    plugin.hooks = list(_hooks(plugin, machine, layout, path, loaded, top))
    for name in (*layout.skills, *_named(top.get("skills"))):
        folder = machine.paths.normpath(machine.join(plugin.folder, *name.replace("\\", "/").split("/")))
        for skill in skills.in_folder(machine, folder, hosts=(plugin.host,), scope=layout.scope, source=plugin.source):
            if all(each.path != skill.path for each in plugin.skills):
                plugin.skills.append(skill)
    return plugin


def _named(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _inside(machine: Machine, folder: str, name: str) -> str | None:
    """A path that a manifest names; None where it leads out of the plugin."""
    path: str = machine.paths.normpath(machine.join(folder, *name.replace("\\", "/").split("/")))
    return path if path == folder or path.startswith(folder + machine.paths.sep) else None


def _servers(
    plugin: Plugin, machine: Machine, layout: Layout, path: str, loaded: Document | None, top: Mapping[str, object]
) -> Iterator[Declaration]:
    declared = top.get("mcpServers")
    seen: set[str] = set()
    paths: list[str] = []
    if layout.joined or declared is None:
        paths += [machine.join(plugin.folder, *name.split("/")) for name in layout.servers]
    for name in _named(declared):
        inside = _inside(machine, plugin.folder, name)
        if inside is None:
            plugin.problems.append(
                Problem("plugin-path", "problem", "`mcpServers` names a file outside of the plugin.", field="mcpServers",
                        spot=files.spot(path, loaded, "mcpServers"))
            )  # fmt: skip
        else:
            paths.append(inside)
    if isinstance(declared, dict) and loaded is not None:
        for name, raw in declared.items():
            seen.add(str(name))
            yield _declared(plugin, machine, layout, path, loaded, str(name), raw, ("mcpServers", name))
    for file in dict.fromkeys(paths):
        content, fault = files.attempt(machine, file)
        if fault is not None:
            plugin.problems.append(
                Problem("plugin-servers", "problem", f"The plugin's servers cannot be read: {fault[0]}",
                        spot=Spot(file, *(fault[1] or (0, 0))))
            )  # fmt: skip
        if content is None:
            continue
        base, entries = _entries(content, layout.bare)
        for name, raw in entries.items():
            if name not in seen:
                seen.add(name)
                yield _declared(plugin, machine, layout, file, content, name, raw, (*base, name))


def _entries(content: Document, bare: bool) -> tuple[tuple[Step, ...], dict[str, object]]:
    top = files.inner(content.value)
    if "mcpServers" in top:
        return ("mcpServers",), files.inner(top, "mcpServers")
    return (), {name: raw for name, raw in top.items() if isinstance(raw, dict)} if bare else {}


def _declared(
    plugin: Plugin,
    machine: Machine,
    layout: Layout,
    path: str,
    loaded: Document,
    name: str,
    raw: object,
    base: tuple[Step, ...],
) -> Declaration:
    spot = files.spot(path, loaded, *base)
    declaration = Declaration(
        host=plugin.host, scope=layout.scope, place=layout.place, spot=spot,
        server=layout.server_name.format(plugin=plugin.name, server=name),
        raw=raw if isinstance(raw, dict) else {}, source=plugin.source,
        spots={
            ".".join(str(step) for step in where[len(base):]): Spot(path, *at)
            for where, at in loaded.spots.items()
            if len(where) > len(base) and where[: len(base)] == base
        },
    )  # fmt: skip
    adapter = registry.find(plugin.host)
    try:
        if not isinstance(raw, dict) or adapter is None:
            raise BadEntry("it is not an object with fields")
        filled = _filled(raw, plugin.folder, layout.roots, machine)
        if isinstance(filled, dict):
            declaration.entry = adapter.read(filled)
    except BadEntry as error:
        where = declaration.spots.get(error.field, spot)
        declaration.state = "broken"
        declaration.decided_by = Decision("invalid-entry", where, error.why)
        declaration.problems.append(
            Problem("entry-invalid", "problem", error.why, field=error.field, spot=where, todo=error.todo)
        )
    if declaration.state == "effective" and plugin.enabled is False:
        declaration.state = "disabled"
        declaration.decided_by = Decision("list-off", plugin.decided_by, plugin.decided)
    return declaration


def _filled(value: object, folder: str, roots: tuple[str, ...], machine: Machine) -> object:
    """With the variables of the plugin's folder put in, as the host does."""
    if isinstance(value, str):
        for root in roots:
            value = value.replace(root, folder)
        return (
            value.replace("${/}", machine.paths.sep).replace("${pathSeparator}", machine.paths.sep) if roots else value
        )
    if isinstance(value, dict):
        return {name: _filled(each, folder, roots, machine) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled(each, folder, roots, machine) for each in value]
    return value


def _hooks(
    plugin: Plugin, machine: Machine, layout: Layout, path: str, loaded: Document | None, top: Mapping[str, object]
) -> Iterator[hooks.Hook]:
    declared = top.get("hooks")
    paths = [machine.join(plugin.folder, *name.split("/")) for name in layout.hooks]
    paths += [inside for name in _named(declared) if (inside := _inside(machine, plugin.folder, name))]
    for file in dict.fromkeys(paths):
        yield from hooks.in_document(
            plugin.host, file, files.document(machine, file), source=plugin.source, scope=layout.scope
        )
    if isinstance(declared, dict):
        base = ("hooks", "hooks") if isinstance(declared.get("hooks"), dict) else ("hooks",)
        yield from hooks.in_document(plugin.host, path, loaded, base, source=plugin.source, scope=layout.scope)
