"""Every field of agent-routing/v1: what it means, what it may hold, and whether this release acts on it."""

from __future__ import annotations

from interlock.manifest.shapes import (
    SEVERAL_LINES,
    FlagField,
    ListField,
    MapField,
    NumberField,
    RecordField,
    Status,
    TextField,
)
from interlock.manifest.transport_fields import TRANSPORTS

SCHEMA_VERSION = "agent-routing/v1"
APPROVALS = ("auto", "prompt", "approve", "always", "writes", "host")

_UNSEEN = r"\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"
KEY_PATTERN = rf"^(?! )[^/{_UNSEEN}]*[^/\s{_UNSEEN}]$"
_GLOB = TextField(about="A tool's own name, or a glob over names.", example="issues.*")


def _approval(about: str, example: str) -> TextField:
    return TextField(about=about, example=example, choices=APPROVALS)


def _words(about: str, example: str, status: Status) -> ListField:
    return ListField(about=about, example=example, item=TextField(about="One word.", example="subject"), status=status)


_SOURCE = RecordField(
    about="Where the server's code comes from.",
    example="source: {repository: https://example.com/acme/issue-mcp, version: 2.3.1}",
    fields={
        "repository": TextField(
            about="Address of the source repository.",
            example="repository: https://example.com/acme/issue-mcp",
            status="information",
        ),
        "version": TextField(
            about='Version that was reviewed. Quote it where it looks like a number (`"2.0"`).',
            example='version: "2.3.1"',
            status="information",
            most=128,
        ),
        "digest": TextField(
            about="Digest of the package that was reviewed.",
            example="digest: sha256:0123456789abcdef...",
            status="not enforced",
            most=256,
        ),
    },
)

_CAPABILITY = RecordField(
    about="What the server is for, and which of its tools may be used.",
    example="capability: {purpose: Search issues}",
    fields={
        "purpose": TextField(
            about="One sentence for people and for search.",
            example="purpose: Search issues in the current tenant",
            pattern=SEVERAL_LINES,
            status="information",
        ),
        "dataClass": TextField(
            about="How confidential the server's data is, in your own words.",
            example="dataClass: internal",
            status="not enforced",
            most=64,
        ),
        "tools": RecordField(
            about="Which tools exist for anyone. A tool that is left out or denied is neither listed nor callable.",
            example="tools: {allow: [issues.search, issues.get], deny: [issues.delete]}",
            fields={
                "allow": ListField(
                    about="Only tools matching one of these globs. Without it all tools; an empty list allows none. "
                    "Names are the server's own; `*` matches any characters; letter case counts.",
                    example="allow: [issues.search, issues.get]",
                    item=_GLOB,
                ),
                "deny": ListField(
                    about="Never tools matching one of these globs, whatever `allow` says. "
                    "A deny in user or managed scope holds in every scope.",
                    example="deny: [issues.delete, admin.*]",
                    item=_GLOB,
                ),
            },
        ),
    },
)

_POLICY = RecordField(
    about="Who is asked before a call, and limits.",
    example="policy: {defaultApproval: writes, toolTimeoutSeconds: 60}",
    fields={
        "defaultApproval": _approval(
            "For tools without a rule of their own. `auto` runs; `prompt`, `approve` and `always` ask every time "
            "(`always` needs a person at hand); "
            "`writes` asks unless `tools` declares the tool a read; `host` leaves the asking to a host that is "
            "known to ask. Without it: ask.",
            "defaultApproval: writes",
        ),
        "writesApproval": _approval(
            "For tools that `tools` does not declare a read; the stricter of this and `defaultApproval` holds.",
            "writesApproval: always",
        ),
        "startupTimeoutSeconds": NumberField(
            about="Longest wait for the server to start and answer its first request.",
            example="startupTimeoutSeconds: 30",
            least=0.1,
            most=3600,
            default=30,
        ),
        "toolTimeoutSeconds": NumberField(
            about="Longest wait for one call.",
            example="toolTimeoutSeconds: 300",
            least=0.1,
            most=86400,
            default=300,
        ),
        "maxResultBytes": NumberField(
            about="Largest result that is passed on whole.",
            example="maxResultBytes: 200000",
            least=1,
            most=1_000_000_000,
            whole=True,
            status="not enforced",
        ),
        "requireOutputSchema": FlagField(
            about="Withhold tools that declare no output schema.",
            example="requireOutputSchema: true",
            status="not enforced",
            default=False,
        ),
    },
)

