"""The manifest's servers as a plugin: an Agent Plugin 1.0.0, a Claude Code plugin or a Codex plugin.

A plugin is read on other machines. So nothing of this one goes in: no path of it, and no secret. The same servers always give
the same bytes, and other servers another version, because hosts keep a plugin by its version.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from interlock.hosts.adapter import Adapter
from interlock.hosts.fact import Fact
from interlock.hosts.generating import Lost, Refused
from interlock.hosts.machine import Machine
from interlock.hosts.tool_rules import approvals_lost, lists_lost, tool_rules
from interlock.hosts.wanting import CONNECT_KEY, variables
from interlock.hosts.writing import Json, Loss, Wanted
from interlock.manifest import logical
from interlock.manifest.config import HttpTransport, LossyPolicy, OAuth, ServerConfig, StdioTransport

PluginKind = Literal["agent", "claude", "codex"]
KINDS: tuple[PluginKind, ...] = ("agent", "claude", "codex")

SCHEMAS = "https://agent-plugins.org/schemas/1.0.0"
FORMATS: Mapping[PluginKind, Fact[str]] = {
    "agent": Fact("plugin.json, mcp.json", "D", "both closed; only ${PLUGIN_ROOT} and ${PLUGIN_DATA} are filled in, and not in "
                  "the command; no headers or variables with secrets", "agentplugins/agent-plugins-spec spec/1.0.0.md"),
    "claude": Fact(".claude-plugin/plugin.json, .mcp.json", "D", "entries as in .mcp.json; ${VAR} is filled in",
                   "code.claude.com/docs/en/plugins-reference; anthropics/claude-code plugins/plugin-dev"),
    "codex": Fact(".codex-plugin/plugin.json, .mcp.json", "S", "entries with the fields of [mcp_servers.NAME]; `type` is taken "
                  "and dropped", "openai/codex codex-rs/core-plugins/src/manifest.rs, codex-rs/codex-mcp/src/plugin_config.rs"),
}  # fmt: skip

_NAMES: Mapping[PluginKind, tuple[str, str]] = {
    "agent": (r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?\Z", "up to 64 small letters, digits, single `-` and `.`"),
    "claude": (r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z", "small letters and digits, in words joined by `-`"),
    "codex": (r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z", "small letters and digits, in words joined by `-`"),
}  # fmt: skip
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    kind: PluginKind
    name: str
    version: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """By path from the plugin's root, with `/`. Empty: nothing can be packed, and `refused` says why."""
    servers: tuple[str, ...] = ()
    losses: tuple[Lost, ...] = ()
    refused: tuple[Refused, ...] = ()
    unset: tuple[str, ...] = ()
    """Variables that a host which loads the plugin needs."""


def pack(
    kind: PluginKind,
    name: str,
    servers: Sequence[ServerConfig],
    adapter: Adapter | None,
    *,
    connect: bool,
    lossy: LossyPolicy | None = None,
) -> Packed:
    """`adapter` is the host's own, of which the plugin is; None for an Agent Plugin. `connect`: the one Interlock entry."""
    pattern, words = _NAMES[kind]
    if re.match(pattern, name) is None:
        why = f"{name!r} is no name for {_ARTICLES[kind]} plugin."
        return Packed(kind=kind, name=name, refused=(Refused("", why, f"Its name is made of {words}: `--name`."),))
    entries: dict[str, Json] = {}
    losses: list[Lost] = []
    refused: list[Refused] = []
    names: set[str] = set()
    for server in [None] if connect else servers:
        key = CONNECT_KEY if server is None else server.key
        entry, lost = _connect(kind, adapter) if server is None else _entry(kind, server, adapter)
        weak = [loss for loss in lost if loss.weakens]
        policy = lossy or (server.lossy if server is not None else "error")
        if entry is None or (weak and policy == "error"):
            said = "; ".join(f"`{loss.field}`: {loss.why}" for loss in (weak or lost))
            todo = "`--connect` packs the Interlock entry instead, which loses nothing."
            refused.append(
                Refused(key, f"{_ARTICLES[kind][0].upper()}{_ARTICLES[kind][1:]} plugin cannot hold it: {said}.", todo)
            )
            continue
        entries[key] = entry
        losses += [Lost(key, loss) for loss in lost]
        if server is not None:
            names.update(variables(server))
    if not entries:
        return Packed(kind=kind, name=name, losses=tuple(losses), refused=tuple(refused))
    digest = hashlib.sha256(json.dumps([name, entries], sort_keys=True).encode()).hexdigest()
    version = f"1.0.0+sha.{digest[:12]}"
    return Packed(
        kind=kind, name=name, version=version, files=_files(kind, name, version, entries), servers=tuple(entries),
        losses=tuple(losses), refused=tuple(refused), unset=tuple(sorted(names)),
    )  # fmt: skip


_ARTICLES: Mapping[PluginKind, str] = {"agent": "an Agent", "claude": "a Claude Code", "codex": "a Codex"}


def _files(kind: PluginKind, name: str, version: str, entries: Mapping[str, Json]) -> dict[str, bytes]:
    manifest: dict[str, Json] = {"name": name, "version": version, "description": f"MCP servers: {', '.join(entries)}."}
    if kind == "agent":
        return {
            "mcp.json": _json({"$schema": f"{SCHEMAS}/mcp.schema.json", "mcpServers": dict(entries)}),
            "plugin.json": _json({"$schema": f"{SCHEMAS}/plugin.schema.json", **manifest}),
        }
    if kind == "codex":
        manifest["mcpServers"] = "./.mcp.json"
    return {
        f".{kind}-plugin/plugin.json": _json(manifest),
        ".mcp.json": _json({"mcpServers": dict(entries)}),
    }


