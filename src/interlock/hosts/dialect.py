"""Entries in the words that most hosts took over from Claude Desktop: `command`, `args`, `env`, or a URL with `headers`.

An adapter says in a Dialect where its host differs. What no table can say it does itself with what comes out here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from interlock.hosts.adapter import ChildEnv, Form
from interlock.hosts.entry import Entry, Transport
from interlock.hosts.machine import Machine
from interlock.hosts.place import Format
from interlock.hosts.reading import BadEntry, parse, read_bytes
from interlock.hosts.shapes import endpoint, env_texts, header_texts, reference, table, text, texts, words
from interlock.hosts.text.document import Damaged
from interlock.hosts.tool_rules import ToolRules, approvals_lost, globs_lost, lists_lost, tool_rules, unasked
from interlock.hosts.writing import Edit, FileEdits, Json, Loss, Path, Rendered, Wanted
from interlock.manifest.config import HttpTransport, OAuth, ServerConfig, StdioTransport

SDK_ENV = ChildEnv(
    kind="named",
    names=(
        "HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA",
        "PROCESSOR_ARCHITECTURE", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE", "PROGRAMFILES",
    ),
)  # fmt: skip
"""What the TypeScript SDK of MCP passes on unless a host says otherwise (getDefaultEnvironment, both platforms)."""

TYPES: Mapping[str, Transport] = {
    "stdio": "stdio", "local": "stdio", "http": "http", "streamable-http": "http", "streamableHttp": "http",
    "streamable_http": "http", "sse": "sse", "ws": "ws",
}  # fmt: skip
"""Every value of `type` that some host takes."""


# Reading


def kind(
    raw: Mapping[str, object],
    types: Mapping[str, Transport] = TYPES,
    *,
    url: Sequence[str] = ("url",),
    untyped: Transport = "http",
    both: Transport | None = None,
    strict: bool = False,
) -> Transport | None:
    """By `type`, else by what stands there. None: it cannot be told. Raises BadEntry.

    `untyped` is what a URL without a type is; `both` what is taken where a command and a URL stand; with `strict` the
    host is known to refuse a type that is not among `types`.
    """
    command, address = text(raw, "command"), next((raw[name] for name in url if raw.get(name) is not None), None)
    if command is None and address is None:
        raise BadEntry(f"it has neither `command` nor `{url[0]}`", todo="Add the command, or the URL, of the server.")
    said = text(raw, "type")
    if said is not None:
        found = types.get(said)
        if found is None and strict:
            raise BadEntry(
                "this host knows no such `type`", "type", "One of " + ", ".join(f"`{each}`" for each in types) + "."
            )
        if found is None or (command if found == "stdio" else address) is not None:
            return found
        raise BadEntry(f"`type` does not go with `{'url' if command is None else 'command'}`", "type")
    if command is not None and address is not None:
        return both
    return "stdio" if command is not None else untyped


def plain(
    raw: Mapping[str, object],
    transport: Transport | None,
    fields: frozenset[str] = frozenset(),
    *,
    url: Sequence[str] = ("url",),
    unsure: frozenset[str] = frozenset(),
) -> Entry:
    """The common fields. Of the others, those that are not in `fields` are ignored, unless nobody knows (`unsure`)."""
    program = text(raw, "command") if transport in ("stdio", None) else None
    address = next((text(raw, name) for name in url if raw.get(name) is not None), None)
    return Entry(
        transport=transport,
        command=() if program is None else (program, *texts(raw, "args")),
        cwd=text(raw, "cwd") if not fields or "cwd" in fields else None,
        url=None if transport == "stdio" else address,
        env=table(raw, "env"),
        headers=table(raw, "headers"),
        ignored=tuple(name for name in raw if name not in fields and name not in unsure) if fields else (),
    )


# Writing


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    types: Mapping[str, str] = field(default_factory=dict)
    """The value of `type` that is written, by transport; none is written for one that is not here."""
    transports: frozenset[str] = frozenset(("stdio", "http", "sse"))
    no_remote: str = ""
    """Why no URL can be written, and what to do instead."""
    url: str = "url"
    form: Form | None = None
    """How a variable is referred to; None: the host fills in none, or nobody knows."""
    unsure: bool = False
    """Nobody knows whether it fills in variables, so none is relied on."""
    fills: frozenset[str] = frozenset(("env", "headers", "url"))
    cwd: bool = False
    off: tuple[str, bool] | None = None
    """The field and the value that switch a server off."""
    always_on: bool = False
    """The field is written for a server that is on, too."""
    deny: str | None = None
    """The field with the names of forbidden tools."""
    auto: str | None = None
    """The field with the names of tools that run unasked."""
    every: str | None = None
    """The one word in `auto` that means all of them."""
    asks: bool | None = None
    """Whether the host asks before a call that no rule speaks of."""
    call: tuple[str, float] | None = None
    """The field for the longest call, and how many of its units are a second."""
    startup: tuple[str, float] | None = None
    passes_all: bool = False
    """A server inherits the host's environment, so that no variable needs to be named."""
    oauth: Callable[[OAuth], tuple[Mapping[str, Json], frozenset[str]]] | None = None
    """Fields for a sign-in, and which of the manifest's (`clientId`, `scopes`) they say."""


