"""Plugins, hooks, skills and rules files of a machine: as one JSON object, and as lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from interlock.hosts.checks.literals import covered
from interlock.hosts.declaration import Declaration, Problem, Spot
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import finding, hooks, rules, skills
from interlock.hosts.plugins.hooks import Hook
from interlock.hosts.plugins.plugin import Plugin
from interlock.hosts.plugins.rules import RuleFile
from interlock.hosts.plugins.skills import Skill


@dataclass(slots=True)
class Brought:
    """All that is not an entry of a host's own file."""

    plugins: list[Plugin] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    """Those of the hosts' own settings; a plugin has its own."""
    skills: list[Skill] = field(default_factory=list)
    rules: list[RuleFile] = field(default_factory=list)


def take(machine: Machine, hosts: Sequence[str] | None = None) -> Brought:
    return Brought(
        finding.found(machine, hosts),
        hooks.found(machine, hosts),
        skills.found(machine, hosts),
        rules.found(machine, hosts),
    )


def as_dict(brought: Brought) -> dict[str, object]:
    return {
        "plugins": [_plugin(each) for each in brought.plugins],
        "hooks": [_hook(each) for each in brought.hooks],
        "skills": [_skill(each) for each in brought.skills],
        "rules": [_rule(each) for each in brought.rules],
    }


def _plugin(plugin: Plugin) -> dict[str, object]:
    return {
        "kind": plugin.kind,
        "host": plugin.host,
        "name": plugin.name,
        "version": plugin.version,
        "recorded_version": plugin.recorded_version,
        "folder": plugin.folder,
        "origin": plugin.origin,
        "enabled": plugin.enabled,
        "decided_by": {"what": plugin.decided, "at": _at(plugin.decided_by)},
        "servers": [_server(each) for each in plugin.servers],
        "hooks": [_hook(each) for each in plugin.hooks],
        "skills": [_skill(each) for each in plugin.skills],
        "not_loaded": [{"version": each.version, "folder": each.folder, "why": each.why} for each in plugin.others],
        "problems": [_problem(each) for each in plugin.problems],
    }


def _server(server: Declaration) -> dict[str, object]:
    return {"server": server.server, "state": server.state, "at": str(server.spot)}


def _hook(hook: Hook) -> dict[str, object]:
    return {
        "host": hook.host, "scope": hook.scope, "event": hook.event, "matcher": hook.matcher, "does": hook.does,
        "shown": hook.shown, "at": str(hook.spot), "source": hook.source,
    }  # fmt: skip


def _skill(skill: Skill) -> dict[str, object]:
    return {
        "name": skill.name, "description": skill.description, "hosts": list(skill.hosts), "scope": skill.scope,
        "path": skill.path, "allowed_tools": list(skill.allowed_tools), "hooks": list(skill.hooks),
        "servers": list(skill.servers), "source": skill.source, "problems": [_problem(each) for each in skill.problems],
    }  # fmt: skip


def _rule(rule: RuleFile) -> dict[str, object]:
    return {
        "path": rule.path, "hosts": list(rule.hosts), "scope": rule.scope, "bytes": rule.size,
        "hidden": [_at(each) for each in rule.hidden], "note": rule.note,
    }  # fmt: skip


def _problem(problem: Problem) -> dict[str, object]:
    return {
        "code": problem.code, "severity": problem.severity, "seen": problem.seen, "todo": problem.todo,
        "at": _at(problem.spot),
    }  # fmt: skip


def _at(spot: Spot | None) -> str | None:
    return None if spot is None else f"{spot}:{spot.column}" if spot.line else str(spot)


def lines(brought: Brought) -> Iterator[str]:
    """For a terminal. Every text from a file is on one line."""
    for plugin in brought.plugins:
        yield _one(f"{plugin.host}: plugin {plugin.source}, {_switch(plugin)}, from {plugin.origin or 'unknown'}")
        if plugin.folder:
            yield _one(f"    {plugin.folder}")
        for server in plugin.servers:
            yield _one(f"    server {server.server}: {server.state}")
        yield from (_one(f"    {_hook_line(hook)}") for hook in plugin.hooks)
        for skill in plugin.skills:
            yield from _skill_lines(skill, "    ")
        for copy in plugin.others:
            yield _one(f"    not loaded: {copy.version}: {copy.why}")
        yield from (_one(f"    {each.severity}: {each.seen}") for each in plugin.problems)
    yield from (_one(f"{hook.host}: {_hook_line(hook)}") for hook in brought.hooks)
    for skill in brought.skills:
        yield from _skill_lines(skill, "")
    for rule in brought.rules:
        hidden = (
            f", {len(rule.hidden)} INVISIBLE CHARACTERS, first at line {rule.hidden[0].line}" if rule.hidden else ""
        )
        note = f", {rule.note}" if rule.note else ""
        yield _one(f"rules {rule.path}: {rule.size} bytes, for {', '.join(rule.hosts)}{hidden}{note}")


def _switch(plugin: Plugin) -> str:
    word = {True: "on", False: "off", None: "on or off unknown"}[plugin.enabled]
    at = f" ({plugin.decided_by})" if plugin.decided_by else ""
    return f"{word}: {plugin.decided}{at}" if plugin.decided else word


def _hook_line(hook: Hook) -> str:
    matcher = f" [{hook.matcher}]" if hook.matcher else ""
    return f"hook {hook.event}{matcher}: {hook.shown or hook.does} ({hook.spot})"


def _skill_lines(skill: Skill, indent: str) -> Iterator[str]:
    tools = f", may use {', '.join(skill.allowed_tools)}" if skill.allowed_tools else ""
    servers = f", uses servers {', '.join(skill.servers)}" if skill.servers else ""
    brings = f", brings hooks {', '.join(skill.hooks)}" if skill.hooks else ""
    yield _one(f"{indent}skill {skill.name} ({', '.join(skill.hosts)}){tools}{servers}{brings}: {skill.path}")
    yield from (_one(f"{indent}    {each.severity}: {each.seen}") for each in skill.problems)


def _one(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in covered(text))
