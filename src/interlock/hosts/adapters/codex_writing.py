"""A server of the manifest as a `[mcp_servers.NAME]` table. Codex fills in nothing, but it can be told names of variables."""

from __future__ import annotations

from dataclasses import replace

from interlock.hosts.dialect import Dialect, launched, started, times
from interlock.hosts.machine import Machine
from interlock.hosts.tool_lists import exact
from interlock.hosts.tool_rules import ToolRules, tool_rules
from interlock.hosts.writing import Json, Loss, Rendered, Wanted
from interlock.manifest.config import HeaderValue, HttpTransport, OAuth, ServerConfig, StdioTransport

_TIMES = Dialect(startup=("startup_timeout_sec", 1.0), call=("tool_timeout_sec", 1.0))


def write(wanted: Wanted, machine: Machine) -> Rendered:
    if wanted.server is None:
        entry = started(wanted.connect, machine)
        if wanted.pass_names:
            entry["env_vars"] = [*wanted.pass_names]
        return Rendered(entry=entry)
    server = wanted.server
    transport = server.transport
    entry, losses = _stdio(server, transport, machine) if isinstance(transport, StdioTransport) else _http(transport)
    if not server.enabled:
        entry["enabled"] = False
    if server.required:
        entry["required"] = True
    rules = tool_rules(server)
    lists = exact(rules)
    if lists.allow is not None:
        entry["enabled_tools"] = [*lists.allow]
    if lists.deny:
        entry["disabled_tools"] = [*lists.deny]
    entry |= _approvals(rules)
    limits, late = times(_TIMES, server)
    return Rendered(entry=entry | limits, losses=(*losses, *lists.losses, *late))


def _stdio(server: ServerConfig, transport: StdioTransport, machine: Machine) -> tuple[dict[str, Json], list[Loss]]:
    plain = replace(transport, env=tuple(value for value in transport.env if value.source is None))
    entry, losses = launched(Dialect(cwd=True), replace(server, transport=plain), machine)
    names: list[Json] = []
    for value in transport.env:
        if value.source == value.name:
            names.append(value.name)
        elif value.source is not None:
            losses.append(
                Loss(
                    f"transports.stdio.env.{value.name}", "this host passes variables on under their own names: "
                    f"`{value.source}` cannot become `{value.name}`", weakens=True,
                )
            )  # fmt: skip
    if names:
        entry["env_vars"] = names
    return entry, losses


def _http(transport: HttpTransport) -> tuple[dict[str, Json], list[Loss]]:
    losses: list[Loss] = []
    entry: dict[str, Json] = {}
    if transport.kind != "http":
        return {}, [Loss("transports.http", "this host speaks Streamable HTTP only, not the older SSE", weakens=True)]
    if transport.endpoint is None:
        why = "this host fills in no variable in a URL"
        losses.append(Loss("transports.http.endpointEnv", why, weakens=True))
    else:
        entry["url"] = transport.endpoint
    plain: dict[str, Json] = {}
    named: dict[str, Json] = {}
    for header in transport.headers:
        losses += _header(header, entry, plain, named)
    if transport.token is not None:
        if transport.token.env is not None:
            entry["bearer_token_env_var"] = transport.token.env
        else:
            losses.append(Loss("transports.http.token", "this host reads no token from a file", weakens=True))
    if plain:
        entry["http_headers"] = plain
    if named:
        entry["env_http_headers"] = named
    if transport.oauth is not None:
        losses += _oauth(transport.oauth, entry)
    if transport.session_headers:
        losses.append(Loss("transports.http.sessionHeaders", "this host sends all headers alike", weakens=True))
    if transport.replay:
        losses.append(Loss("transports.http.replay", "this host repeats no calls", weakens=False))
    return entry, losses


def _header(header: HeaderValue, entry: dict[str, Json], plain: dict[str, Json], named: dict[str, Json]) -> list[Loss]:
    where = f"transports.http.headers.{header.name}"
    if header.file is not None:
        return [Loss(where, "this host reads no value from a file", weakens=True)]
    if header.source is None:
        plain[header.name] = header.literal or ""
    elif not header.prefix:
        named[header.name] = header.source
    elif header.prefix == "Bearer " and header.name.lower() == "authorization":
        entry["bearer_token_env_var"] = header.source
    else:
        why = f"this host can put nothing before a variable's value but `Bearer ` in `Authorization`, so not `{header.prefix}`"
        return [Loss(where, why, weakens=True)]
    return []


def _oauth(oauth: OAuth, entry: dict[str, Json]) -> list[Loss]:
    said: dict[str, Json] = {}
    if oauth.client_id is not None:
        said["client_id"] = oauth.client_id
    if oauth.callback_port is not None:
        said["callback_port"] = oauth.callback_port
    if oauth.issuer is not None:
        said["authorization_server_issuer"] = oauth.issuer
    if said:
        entry["oauth"] = said
    if oauth.scopes:
        entry["scopes"] = [*oauth.scopes]
    if oauth.resource is not None:
        entry["oauth_resource"] = oauth.resource
    lost = {
        "flow": (oauth.flow != "browser", True),
        "clientIdEnv": (oauth.client_id_env is not None, False),
        "clientSecretEnv": (oauth.client_secret_env is not None, True),
        "clientMetadataUrl": (oauth.client_metadata_url is not None, False),
    }
    why = "this host's sign-in cannot be told this"
    return [Loss(f"transports.http.oauth.{name}", why, weakens=bad) for name, (there, bad) in lost.items() if there]


def _approvals(rules: ToolRules) -> dict[str, Json]:
    """`prompt` asks for every call, `approve` for none. `writes` and `auto` go by what the server says of itself, which is no
    ground to leave the asking out: a tool that the manifest calls a read is named instead."""
    entry: dict[str, Json] = {}
    default = {"auto": "approve", "ask": "prompt", "writes": "prompt", None: None}[rules.default]
    if default is not None:
        entry["default_tools_approval_mode"] = default
    tools: dict[str, Json] = {}
    for name, mode in (*((name, "approve") for name in rules.auto), *((name, "prompt") for name in rules.ask)):
        if mode != default:
            tools[name] = {"approval_mode": mode}
    if tools:
        entry["tools"] = tools
    return entry
