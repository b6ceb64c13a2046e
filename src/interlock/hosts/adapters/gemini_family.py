"""What Gemini CLI and Qwen Code, which grew out of it, have in common: the fields of an entry, and how one is written.

An address is read before a command: `httpUrl`, then `url`, then `tcp`, then `command`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from interlock.hosts.dialect import Dialect, launched, rendered, times
from interlock.hosts.entry import Approval, Entry, Transport
from interlock.hosts.machine import Machine
from interlock.hosts.reading import BadEntry
from interlock.hosts.shapes import flag, seconds, table, text, texts
from interlock.hosts.tool_lists import exact
from interlock.hosts.tool_rules import ToolRules, tool_rules
from interlock.hosts.writing import Json, Loss, Rendered, Wanted
from interlock.manifest.config import OAuth

FIELDS = frozenset(
    (
        "command", "args", "env", "cwd", "url", "httpUrl", "tcp", "headers", "timeout", "trust", "description",
        "includeTools", "excludeTools", "oauth", "authProviderType", "targetAudience", "targetServiceAccount",
    )
)  # fmt: skip


def entry(raw: Mapping[str, object], fields: frozenset[str], of_url: Transport | None) -> Entry:
    """`of_url`: what the address in `url` is spoken to. Raises BadEntry."""
    command, http, url, tcp = (text(raw, name) for name in ("command", "httpUrl", "url", "tcp"))
    address = http or url or tcp
    if not address and not command:
        raise BadEntry("it has neither `command` nor `url`", todo="Add the command, or the URL, of the server.")
    transport: Transport | None = "stdio"
    if address:
        transport = "http" if http else of_url if url else "ws"
    approvals: dict[str, Approval] = {"*": "auto"} if flag(raw, "trust", False) else {}
    oauth = raw.get("oauth")
    return Entry(
        transport=transport,
        command=() if address else (command or "", *texts(raw, "args")),
        cwd=None if address else text(raw, "cwd"),
        url=address or None,
        env=table(raw, "env"),
        headers=table(raw, "headers"),
        allow=None if raw.get("includeTools") is None else tuple(_name(each) for each in texts(raw, "includeTools")),
        deny=texts(raw, "excludeTools"),
        approvals=approvals,
        call_seconds=seconds(raw, "timeout", 0.001),
        oauth=_oauth(oauth) if isinstance(oauth, dict) else {},
        ignored=tuple(name for name in raw if name not in fields),
    )


def _name(word: str) -> str:
    """`read(...)` allows the tool `read`."""
    return word.partition("(")[0]


def _oauth(raw: Mapping[str, object]) -> dict[str, str]:
    found = {name: value for name in ("clientId", "redirectUri") if isinstance(value := raw.get(name), str)}
    scopes = raw.get("scopes")
    if isinstance(scopes, list):
        found["scopes"] = " ".join(str(each) for each in scopes)
    return found


def sign_in(oauth: OAuth) -> tuple[Mapping[str, Json], frozenset[str]]:
    """The `oauth` object, and which of the manifest's fields it says."""
    said: dict[str, Json] = {"enabled": True}
    if oauth.client_id is not None:
        said["clientId"] = oauth.client_id
    if oauth.client_id_env is not None:
        said["clientId"] = f"${oauth.client_id_env}"
    if oauth.client_secret_env is not None:
        said["clientSecret"] = f"${oauth.client_secret_env}"
    if oauth.scopes:
        said["scopes"] = [*oauth.scopes]
    fields = {"oauth": said} if len(said) > 1 else {}
    return fields, frozenset(("clientId", "clientIdEnv", "clientSecretEnv", "scopes"))


def write(
    dialect: Dialect, wanted: Wanted, machine: Machine, unsaid: Callable[[ToolRules], Sequence[Loss]]
) -> Rendered:
    """`unsaid`: what this host cannot be told of approvals. `trust` is never written: it would run every tool unasked."""
    if wanted.server is None:
        return rendered(dialect, wanted, machine)
    server = wanted.server
    made, losses = launched(dialect, server, machine)
    rules = tool_rules(server)
    lists = exact(rules)
    if lists.allow is not None:
        made["includeTools"] = [*lists.allow]
    if lists.deny:
        made["excludeTools"] = [*lists.deny]
    limits, late = times(dialect, server)
    if not server.enabled:
        losses.append(Loss("enabled", "no field of an entry switches the server off", weakens=True))
    if server.required:
        losses.append(Loss("required", "this host goes on without the server", weakens=False))
    return Rendered(entry=made | limits, losses=(*losses, *lists.losses, *unsaid(rules), *late))


def lenient(rules: ToolRules, why: str) -> tuple[Loss, ...]:
    """Of a host that runs some tools unasked, whatever it asks before others."""
    losses = [Loss(f"tools.{name}.approval", why, weakens=True) for name in rules.ask if rules.default is None]
    if rules.default in ("ask", "writes"):
        losses.append(Loss("policy.defaultApproval", why, weakens=True))
    losses += [Loss(f"tools.{name}.approval", "it may ask all the same", weakens=False) for name in rules.auto]
    if rules.default == "auto":
        losses.append(Loss("policy.defaultApproval", "it may ask all the same", weakens=False))
        losses += [Loss(f"tools.{name}.approval", why, weakens=True) for name in rules.ask]
    return tuple(losses)
