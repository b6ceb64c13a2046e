"""One entry of Copilot CLI, read and written."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.hosts.adapters.copilot_cli_files import repository_settings, settings
from interlock.hosts.adapters.gemini_family import lenient
from interlock.hosts.dialect import Dialect, elsewhere, launched, rendered, times, united
from interlock.hosts.entry import Entry, Transport
from interlock.hosts.machine import Machine
from interlock.hosts.reading import BadEntry
from interlock.hosts.shapes import only_texts, table_of_texts
from interlock.hosts.tool_lists import allow_only
from interlock.hosts.tool_rules import tool_rules
from interlock.hosts.writing import FileEdits, Json, Loss, Rendered, Wanted
from interlock.manifest.config import OAuth

_TYPES: Mapping[str, Transport] = {
    "local": "stdio", "stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse",
}  # fmt: skip
FIELDS = frozenset(
    ("type", "command", "args", "env", "cwd", "url", "headers", "tools", "timeout", "oauthClientId", "oauth", "auth")
)
_SILENT = "Copilot CLI leaves the entry out without a word."


def read(raw: Mapping[str, object]) -> Entry:
    """Raises BadEntry."""
    command, url, kind = (_text(raw, name) for name in ("command", "url", "type"))
    transport: Transport | None = "stdio" if command is not None else "http"
    if kind is not None:
        transport = _TYPES.get(kind)
        if transport is None:
            raise BadEntry("this host knows no such `type`", "type", f"One of `local`, `http` and `sse`. {_SILENT}")
    needed, there = ("command", command) if transport == "stdio" else ("url", url)
    if there is None:
        raise BadEntry(f"it has no `{needed}`", todo=f"Add `{needed}`, or correct `type`. {_SILENT}")
    tools = only_texts(raw, "tools", _SILENT)
    limit = raw.get("timeout")
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, (int, float))):
        raise BadEntry("`timeout` is not a number", "timeout", _SILENT)
    args, env, headers = (
        only_texts(raw, "args", _SILENT) or (),
        table_of_texts(raw, "env", _SILENT),
        table_of_texts(raw, "headers", _SILENT),
    )
    local = transport == "stdio"
    return Entry(
        transport=transport,
        command=(command or "", *args) if local else (),
        cwd=_text(raw, "cwd") if local else None,
        url=None if local else url,
        env=env if local else {},
        headers={} if local else headers,
        allow=None if tools is None or "*" in tools else tools,
        call_seconds=None if limit is None else limit / 1000,
        oauth=_oauth(raw),
        ignored=tuple(name for name in raw if name not in FIELDS),
    )


def _text(raw: Mapping[str, object], name: str) -> str | None:
    value = raw.get(name)
    if value is None or isinstance(value, str):
        return value
    raise BadEntry(f"`{name}` is not a text", name, _SILENT)


def _oauth(raw: Mapping[str, object]) -> dict[str, str]:
    old = raw.get("oauth")
    client = raw.get("oauthClientId", old.get("clientId") if isinstance(old, dict) else None)
    found = {"clientId": client} if isinstance(client, str) else {}
    auth = raw.get("auth")
    if isinstance(auth, dict) and auth.get("redirectPort") is not None:
        found["callbackPort"] = str(auth["redirectPort"])
    return found


def _sign_in(oauth: OAuth) -> tuple[Mapping[str, Json], frozenset[str]]:
    fields: dict[str, Json] = {}
    if oauth.client_id is not None:
        fields["oauthClientId"] = oauth.client_id
    if oauth.callback_port is not None:
        fields["auth"] = {"redirectPort": oauth.callback_port}
    return fields, frozenset(("clientId", "callbackPort"))


_DIALECT = Dialect(
    types={"stdio": "stdio", "http": "http", "sse": "sse"}, form="${V}", cwd=True,
    call=("timeout", 1000.0), oauth=_sign_in,
)  # fmt: skip


def write(wanted: Wanted, machine: Machine) -> Rendered:
    """`stdio` and not `local`, because .mcp.json is Claude Code's file too."""
    if wanted.server is None:
        made = rendered(_DIALECT, wanted, machine)
        return Rendered(entry={**made.entry, "tools": ["*"]}, notes=made.notes + _notes(wanted))
    server = wanted.server
    entry, losses = launched(_DIALECT, server, machine)
    rules = tool_rules(server)
    lists = allow_only(rules)
    entry["tools"] = ["*"] if lists.allow is None else [*lists.allow]
    limits, late = times(_DIALECT, server)
    asks = lenient(rules, "this host runs a tool unasked that its server calls read-only, and no file can forbid that")
    if server.required:
        losses.append(Loss("required", "this host goes on without the server", weakens=False))
    edits = () if server.enabled else _off(wanted, machine)
    return Rendered(
        entry=entry | limits, edits=edits, losses=(*losses, *lists.losses, *asks, *late), notes=_notes(wanted)
    )


def _notes(wanted: Wanted) -> tuple[str, ...]:
    if wanted.scope != "project":
        return ()
    return ("Copilot CLI reads it in folders that you trust; `copilot -p` wants "
            "GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP=true besides.",)  # fmt: skip


def _off(wanted: Wanted, machine: Machine) -> tuple[FileEdits, ...]:
    file = settings(machine) if wanted.scope == "user" else repository_settings(machine)[0]
    edit = united(machine, file, "jsonc", ("disabledMcpServers",), [wanted.name])
    return elsewhere(file, "jsonc", [edit], comments=True)
