"""One entry of `mcpServers` as Claude Code takes it: it checks every field, and skips the entry for one that is wrong."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.hosts.entry import Entry, Transport
from interlock.hosts.reading import BadEntry

TYPES: Mapping[str, Transport] = {"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse", "ws": "ws"}
_STDIO = frozenset(("type", "command", "args", "env", "timeout", "alwaysLoad"))
_REMOTE = frozenset(("type", "url", "headers", "headersHelper", "oauth", "timeout", "alwaysLoad"))
FIELDS = _STDIO | _REMOTE


def read(raw: Mapping[str, object]) -> Entry:
    """Raises BadEntry."""
    kind = raw.get("type")
    if kind is None:
        if raw.get("command") is None and raw.get("url") is not None:
            raise BadEntry(
                "it has a `url` and no `type`", "url", 'Add "type": "http" (or "sse", or "ws") to the entry.'
            )
        transport: Transport | None = "stdio"
    else:
        transport = TYPES.get(kind) if isinstance(kind, str) else None
    if transport is None:
        raise BadEntry("this host knows no such `type`", "type", "One of `stdio`, `http`, `sse` and `ws`.")
    timeout = raw.get("timeout")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, (int, float))):
        raise BadEntry("`timeout` is not a number", "timeout")
    seconds = None if timeout is None else timeout / 1000
    if transport == "stdio":
        command = _text(raw, "command")
        return Entry(
            transport=transport, command=(command, *_args(raw)), env=_table(raw, "env"), call_seconds=seconds,
            ignored=tuple(name for name in raw if name not in _STDIO),
        )  # fmt: skip
    return Entry(
        transport=transport, url=_text(raw, "url"), headers=_table(raw, "headers"), call_seconds=seconds,
        oauth=_oauth(raw), ignored=tuple(name for name in raw if name not in _REMOTE),
    )  # fmt: skip


def _text(raw: Mapping[str, object], name: str) -> str:
    value = raw.get(name)
    if value is None:
        raise BadEntry(f"it has no `{name}`", todo=f"Add `{name}`, or correct `type`.")
    if not isinstance(value, str):
        raise BadEntry(f"`{name}` is not a text", name)
    if not value:
        raise BadEntry(f"`{name}` is empty", name)
    return value


def _args(raw: Mapping[str, object]) -> tuple[str, ...]:
    value = raw.get("args")
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadEntry("`args` is not a list", "args")
    for index, each in enumerate(value):
        if not isinstance(each, str):
            raise BadEntry(f"`args.{index}` is not a text", f"args.{index}", "Put it into quotes.")
    return tuple(value)


def _table(raw: Mapping[str, object], name: str) -> dict[str, str]:
    value = raw.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadEntry(f"`{name}` is not an object", name)
    for key, each in value.items():
        if not isinstance(each, str):
            raise BadEntry(f"`{name}.{key}` is not a text", f"{name}.{key}", "Put it into quotes.")
    return dict(value)


def _oauth(raw: Mapping[str, object]) -> dict[str, str]:
    value = raw.get("oauth")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadEntry("`oauth` is not an object", "oauth")
    for name in ("clientId", "scopes", "authServerMetadataUrl"):
        if value.get(name) is not None and not isinstance(value[name], str):
            todo = "Write one text with spaces between the scopes." if name == "scopes" else ""
            raise BadEntry(f"`oauth.{name}` is not a text", f"oauth.{name}", todo)
    port = value.get("callbackPort")
    if port is not None and (isinstance(port, bool) or not isinstance(port, int)):
        raise BadEntry("`oauth.callbackPort` is not a whole number", "oauth.callbackPort")
    return {name: str(each) for name, each in value.items() if isinstance(each, (str, int)) and name != "clientSecret"}
