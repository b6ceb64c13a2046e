"""The plan of an adoption, for people and for machines; no value of a secret."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypedDict

from interlock.cli import import_telling

if TYPE_CHECKING:
    from interlock.hosts.changes.applying import WholeFile
    from interlock.hosts.place import Format
    from interlock.hosts.plan import HostPlan, Plan


def lines(plan: Plan) -> Iterator[str]:
    from interlock.hosts.shown_paths import shortened

    for line in _paragraphs(plan):
        yield shortened(line, plan.machine)


def to_correct(plan: Plan) -> Iterator[str]:
    """What a person had better put right, with the way to do it: it keeps its server from being adopted, or from working at all."""
    from interlock.hosts.shown_paths import shortened

    told: dict[tuple[str, str], tuple[str, dict[str, None]]] = {}
    for host in plan.hosts:
        for left in host.stays:
            if left.problem and left.todo:
                file = left.spot.file if left.spot is not None else host.adapter.label
                first = str(left.spot or host.adapter.label)
                names = told.setdefault((file, left.todo), (first, {}))[1]
                if left.server:
                    names[f"{left.server}, {left.field}" if left.field else left.server] = None
    if told:
        yield "Correct first, then adopt again:"
    for (_file, todo), (first, names) in told.items():
        what = f" ({'; '.join(names)})" if names else ""
        yield shortened(f"  {first}{what}: {todo}", plan.machine)


def _paragraphs(plan: Plan) -> Iterator[str]:
    for host in plan.hosts:
        yield from _host(host)
    if plan.adopted:
        yield ""
        yield f"The manifest, {plan.target.file}:"
        for server in plan.imported.servers:
            off = "" if server.merged.taken.enabled else ", switched off"
            yield f"  + {server.key}{off}"
        for server in plan.imported.present:
            yield f"  = {server.key} (there already)"
        yield from _approvals(plan)
    if plan.secrets:
        yield "Secrets that are moved:"
        for secret in plan.secrets:
            yield f"  {secret.server}: {secret.todo}"
        yield f"  The files as they were, secrets and all, are kept in {plan.home / 'changes'} for `interlock restore`."
    if plan.unsettled:
        yield "Secrets that keep their servers where they are:"
        for secret in plan.unsettled:
            more = "; or --move-secrets" if secret.movable else ""
            yield f"  {secret.server}: {secret.todo}{more}"
    yield from _more(plan)
    if plan.closed:
        yield f"Quit first, they write their files from memory: {', '.join(each.label for each in plan.closed)}."


def _host(host: HostPlan) -> Iterator[str]:
    yield f"{host.adapter.label}:"
    for goes in host.goes:
        name = goes.declaration.server
        off = " (switched off)" if goes.declaration.state == "disabled" else ""
        renamed = f" as {goes.key}" if goes.key != name else ""
        yield f"  - {name}{off} leaves {goes.declaration.spot}{renamed}"
    if host.entry is not None:
        for item in host.entry.entries:
            yield f"  {'=' if item.state == 'same' else '+'} {item.server} in {host.entry.file}"
    for goes in host.replaced:
        yield f"  - {goes.declaration.server} leaves {goes.declaration.spot}: it led to Interlock too"
    if host.gains:
        yield f"    also reaches: {', '.join(host.gains)}"
    for left in host.stays:
        field = f", {left.field}" if left.field else ""
        what = f"{left.server}{field} stays ({left.spot})" if left.server else str(left.spot)
        yield f"    {what}: {left.why}"
    for note in host.notes:
        yield f"    {note}"


def _approvals(plan: Plan) -> Iterator[str]:
    from interlock.gates.approval import HOSTS_THAT_ASK
    from interlock.hosts.plan_notes import approvals

    told: dict[str, list[str]] = {}
    for key, text in approvals(plan, frozenset(HOSTS_THAT_ASK)).items():
        told.setdefault(text, []).append(key)
    for text, keys in told.items():
        yield f"    {', '.join(keys)}: {text}"


def _more(plan: Plan) -> Iterator[str]:
    if plan.imported.differences:
        yield "Differences between hosts, and what was taken:"
        yield from import_telling.differences(plan.imported)
    if plan.imported.notes:
        yield "To know:"
        for server, host, note in dict.fromkeys(plan.imported.notes):
            yield f"  {server}, {note.field} ({note.spot or import_telling.label(host)}): {note.text}"


def as_dict(plan: Plan) -> dict[str, object]:
    from interlock.gates.approval import HOSTS_THAT_ASK
    from interlock.hosts.plan_notes import approvals

    return {
        "hosts": [
            {
                "host": host.adapter.id, "file": host.file,
                "goes": [
                    {"server": each.declaration.server, "key": each.key, "file": each.declaration.file,
                     "line": each.declaration.spot.line, "scope": each.declaration.scope}
                    for each in host.goes
                ],
                "entry": [{"server": item.server, "state": item.state} for item in host.entry.entries] if host.entry else [],
                "stays": [
                    {"server": each.server, "field": each.field, "why": each.why, "todo": each.todo,
                     "file": each.spot.file if each.spot else None, "line": each.spot.line if each.spot else None}
                    for each in host.stays
                ],
                "gains": list(host.gains), "notes": host.notes,
            }
            for host in plan.hosts
        ],
        "manifest": {"file": str(plan.target.file), "text": plan.imported.text()},
        "approvals": dict(approvals(plan, frozenset(HOSTS_THAT_ASK))),
        "unsettled": [
            {"server": each.server, "field": each.field, "variable": each.variable,
             "file": each.spot.file if each.spot else None, "line": each.spot.line if each.spot else None}
            for each in plan.unsettled
        ],
        "quit_first": [each.id for each in plan.closed],
        **import_telling.as_dict(plan.imported),
    }  # fmt: skip


class Changed(TypedDict):
    file: str
    diff: list[str]


def differences(plan: Plan, extra: Sequence[WholeFile]) -> list[Changed]:
    """What would change in each file, without secrets. A moved secret's own file is only named. Raises Refused."""
    from interlock.hosts import generated
    from interlock.hosts.changes.applying import planned
    from interlock.hosts.masking import difference
    from interlock.hosts.shown_paths import shortened

    secret = {str(each.file) for each in plan.secrets}
    own = generated.place_of(plan.home)
    formats: dict[str, Format] = {each.file: each.format for each in plan.edits()}
    made: list[Changed] = []
    for each in planned(plan.machine, plan.edits(), extra):
        if each.file == own:
            continue
        shown = shortened(each.file, plan.machine)
        if each.file in secret:
            made.append({"file": each.file, "diff": [f"+++ {shown} (a secret, readable by you alone)"]})
        else:
            lines = difference(shown, each.before, each.after, formats.get(each.file, "yaml"))
            made.append({"file": each.file, "diff": lines})
    return made
