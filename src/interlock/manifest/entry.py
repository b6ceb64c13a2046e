"""One checked document to one ServerConfig: defaults filled in, and what is not enforced named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

from interlock.manifest.config import (
    Approval,
    EraPolicy,
    LossyPolicy,
    NamePolicy,
    Origin,
    Policy,
    ProcessPolicy,
    Rule,
    ServerConfig,
    StartPolicy,
    ToolOverride,
)
from interlock.manifest.fields import DOCUMENT
from interlock.manifest.nodes import Node, Scalar, Table
from interlock.manifest.problems import Report
from interlock.manifest.shapes import Field, FlagField, NumberField, RecordField, TextField
from interlock.manifest.transports import Context, transport_of
from interlock.manifest.view import View


def default_key(integration_id: str) -> str:
    """The key where none is written: the last part of the id. It depends on the id alone, never on neighbours."""
    return integration_id.replace("/", ".").rpartition(".")[2]


def identity(document: View) -> tuple[str | None, str | None]:
    """Key and integration id, as far as they can be read from a document that may be wrong elsewhere."""
    integration_id = document.text("integrationId")
    key = document.text("key") or (default_key(integration_id) if integration_id else None)
    return key or None, integration_id


def denies(document: View, file: Path) -> tuple[Rule, ...] | None:
    """The deny rules of a document that may be wrong elsewhere; None where there is a deny that cannot be read."""
    node: Node | None = document.table
    for name in ("capability", "tools", "deny"):
        if not isinstance(node, Table):
            return None
        entry = node.entries.get(name)
        if entry is None:
            return ()
        parent, node = View(node), entry.node
    rules = parent.texts("deny")
    return None if rules is None else tuple(Rule(glob, Origin(file, at[0])) for glob, at in rules)


def build(document: View, context: Context, report: Report) -> ServerConfig | None:
    """The server that a structurally right document declares; None after reporting what else is wrong with it."""
    before = report.errors
    key, integration_id = identity(document)
    transport, blocked = transport_of(document.inner("transports"), context, report)
    tools = _overrides(document.inner("tools"), context.file)
    allow = _rules(document, "allow", context.file, key or "", report)
    deny = _rules(document, "deny", context.file, key or "", report)
    capability = document.inner("capability")
    if report.errors > before or key is None or integration_id is None or transport is None:
        return None
    reasons = [*blocked, *_refused(document, context.file, report)]
    enabled = document.flag("enabled")
    unenforced = tuple(path for path, _at in _with_status(document, DOCUMENT, "", "not enforced"))
    return ServerConfig(
        key=key,
        integration_id=integration_id,
        scope=context.scope,
        origin=Origin(context.file, document.at("integrationId")[0]),
        transport=transport,
        policy=_policy(document.inner("policy"), context.file),
        enabled=True if enabled is None else enabled,
        required=bool(document.flag("required")),
        owner=document.text("owner"),
        purpose=capability.text("purpose"),
        allow=allow,
        deny=deny or (),
        tools=tools,
        names=cast(NamePolicy, document.text("names") or "prefixed"),
        processes=cast(ProcessPolicy, document.text("processes") or "per-client"),
        start=cast(StartPolicy, document.text("start") or "first-need"),
        era=cast(EraPolicy, document.text("era") or "auto"),
        lossy=cast(LossyPolicy, document.text("lossy") or "error"),
        unenforced=unenforced,
        blocked="; ".join(reasons) or None,
    )


def _refused(document: View, file: Path, report: Report) -> Iterator[str]:
    for path, at in _with_status(document, DOCUMENT, "", "refused"):
        what = (
            "This release does not enforce it, and the server does not start, because without it one tenant "
            "could see another's data."
        )
        report.add(
            "refused-field", what, write="the entry without this line, where the server has a single tenant",
            field=path, at=at, severity="warning",
        )  # fmt: skip
        yield f"`{path}` ({file}:{at[0]}) is not enforced in this release, and running without it could mix tenants"


def _with_status(view: View, shape: RecordField, path: str, status: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """The fields present that have this status, as dotted paths."""
    for name, at, node in view.names():
        field = shape.fields.get(name)
        if field is None:
            continue
        inner = f"{path}.{name}" if path else name
        if field.status == status:
            if not _is_default(node, field):
                yield inner, at
        elif isinstance(field, RecordField) and isinstance(node, Table):
            yield from _with_status(View(node), field, inner, status)


def _is_default(node: Node, field: Field) -> bool:
    """`auth: none` asks for nothing, so nothing of it waits to be enforced."""
    default = field.default if isinstance(field, TextField | FlagField | NumberField) else None
    return default is not None and isinstance(node, Scalar) and node.value == default


def _rules(document: View, name: str, file: Path, key: str, report: Report) -> tuple[Rule, ...] | None:
    globs = document.inner("capability").inner("tools").texts(name)
    if globs is None:
        return None
    for index, (glob, at) in enumerate(globs):
        if glob.startswith(f"{key}/"):
            report.add(
                "prefixed-rule", "Rules are relative to the server, so the part before `/` is looked for in the "
                                 f"tool's own name: {glob!r}.",
                write=glob[len(key) + 1 :], field=f"capability.tools.{name}[{index}]", at=at, severity="warning",
            )  # fmt: skip
    return tuple(Rule(glob, Origin(file, at[0])) for glob, at in globs)


def _approval(view: View, name: str) -> Approval | None:
    return cast("Approval | None", view.text(name))


def _overrides(tools: View, file: Path) -> dict[str, ToolOverride]:
    return {
        name: ToolOverride(
            _approval(rule, "approval"), rule.flag("read"), rule.number("timeoutSeconds"), Origin(file, at[0])
        )
        for name, at, _node in tools.names()
        for rule in (tools.inner(name),)
    }


def _policy(policy: View, file: Path) -> Policy:
    def origin(name: str) -> Origin | None:
        return Origin(file, policy.at(name)[0]) if policy.has(name) else None

    defaults = Policy()
    startup, tool, result = (
        policy.number(name) for name in ("startupTimeoutSeconds", "toolTimeoutSeconds", "maxResultBytes")
    )
    return Policy(
        default_approval=_approval(policy, "defaultApproval"),
        default_approval_origin=origin("defaultApproval"),
        writes_approval=_approval(policy, "writesApproval"),
        writes_approval_origin=origin("writesApproval"),
        startup_timeout_seconds=defaults.startup_timeout_seconds if startup is None else float(startup),
        tool_timeout_seconds=defaults.tool_timeout_seconds if tool is None else float(tool),
        max_result_bytes=None if result is None else int(result),
        require_output_schema=bool(policy.flag("requireOutputSchema")),
    )
