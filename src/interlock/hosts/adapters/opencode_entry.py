"""One entry of OpenCode's `mcp`: what a layer may hold, and what the layers put together ask for."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.hosts.entry import Entry
from interlock.hosts.reading import BadEntry

FIELDS = frozenset(
    ("type", "command", "cwd", "environment", "url", "headers", "oauth", "enabled", "disabled", "timeout")
)
_ALL = "OpenCode then refuses its whole configuration and does not start."


def check(raw: Mapping[str, object]) -> None:
    """What OpenCode asks of each layer by itself, before it puts them together. Raises BadEntry."""
    kind = raw.get("type")
    if kind not in ("local", "remote"):
        if kind is None and "command" not in raw and "url" not in raw and ({"enabled", "disabled"} & set(raw)):
            _flag(raw)
            return
        raise BadEntry("its `type` is neither `local` nor `remote`", "type" if kind is not None else "", _ALL)
    needed = "command" if kind == "local" else "url"
    if raw.get(needed) is None:
        raise BadEntry(f"it has no `{needed}`", todo=f"Add `{needed}`, or correct `type`. {_ALL}")
    if kind == "local":
        _words(raw)
        _texts(raw, "environment")
        if raw.get("cwd") is not None and not isinstance(raw["cwd"], str):
            raise BadEntry("`cwd` is not a text", "cwd", _ALL)
    else:
        if not isinstance(raw["url"], str):
            raise BadEntry("`url` is not a text", "url", _ALL)
        _texts(raw, "headers")
    _flag(raw)
    timeout = raw.get("timeout")
    limits = timeout.values() if isinstance(timeout, dict) else () if timeout is None else (timeout,)
    for limit in limits:
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or limit <= 0:
            raise BadEntry("`timeout` is no number above 0", "timeout", _ALL)


def read(raw: Mapping[str, object]) -> Entry:
    """Of all layers together. `type` alone decides: what an older layer left behind for the other kind is not read."""
    kind = raw.get("type")
    timeout = raw.get("timeout")
    startup = timeout.get("startup") if isinstance(timeout, dict) else timeout
    request = timeout.get("request") if isinstance(timeout, dict) else None
    return Entry(
        transport={"local": "stdio", "remote": "http"}.get(str(kind)),  # type: ignore[arg-type]
        command=tuple(_words(raw)) if kind == "local" else (),
        cwd=str(raw["cwd"]) if kind == "local" and raw.get("cwd") is not None else None,
        url=str(raw["url"]) if kind == "remote" and raw.get("url") is not None else None,
        env=_texts(raw, "environment") if kind == "local" else {},
        headers=_texts(raw, "headers") if kind == "remote" else {},
        enabled=raw["enabled"] is True if raw.get("enabled") is not None else raw.get("disabled") is not True,
        startup_seconds=startup / 1000 if isinstance(startup, (int, float)) else None,
        call_seconds=request / 1000 if isinstance(request, (int, float)) else None,
        oauth=_oauth(raw.get("oauth")),
        ignored=tuple(name for name in raw if name not in FIELDS),
    )


def _words(raw: Mapping[str, object]) -> list[str]:
    command = raw.get("command")
    if not isinstance(command, list) or not all(isinstance(each, str) for each in command):
        todo = f"Write the program and its arguments as one list. {_ALL}"
        raise BadEntry("`command` is not a list of texts", "command", todo)
    return command


def _texts(raw: Mapping[str, object], name: str) -> dict[str, str]:
    value = raw.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadEntry(f"`{name}` is not an object", name, _ALL)
    for key, each in value.items():
        if not isinstance(each, str):
            raise BadEntry(f"`{name}.{key}` is not a text", f"{name}.{key}", f"Put it into quotes. {_ALL}")
    return dict(value)


def _flag(raw: Mapping[str, object]) -> None:
    for name in ("enabled", "disabled"):
        if raw.get(name) is not None and not isinstance(raw[name], bool):
            raise BadEntry(f"`{name}` is neither true nor false", name, _ALL)


def _oauth(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    found = {}
    for names, ours in ((("clientId", "client_id"), "clientId"), (("scope", "scopes"), "scopes"),
                        (("callbackPort", "callback_port"), "callbackPort"),
                        (("redirectUri", "redirect_uri"), "redirectUri")):  # fmt: skip
        said = next((value[name] for name in names if value.get(name) is not None), None)
        if isinstance(said, (str, int)):
            found[ours] = str(said)
    return found