def rendered(dialect: Dialect, wanted: Wanted, machine: Machine) -> Rendered:
    """The server, or Interlock's own entry, in this dialect."""
    if wanted.server is None:
        return _connect(dialect, wanted, machine)
    server = wanted.server
    entry, losses = launched(dialect, server, machine)
    rules = tool_rules(server)
    listed, more = _lists(dialect, rules)
    limits, late = times(dialect, server)
    entry |= _switch(dialect, server.enabled)
    if not server.enabled and dialect.off is None:
        losses.append(Loss("enabled", "no field of this host switches a server off", weakens=True))
    if server.required:
        losses.append(Loss("required", "this host goes on without the server", weakens=False))
    return Rendered(entry=entry | listed | limits, losses=(*losses, *more, *late))


def launched(dialect: Dialect, server: ServerConfig, machine: Machine) -> tuple[dict[str, Json], list[Loss]]:
    """How the server is reached: everything but switches, lists and times."""
    transport = server.transport
    if isinstance(transport, StdioTransport):
        entry, losses = _stdio(dialect, transport, machine)
    else:
        entry, losses = _http(dialect, transport)
    return entry, [_in_doubt(loss) for loss in losses] if dialect.unsure else losses


def _in_doubt(loss: Loss) -> Loss:
    if not loss.why.startswith("this host fills in no variable"):
        return loss
    return replace(loss, why="it is not known whether this host fills in variables")


def started(command: Sequence[str], machine: Machine) -> dict[str, Json]:
    """`command` and `args`; on Windows a batch file goes through `cmd`."""
    from interlock.hosts.platforms import launch_words

    program, *rest = launch_words(tuple(command), machine)
    return {"command": program, "args": [*rest]}


def _connect(dialect: Dialect, wanted: Wanted, machine: Machine) -> Rendered:
    entry: dict[str, Json] = {} if "stdio" not in dialect.types else {"type": dialect.types["stdio"]}
    entry |= started(wanted.connect, machine)
    notes: tuple[str, ...] = ()
    if wanted.pass_names and not dialect.passes_all:
        if dialect.form is not None and "env" in dialect.fills:
            entry["env"] = {name: reference(dialect.form, name) for name in wanted.pass_names}
        else:
            notes = (unpassed(wanted.pass_names),)
    return Rendered(entry=entry | _switch(dialect, True), notes=notes)


def unpassed(names: Sequence[str]) -> str:
    """What a person has to do where the host's file cannot refer to a variable."""
    return (
        f"No variable can be passed on by reference here. Keep {', '.join(names)} where Interlock finds it without the "
        "host: in the keychain, or in a file that the manifest names."
    )


def _stdio(dialect: Dialect, transport: StdioTransport, machine: Machine) -> tuple[dict[str, Json], list[Loss]]:
    entry: dict[str, Json] = {} if "stdio" not in dialect.types else {"type": dialect.types["stdio"]}
    program, rest = words(transport)
    entry |= started((program, *(str(each) for each in rest)), machine)
    env, losses = env_texts(transport.env, dialect.form if "env" in dialect.fills else None)
    if env:
        entry["env"] = {**env}
    if transport.declared_cwd is not None:
        if dialect.cwd:
            entry["cwd"] = str(transport.cwd)
        else:
            losses.append(Loss("transports.stdio.cwd", "this host starts servers where it pleases", weakens=False))
    return entry, losses


def _http(dialect: Dialect, transport: HttpTransport) -> tuple[dict[str, Json], list[Loss]]:
    if transport.kind not in dialect.transports:
        why = dialect.no_remote or f"this host does not speak {transport.kind}"
        return {}, [Loss("transports.http", why, weakens=True)]
    entry: dict[str, Json] = {} if transport.kind not in dialect.types else {"type": dialect.types[transport.kind]}
    address, losses = endpoint(transport, dialect.form if "url" in dialect.fills else None)
    if address is not None:
        entry[dialect.url] = address
    form = dialect.form if "headers" in dialect.fills else None
    headers, more = header_texts(transport.headers, form)
    losses += more
    if transport.token is not None:
        if form is not None and transport.token.env is not None:
            headers["Authorization"] = "Bearer " + reference(form, transport.token.env)
        else:
            losses.append(Loss("transports.http.token", "this host cannot be told where the token is", weakens=True))
    if headers:
        entry["headers"] = {**headers}
    said: frozenset[str] = frozenset()
    if transport.oauth is not None:
        if dialect.oauth is not None:
            fields, said = dialect.oauth(transport.oauth)
            entry |= fields
        losses += _oauth_lost(transport.oauth, said)
    if transport.session_headers:
        losses.append(Loss("transports.http.sessionHeaders", "this host sends all headers alike", weakens=True))
    if transport.replay:
        losses.append(Loss("transports.http.replay", "this host repeats no calls", weakens=False))
    return entry, losses