def _json(value: Json) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _connect(kind: PluginKind, adapter: Adapter | None) -> tuple[dict[str, Json] | None, list[Loss]]:
    words = ["interlock", "connect"]
    if adapter is not None:
        words += ["--host", adapter.id]
    return {**({} if kind == "codex" else {"type": "stdio"}), "command": words[0], "args": [*words[1:]]}, []


def _entry(
    kind: PluginKind, server: ServerConfig, adapter: Adapter | None
) -> tuple[dict[str, Json] | None, list[Loss]]:
    bound = _bound(server)
    if bound:
        return None, bound
    if adapter is None:
        return _agent(server)
    transport = server.transport
    if isinstance(transport, StdioTransport):
        # As it is written: what was found on this machine's PATH says nothing of another's.
        server = replace(server, transport=replace(transport, command=transport.declared or transport.command))
    rendered = adapter.write(Wanted(name=server.key, scope="user", server=server), _anywhere())
    losses = list(rendered.losses)
    if rendered.edits:
        rules = tool_rules(server)
        weakens = bool(rules.deny or rules.deny_globs or rules.ask) or rules.allow is not None
        losses.append(Loss("capability.tools", "a plugin brings no permission rules of this host", weakens=weakens))
    entry = {name: value for name, value in rendered.entry.items() if name != "cwd"}
    return entry or None, losses


def _anywhere() -> Machine:
    """No machine in particular: no files, and commands as every system but Windows starts them."""
    return Machine(
        platform="linux", home="/nowhere", folder="/nowhere", environ={}, root=os.path.join(os.devnull, "nothing")
    )


def _bound(server: ServerConfig) -> list[Loss]:
    """What ties a server to this machine."""
    transport = server.transport
    if not isinstance(transport, StdioTransport):
        return []
    why = "it is a path of this machine, and the plugin does not bring the file"
    declared = transport.declared or transport.command
    losses = [
        Loss(f"transports.stdio.command[{index}]", why, weakens=True)
        for index, word in enumerate(declared)
        if logical.begins(word) or os.path.isabs(word) or _is_file(word, transport, index)
    ]
    if transport.declared_cwd is not None:
        losses.append(Loss("transports.stdio.cwd", why, weakens=True))
    losses += [
        Loss(f"transports.stdio.env.{value.name}", why, weakens=True)
        for value in transport.env
        if value.logical is not None or value.file is not None
    ]
    return losses


def _is_file(word: str, transport: StdioTransport, index: int) -> bool:
    if index == 0:
        return bool(os.path.dirname(word))
    if word.startswith(("./", "../", "~")):
        return True
    try:
        return not word.startswith("-") and (transport.cwd / word).is_file()
    except (OSError, ValueError):
        return False


def _agent(server: ServerConfig) -> tuple[dict[str, Json] | None, list[Loss]]:
    transport = server.transport
    rules = tool_rules(server)
    losses = [*lists_lost(rules), *approvals_lost(rules, None)]
    entry: dict[str, Json]
    if isinstance(transport, StdioTransport):
        declared = transport.declared or transport.command
        entry = {"type": "stdio", "command": declared[0], "args": [*declared[1:]]}
        env: dict[str, Json] = {}
        for value in transport.env:
            if value.literal is None:
                losses.append(_no_reference(f"transports.stdio.env.{value.name}"))
            elif value.name.upper() in ("PLUGIN_ROOT", "PLUGIN_DATA"):
                losses.append(Loss(f"transports.stdio.env.{value.name}", "the format keeps this name", weakens=True))
            else:
                env[value.name] = value.literal
        if env:
            entry["env"] = env
        bare = [loss for loss in losses if loss.field.startswith("transports.stdio.env.")]
        return (None, bare) if bare else (entry, losses)
    needs = _agent_needs(transport)
    if needs:
        return None, needs
    entry = {"type": "streamable-http" if transport.kind == "http" else "sse", "url": transport.endpoint or ""}
    headers: dict[str, Json] = {header.name: header.literal or "" for header in transport.headers}
    if headers:
        entry["headers"] = headers
    if transport.oauth not in (None, OAuth()):
        losses.append(Loss("transports.http.oauth", "the format has no settings for a sign-in", weakens=True))
    if transport.replay:
        losses.append(Loss("transports.http.session.replay", "the format repeats no calls", weakens=False))
    return entry, losses


def _agent_needs(transport: HttpTransport) -> list[Loss]:
    """What an entry cannot do without and the format has no words for."""
    path = f"transports.{transport.kind}"
    losses = [
        _no_reference(f"{path}.headers.{header.name}")
        for header in (*transport.headers, *transport.session_headers)
        if header.literal is None
    ]
    if transport.endpoint is None:
        losses.append(_no_reference(f"{path}.endpointEnv"))
    else:
        parts = urlsplit(transport.endpoint)
        if parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            losses.append(Loss(f"{path}.endpoint", "the format takes plain http:// on loopback only", weakens=True))
    if transport.token is not None:
        losses.append(_no_reference(f"{path}.token"))
    if any(header.literal is not None for header in transport.session_headers):
        losses.append(Loss(f"{path}.session.headers", "the format sends all headers alike", weakens=True))
    return losses


def _no_reference(field: str) -> Loss:
    return Loss(field, "the format has no references to variables, and a plugin holds no secret", weakens=True)
