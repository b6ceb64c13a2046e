"""One `[mcp_servers.NAME]` table of Codex: what it asks for, and everything for which Codex refuses the whole configuration."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.hosts.entry import Approval, Entry
from interlock.hosts.reading import BadEntry
from interlock.hosts.shapes import only_texts, table_of_texts

SHARED = frozenset(
    (
        "enabled", "required", "startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec",
        "supports_parallel_tool_calls", "enabled_tools", "disabled_tools", "default_tools_approval_mode", "tools", "scopes",
        "environment_id", "name",
    )
)  # fmt: skip
_STDIO = ("args", "env", "env_vars", "cwd")
_HTTP = (
    "bearer_token_env_var", "http_headers", "env_http_headers", "http_headers_helper", "auth", "oauth", "oauth_resource",
)  # fmt: skip
FIELDS = SHARED | {"command", "url", *_STDIO, *_HTTP}

MODES: Mapping[str, Approval] = {"auto": "writes", "prompt": "prompt", "writes": "writes", "approve": "auto"}
"""In the manifest's words. `auto` goes by what the server says of its tool, so it is no more than `writes`."""
_AUTH = ("oauth", "chatgpt", "ema_auth")
_ALL = "Codex then refuses its whole configuration, and starts with none of its servers."


def read(raw: Mapping[str, object]) -> Entry:
    """Raises BadEntry."""
    _texts(raw)
    command, url = raw.get("command"), raw.get("url")
    tools, approvals = _tools(raw)
    names = _env_vars(raw)
    kind = "stdio" if command is not None else "streamable_http"
    if command is None and url is None:
        raise BadEntry("it has neither `command` nor `url`", todo="Add one of them. " + _ALL)
    for name in ("url", *_HTTP) if command is not None else _STDIO:
        if raw.get(name) is not None:
            raise BadEntry(f"`{name}` does not go with `{'command' if command is not None else 'url'}`", name, _ALL)
    if raw.get("bearer_token") is not None:
        todo = "Name the variable that holds the token in `bearer_token_env_var`. " + _ALL
        raise BadEntry(f"`bearer_token` is not supported for {kind}", "bearer_token", todo)
    bearer = raw.get("bearer_token_env_var")
    references = {name: ("", variable) for name, variable in table_of_texts(raw, "env_http_headers", _ALL).items()}
    if isinstance(bearer, str):
        references["Authorization"] = ("Bearer ", bearer)
    return Entry(
        transport="stdio" if command is not None else "http",
        command=() if command is None else (str(command), *(only_texts(raw, "args", _ALL) or ())),
        cwd=str(raw["cwd"]) if raw.get("cwd") is not None else None,
        url=None if url is None else str(url),
        env=table_of_texts(raw, "env", _ALL),
        env_names=names,
        headers=table_of_texts(raw, "http_headers", _ALL),
        header_names=references,
        enabled=raw.get("enabled") is not False,
        allow=only_texts(raw, "enabled_tools", _ALL),
        deny=(only_texts(raw, "disabled_tools", _ALL) or ()),
        approvals=approvals,
        startup_seconds=_startup(raw),
        call_seconds=_seconds(raw, "tool_timeout_sec"),
        oauth=_oauth(raw),
        ignored=tuple(
            [name for name in raw if name not in FIELDS] + [f"tools.{tool}.{name}" for tool, name in tools if name]
        ),
    )


def _texts(raw: Mapping[str, object]) -> None:
    for name in ("command", "url", "cwd", "bearer_token", "bearer_token_env_var", "auth", "oauth_resource",
                 "default_tools_approval_mode", "environment_id"):  # fmt: skip
        if raw.get(name) is not None and not isinstance(raw[name], str):
            raise BadEntry(f"`{name}` is not a text", name, _ALL)
    for name in ("enabled", "required", "supports_parallel_tool_calls"):
        if raw.get(name) is not None and not isinstance(raw[name], bool):
            raise BadEntry(f"`{name}` is neither true nor false", name, _ALL)
    if raw.get("auth") is not None and raw["auth"] not in _AUTH:
        raise BadEntry("`auth` is none of " + ", ".join(_AUTH), "auth", _ALL)
    only_texts(raw, "scopes", _ALL)


def _env_vars(raw: Mapping[str, object]) -> tuple[str, ...]:
    """Names; those that come from a remote machine are not of this one."""
    value = raw.get("env_vars")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadEntry("`env_vars` is not a list", "env_vars", _ALL)
    found = []
    for index, each in enumerate(value):
        name = each.get("name") if isinstance(each, dict) else each
        if not isinstance(name, str):
            raise BadEntry("`env_vars` holds something that is no name", f"env_vars.{index}", _ALL)
        source = each.get("source") if isinstance(each, dict) else None
        if source not in (None, "local", "remote"):
            raise BadEntry("the `source` of a variable is neither `local` nor `remote`", f"env_vars.{index}", _ALL)
        if source != "remote":
            found.append(name)
    return tuple(found)


def _seconds(raw: Mapping[str, object], name: str, unit: float = 1.0) -> float | None:
    value = raw.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise BadEntry(f"`{name}` is no length of time", name, _ALL)
    return value * unit


def _startup(raw: Mapping[str, object]) -> float | None:
    seconds, milliseconds = _seconds(raw, "startup_timeout_sec"), _seconds(raw, "startup_timeout_ms", 0.001)
    return milliseconds if seconds is None else seconds


def _tools(raw: Mapping[str, object]) -> tuple[list[tuple[str, str]], dict[str, Approval]]:
    """Fields of tools that are not read, and the approvals."""
    approvals: dict[str, Approval] = {}
    unread: list[tuple[str, str]] = []
    default = raw.get("default_tools_approval_mode")
    if default is not None:
        approvals["*"] = _mode(default, "default_tools_approval_mode")
    tools = raw.get("tools")
    if tools is None:
        return unread, approvals
    if not isinstance(tools, dict):
        raise BadEntry("`tools` is not a table", "tools", _ALL)
    for tool, rule in tools.items():
        if not isinstance(rule, dict):
            raise BadEntry(f"`tools.{tool}` is not a table", f"tools.{tool}", _ALL)
        if rule.get("approval_mode") is not None:
            approvals[str(tool)] = _mode(rule["approval_mode"], f"tools.{tool}.approval_mode")
        unread += [(str(tool), name) for name in rule if name not in ("approval_mode", "output_token_limit")]
    return unread, approvals


def _mode(value: object, field: str) -> Approval:
    if not isinstance(value, str) or value not in MODES:
        raise BadEntry(f"`{field}` is none of auto, prompt, writes and approve", field, _ALL)
    return MODES[value]


def _oauth(raw: Mapping[str, object]) -> dict[str, str]:
    found: dict[str, str] = {}
    oauth = raw.get("oauth")
    if oauth is not None and not isinstance(oauth, dict):
        raise BadEntry("`oauth` is not a table", "oauth", _ALL)
    for name, ours in (("client_id", "clientId"), ("callback_port", "callbackPort"),
                       ("authorization_server_issuer", "issuer")):  # fmt: skip
        value = oauth.get(name) if oauth is not None else None
        if value is not None:
            found[ours] = str(value)
    if raw.get("scopes"):
        found["scopes"] = " ".join(only_texts(raw, "scopes", _ALL) or ())
    if isinstance(raw.get("oauth_resource"), str):
        found["resource"] = str(raw["oauth_resource"])
    return found