def _oauth_lost(oauth: OAuth, said: frozenset[str]) -> list[Loss]:
    """A host signs in by itself; what narrows or secures that sign-in and cannot be said is a weakening."""
    wanted: dict[str, tuple[bool, bool]] = {
        "flow": (oauth.flow != "browser", True),
        "scopes": (bool(oauth.scopes), True),
        "resource": (oauth.resource is not None, True),
        "issuer": (oauth.issuer is not None, True),
        "clientSecretEnv": (oauth.client_secret_env is not None, True),
        "clientId": (oauth.client_id is not None, False),
        "clientIdEnv": (oauth.client_id_env is not None, False),
        "clientMetadataUrl": (oauth.client_metadata_url is not None, False),
        "callbackPort": (oauth.callback_port is not None, False),
    }
    return [
        Loss(f"transports.http.oauth.{name}", "this host's sign-in cannot be told this", weakens=weakens)
        for name, (set_, weakens) in wanted.items()
        if set_ and name not in said
    ]


def _switch(dialect: Dialect, enabled: bool) -> dict[str, Json]:
    if dialect.off is None or (enabled and not dialect.always_on):
        return {}
    name, off = dialect.off
    return {name: off if not enabled else not off}


def _lists(dialect: Dialect, rules: ToolRules) -> tuple[dict[str, Json], list[Loss]]:
    entry: dict[str, Json] = {}
    losses: list[Loss] = []
    if dialect.deny is None:
        losses += lists_lost(rules)
    else:
        if rules.deny:
            entry[dialect.deny] = [*rules.deny]
        losses += globs_lost(rules, allow=False, deny=True) + lists_lost(rules, deny=False)
    if dialect.auto is None:
        return entry, losses + approvals_lost(rules, dialect.asks)
    auto, more = unasked(rules, dialect.every)
    if auto:
        entry[dialect.auto] = [*auto]
    return entry, losses + more


def times(dialect: Dialect, server: ServerConfig) -> tuple[dict[str, Json], list[Loss]]:
    """Limits that are the manifest's own defaults are left to the host."""
    entry: dict[str, Json] = {}
    losses: list[Loss] = []
    policy = server.policy
    for name, seconds, default, where in (
        ("policy.startupTimeoutSeconds", policy.startup_timeout_seconds, 30.0, dialect.startup),
        ("policy.toolTimeoutSeconds", policy.tool_timeout_seconds, 300.0, dialect.call),
    ):
        if seconds == default:
            continue
        if where is None:
            losses.append(Loss(name, "this host has no field for it", weakens=False))
        else:
            entry[where[0]] = max(1, round(seconds * where[1]))
    losses += [
        Loss(f"tools.{tool}.timeoutSeconds", "this host has one limit for all tools", weakens=False)
        for tool, override in server.tools.items()
        if override.timeout_seconds is not None
    ]
    if policy.max_result_bytes is not None:
        losses.append(Loss("policy.maxResultBytes", "this host has its own limit", weakens=False))
    return entry, losses


# Lists in other files


def standing(machine: Machine, file: str, format: Format, path: Path) -> object:
    """What stands at this place of a file; None where nothing does, or the file cannot be read."""
    try:
        content = read_bytes(machine, file)
        value: object = None if content is None else parse(content, format).value
    except (OSError, Damaged):
        return None
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def united(
    machine: Machine, file: str, format: Format, path: Path, add: Sequence[str], remove: Sequence[str] = ()
) -> Edit | None:
    """A list in another file with these words in it and those out of it; None where it is so already."""
    value = standing(machine, file, format, path)
    before: list[Json] = list(value) if isinstance(value, list) else []
    after: list[Json] = [each for each in before if each not in remove]
    after += [word for word in add if word not in after]
    return None if isinstance(value, list) and after == before else Edit(path, after)


def elsewhere(file: str, format: Format, edits: Sequence[Edit | None], *, comments: bool) -> tuple[FileEdits, ...]:
    found = tuple(edit for edit in edits if edit is not None)
    return (FileEdits(file=file, format=format, comments=comments, edits=found),) if found else ()


def with_more(
    first: Rendered, *, edits: Sequence[FileEdits] = (), losses: Sequence[Loss] = (), notes: Sequence[str] = ()
) -> Rendered:
    return replace(first, edits=(*first.edits, *edits), losses=(*first.losses, *losses), notes=(*first.notes, *notes))