DOCUMENT = RecordField(
    about="One MCP server behind Interlock.",
    example="schemaVersion: agent-routing/v1",
    required=("schemaVersion", "integrationId", "transports"),
    fields={
        "schemaVersion": TextField(
            about="Always `agent-routing/v1`.",
            example="schemaVersion: agent-routing/v1",
            choices=(SCHEMA_VERSION,),
        ),
        "integrationId": TextField(
            about="The server's full name, such as `team.purpose`; it stays the same wherever the server is used.",
            example="integrationId: acme.issue-search",
            pattern=r"^[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*$",
            rule="made of parts of letters, digits, `_` and `-`, joined by `.` or `/`",
            most=128,
        ),
        "key": TextField(
            about="Short name of the server, the part before `/` in tool names. Default: the last part of "
            "`integrationId` (`issue-search`).",
            example="key: issues",
            pattern=KEY_PATTERN,
            rule="without `/`, control characters or outer spaces",
            most=64,
        ),
        "owner": TextField(
            about="Who answers for this server.", example="owner: platform-team", status="information", most=256
        ),
        "enabled": FlagField(
            about="`false` keeps the entry without starting it.", example="enabled: false", default=True
        ),
        "required": FlagField(
            about="`true` makes Interlock not ready while this server is down.", example="required: true", default=False
        ),
        "source": _SOURCE,
        "capability": _CAPABILITY,
        "transports": TRANSPORTS,
        "policy": _POLICY,
        "tools": MapField(
            about="What holds for single tools, by the server's own exact name.",
            example="tools: {issues.get: {read: true}}",
            key=TextField(
                about="A tool's own name.",
                example="issues.get",
                pattern=rf"^[^*{_UNSEEN}]+$",
                rule="a tool's exact name (globs belong into `capability.tools`)",
                most=512,
            ),
            value=RecordField(
                about="Rules of one tool.",
                example="issues.get: {read: true, approval: auto}",
                fields={
                    "approval": _approval("Instead of the two approvals in `policy`.", "approval: auto"),
                    "read": FlagField(
                        about="`true`: the tool only reads. `false`: it writes. Your word counts; what the "
                        "server says of itself does not.",
                        example="read: true",
                    ),
                    "timeoutSeconds": NumberField(
                        about="Instead of `policy.toolTimeoutSeconds`.",
                        example="timeoutSeconds: 60",
                        least=0.1,
                        most=86400,
                    ),
                },
            ),
        ),
        "names": TextField(
            about="`prefixed` shows tools under names that begin with the key. `verbatim` shows the server's "
            "own names and is "
            "possible only where this is the only enabled server.",
            example="names: prefixed",
            choices=("prefixed", "verbatim"),
            default="prefixed",
        ),
        "processes": TextField(
            about="For stdio servers that keep state: `per-client` gives each client a process of its own; "
            "`shared` lets all clients use one. "
            "Servers of the stateless protocol are always shared.",
            example="processes: shared",
            choices=("per-client", "shared"),
            default="per-client",
        ),
        "start": TextField(
            about="`first-need` starts the server when something needs it; `always` at once; `on-call` only for "
            "a call, never for a list.",
            example="start: always",
            choices=("first-need", "always", "on-call"),
            default="first-need",
        ),
        "era": TextField(
            about="Protocol that the server speaks: `modern` (2026-07-28 and later), `legacy` (with "
            "`initialize`), or `auto` to find out.",
            example="era: legacy",
            choices=("auto", "modern", "legacy"),
            default="auto",
        ),
        "lossy": TextField(
            about="What `interlock generate` does where a host's file cannot express what the entry forbids or asks "
            "for. `error` refuses that host, by name; `warn` writes the entry without it and says so.",
            example="lossy: warn",
            choices=("error", "warn"),
            default="error",
        ),
        "isolation": RecordField(
            about="What keeps tenants, caches and networks apart.",
            example="isolation: {allowNetwork: [api.example.com]}",
            fields={
                "tenantFrom": TextField(
                    about="What tells tenants apart. A server that needs this does not start in this release: "
                    "without it one tenant could see another's data.",
                    example="tenantFrom: verified-token",
                    status="refused",
                    most=128,
                ),
                "cachePartition": _words(
                    "What a cached answer's key is made of.",
                    "cachePartition: [tenant, subject, scopes]",
                    "not enforced",
                ),
                "allowNetwork": _words(
                    "Hosts that the server may reach.", "allowNetwork: [api.example.com]", "not enforced"
                ),
            },
        ),
        "observability": RecordField(
            about="What is written down about calls.",
            example="observability: {log: [tool, status]}",
            fields={
                "log": _words(
                    "Fields of the audit record. All records have the same fields in this release.",
                    "log: [tool, status]",
                    "not enforced",
                ),
                "redact": _words(
                    "What is blacked out. Audit holds no arguments and no results in this release.",
                    "redact: [authorization, secret]",
                    "not enforced",
                ),
            },
        ),
    },
)
