"""What a manifest means once read, checked and merged: the plain values that the rest of Interlock works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Scope = Literal["managed", "project", "user", "named"]
"""`named` is a manifest given by `--manifest`; it is trusted like a project's."""
Approval = Literal["auto", "prompt", "approve", "always", "writes", "host"]
NamePolicy = Literal["prefixed", "verbatim"]
ProcessPolicy = Literal["per-client", "shared"]
StartPolicy = Literal["first-need", "always", "on-call"]
EraPolicy = Literal["auto", "modern", "legacy"]
LossyPolicy = Literal["error", "warn"]
EraChoice = Literal["client", "modern"]
"""Of a server that speaks both eras: the client's own, or the modern one for every client that no server can ask anything."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a declaration stands."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Rule:
    """A glob over one server's own tool names (case-sensitive, `*` matches any characters), and its line."""

    glob: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class EnvValue:
    """One variable of a child's environment: copied from Interlock's own (`source`), read from `file`, or a non-secret
    `literal`."""

    name: str
    source: str | None = None
    literal: str | None = None
    file: Path | None = None
    """Absolute. Read at each start of the child, where only the user can read it."""
    logical: str | None = None
    """The literal as it is written, where it begins with `${projectRoot}`."""


@dataclass(frozen=True, slots=True)
class HeaderValue:
    """One HTTP header sent upstream; its value comes from the environment variable `source`, from `file`, or is a plain
    `literal`.

    `prefix` goes before the variable's or the file's value, as in `Bearer `.
    """

    name: str
    source: str | None = None
    literal: str | None = None
    prefix: str = ""
    file: Path | None = None
    """Absolute. Read at each request, where only the user can read it."""


@dataclass(frozen=True, slots=True)
class StdioTransport:
    """A child process. `command` is the argument vector for this platform; `cwd` is absolute."""

    command: tuple[str, ...]
    cwd: Path
    env: tuple[EnvValue, ...] = ()
    declared: tuple[str, ...] = ()
    """The command as it is written: its program not looked for, `${projectRoot}` not filled in."""
    declared_cwd: str | None = None
    """The same of `cwd`; None where none is written."""


@dataclass(frozen=True, slots=True)
class OAuth:
    """How to get a grant from the server's authorization server. Everything unset is discovered."""

    flow: Literal["browser", "device", "client-credentials"] = "browser"
    scopes: tuple[str, ...] = ()
    """Asked for in place of what the server names; empty: what the server names."""
    resource: str | None = None
    """Overrides the `resource` parameter (RFC 8707)."""
    client_id: str | None = None
    client_id_env: str | None = None
    client_secret_env: str | None = None
    client_metadata_url: str | None = None
    """A Client ID Metadata Document that somebody hosts for this client."""
    issuer: str | None = None
    """The only authorization server to sign in at, by its issuer identifier; unset: the one that the server names."""
    callback_port: int | None = None
    """The loopback port of the redirect URI; unset: a stable one of our own."""
    allow_missing_pkce: bool = False
    """Go on where the authorization server does not say that it checks PKCE. Not conforming."""


@dataclass(frozen=True, slots=True)
class TokenSource:
    """Where a personal access token is read, at each start of a session: `env` is tried first, then `file`."""

    env: str | None = None
    file: Path | None = None


@dataclass(frozen=True, slots=True)
class Replay:
    """A tool whose last successful call is repeated when a session is rebuilt, with the named arguments (empty: all)."""

    tool: str
    remember: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HttpTransport:
    """Streamable HTTP (`kind="http"`) or the 2024-11-05 HTTP+SSE transport (`kind="sse"`).

    Exactly one of `endpoint` and `endpoint_env` is set; the variable is read when the server is first needed.
    """

    kind: Literal["http", "sse"] = "http"
    endpoint: str | None = None
    endpoint_env: str | None = None
    headers: tuple[HeaderValue, ...] = ()
    oauth: OAuth | None = None
    token: TokenSource | None = None
    """A personal access token. Never together with `oauth`."""
    session_headers: tuple[HeaderValue, ...] = ()
    """Sent with the request that opens a session; with every request where the protocol has no sessions."""
    replay: tuple[Replay, ...] = ()
    """Calls that are made again after a session was rebuilt, so that the server knows its caller."""


Transport = StdioTransport | HttpTransport


@dataclass(frozen=True, slots=True)
class ToolOverride:
    """What the manifest says of one tool, by its own name."""

    approval: Approval | None = None
    read: bool | None = None
    """True: declared a read, False: declared a write, None: nothing said."""
    timeout_seconds: float | None = None
    origin: Origin | None = None


@dataclass(frozen=True, slots=True)
class Policy:
    """Limits and approvals of one server, defaults filled in."""

    default_approval: Approval | None = None
    default_approval_origin: Origin | None = None
    writes_approval: Approval | None = None
    writes_approval_origin: Origin | None = None
    startup_timeout_seconds: float = 30.0
    tool_timeout_seconds: float = 300.0
    max_result_bytes: int | None = None
    require_output_schema: bool = False


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """One integration, ready to be started and judged."""

    key: str
    integration_id: str
    scope: Scope
    origin: Origin
    transport: Transport
    policy: Policy = field(default_factory=Policy)
    enabled: bool = True
    required: bool = False
    owner: str | None = None
    purpose: str | None = None
    allow: tuple[Rule, ...] | None = None
    """None: nothing said, all tools allowed. An empty tuple allows none."""
    deny: tuple[Rule, ...] = ()
    """Denies of this entry and, always, those of user and managed scope for the same key."""
    tools: Mapping[str, ToolOverride] = field(default_factory=dict)
    names: NamePolicy = "prefixed"
    processes: ProcessPolicy = "per-client"
    start: StartPolicy = "first-need"
    era: EraPolicy = "auto"
    lossy: LossyPolicy = "error"
    """What `generate` does where a host cannot express all of this entry."""
    era_choice: EraChoice = "client"
    unenforced: tuple[str, ...] = ()
    """Accepted fields that this release does not act on yet, as dotted paths; `check` and `up` say so."""
    blocked: str | None = None
    """Why this server may not run (not trusted, refused field), or None."""


@dataclass(frozen=True, slots=True)
class Gateway:
    """Everything that one run of Interlock serves: the merged servers, in key order, and what identifies the set."""

    servers: Mapping[str, ServerConfig]
    files: tuple[Path, ...]
    digest: str
    """SHA-256 over the content of all files: the configuration generation."""
    notes: tuple[str, ...] = ()
    """What a person should know (a project entry replaces a user's, a field that is not enforced)."""
