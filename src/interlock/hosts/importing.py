"""From what hosts declare to manifest documents: each server once, nothing lost in silence.

Only what a host really reads is imported. What is not is named with its reason; what differs between hosts is shown with
the rule that picked; secrets become references with an instruction. Nothing is written here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from interlock.hosts import registry
from interlock.hosts.candidate import Candidate, Note, Unfit, Value, conflicts
from interlock.hosts.carrying import candidate
from interlock.hosts.declaration import Declaration, Spot
from interlock.hosts.documents import Document, Means, Names, Secret, document, loaded, text_of
from interlock.hosts.identity import of_command, of_url
from interlock.hosts.machine import Machine
from interlock.hosts.merging import Difference, Merged, grouped, keyed, merged
from interlock.hosts.ours import ours
from interlock.hosts.shown_paths import with_tilde
from interlock.manifest.config import EnvValue, HeaderValue, HttpTransport, ServerConfig, StdioTransport
from interlock.manifest.logical import PROJECT_ROOT

Which = Literal["user", "project", "all"]
_SCOPES: Mapping[Which, frozenset[str]] = {
    "user": frozenset(("user", "local")),
    "project": frozenset(("project",)),
    "all": frozenset(("user", "local", "project")),
}
_ELSEWHERE = {
    "managed": "the administrator's: it stays",
    "system": "the administrator's: it stays",
    "plugin": "it comes with a plugin, which would go on bringing it",
    "extension": "it comes with an extension, which would go on bringing it",
}


@dataclass(frozen=True, slots=True)
class Left:
    """Something that is not carried over. `field` is empty where it is the whole entry."""

    server: str
    field: str
    why: str
    host: str = ""
    spot: Spot | None = None
    problem: bool = True
    """False where it is as it should be: Interlock's own entry, an entry that a plugin brings."""
    todo: str = ""
    """How a person puts it right, where that is known."""


@dataclass(slots=True)
class Imported:
    """One server of the new manifest, or one that the manifest has already (`existing`)."""

    merged: Merged
    document: Document = field(default_factory=dict)
    secrets: list[Secret] = field(default_factory=list)
    existing: ServerConfig | None = None

    @property
    def key(self) -> str:
        return self.existing.key if self.existing is not None else self.merged.key

    @property
    def sources(self) -> list[Candidate]:
        return self.merged.sources

    def remarks(self, machine: Machine | None) -> list[str]:
        """Where it comes from, for the comment above it."""
        lines = [
            f"From {registry.label(source.declaration.host)}: {source.declaration.spot}" for source in self.sources
        ]
        lines += [f"{secret.variable}: {secret.todo}" for secret in self.secrets if not secret.settled]
        return lines if machine is None else [with_tilde(line, machine) for line in lines]


@dataclass(slots=True)
class Import:
    servers: list[Imported] = field(default_factory=list)
    """New ones; those that the manifest has already are in `present`."""
    present: list[Imported] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    held: list[Secret] = field(default_factory=list)
    """Secrets that keep one host's entry of a server where it is, while other hosts' entries of it go."""
    differences: list[Difference] = field(default_factory=list)
    notes: list[tuple[str, str, Note]] = field(default_factory=list)
    """(server, host, note)."""
    machine: Machine | None = None

    @property
    def secrets(self) -> list[Secret]:
        return [secret for server in self.servers for secret in server.secrets]

    def text(self) -> str:
        """The new documents as YAML."""
        return text_of([(server.document, server.remarks(self.machine)) for server in self.servers])


def take(
    declarations: Sequence[Declaration],
    machine: Machine,
    *,
    target: Path,
    which: Which = "user",
    existing: Mapping[str, ServerConfig] | None = None,
    means: Means | None = None,
) -> Import:
    """The servers of these declarations as documents for the manifest `target`, of which `existing` stand there already."""
    made = Import(machine=machine)
    means = means or Means(environ=machine.environ)
    existing = existing or {}
    chosen = _chosen(declarations, machine, which, made, means)
    groups = [merged(group, machine.environ) for group in grouped(chosen, machine.environ)]
    fresh = []
    for each in groups:
        there = _standing(each, existing, machine)
        if there is not None:
            each.key = there.key
            each.differences = [replace(one, server=there.key) for one in each.differences]
            each.differences += list(_against(there, each))
            made.present.append(Imported(each, existing=there))
        elif any(source.name in existing for source in each.sources):
            taken = existing[next(source.name for source in each.sources if source.name in existing)]
            why = f"the manifest has another server under this key ({taken.origin}): rename one of the two"
            made.left += [_left(source.declaration, "", why) for source in each.sources]
        else:
            fresh.append(each)
    keyed(fresh, [*existing])
    scope = "project" if which == "project" else "user"
    names = Names(means.environ)
    for each in fresh:
        for value in each.taken.values.values():
            if value.source is not None:
                names.given.setdefault(value.source, "\0")  # no secret is given the name of another's variable
    ids = {config.integration_id for config in existing.values()}

    def documented(each: Merged, ids: set[str]) -> tuple[Imported, tuple[str, str] | None]:
        server = Imported(each, *document(each, means, names, ids))
        return server, _wrong(server, target, scope, machine)

    for each in fresh:
        server, why_not = documented(each, set(ids))
        free = [source for source in each.sources if all(value.secret is None for value in source.values.values())]
        if why_not is None and means.moving and 0 < len(free) < len(each.sources):
            # One host's secret that has no other place yet keeps that host's entry, and not the others of the server.
            unsettled = [secret for secret in server.secrets if not secret.settled]
            if unsettled:
                made.held += unsettled
                why = f"{unsettled[0].todo}; until then it stays as it is"
                made.left += [
                    _left(source.declaration, unsettled[0].field, why) for source in each.sources if source not in free
                ]
                rest = merged(free, machine.environ)
                rest.key, rest.differences = each.key, [replace(one, server=each.key) for one in rest.differences]
                each = rest
                server, why_not = documented(each, set(ids))
        if why_not is not None and len(each.sources) > 1:
            # A mistake in one host's entry keeps that one out, and not the others of the same server.
            alone = [
                (source, documented(replace(each, sources=[source], taken=source), set(ids))[1])
                for source in each.sources
            ]
            wrong = [(source, why) for source, why in alone if why is not None]
            made.left += [_left(source.declaration, *why) for source, why in wrong]
            right = [source for source, why in alone if why is None]
            if not right:
                continue
            rest = merged(right, machine.environ)
            rest.key, rest.differences = each.key, [replace(one, server=each.key) for one in rest.differences]
            server, why_not = documented(rest, set(ids))
        if why_not is None:
            ids.add(str(server.document["integrationId"]))
            made.servers.append(server)
        else:
            made.left += [_left(source.declaration, *why_not) for source in server.sources]
    for server in [*made.servers, *made.present]:
        made.differences += server.merged.differences
        made.notes += [(server.key, source.declaration.host, note) for source, note in server.merged.notes]
        made.left += list(_fields_left(server))
    return made


def _chosen(
    declarations: Sequence[Declaration], machine: Machine, which: Which, made: Import, means: Means
) -> list[Candidate]:
    chosen: list[Candidate] = []
    waiting: list[Declaration] = []
    for each in declarations:
        if each.server is None:
            if each.state == "broken":
                by = each.decided_by.by or "it is damaged"
                why_not = by if "cannot be read" in by else f"the file cannot be read: {by}"
                made.left.append(replace(_left(each, "", why_not), spot=_guilty(each), todo=_todo(each)))
        elif each.scope not in _SCOPES["all"]:
            made.left.append(_left(each, "", _ELSEWHERE.get(each.scope, "it is not the user's own"), problem=False))
        elif each.scope not in _SCOPES[which]:
            continue
        elif (why := _why_not(each)) is not None:
            made.left.append(replace(_left(each, "", *why), todo=_todo(each) if why[1] else ""))
        elif shadowed(each) and _winner(each, declarations).scope in _SCOPES[which]:
            waiting.append(each)
        else:
            chosen += _fitting(each, machine, which, made, means)
    for each in waiting:
        winner = _winner(each, declarations)
        for found in _fitting(each, machine, which, made, means):
            if any(one.declaration is winner and one.identity == found.identity for one in chosen):
                chosen.append(found)
            else:
                why_not = f"another entry of this name stands before it ({winner.spot})"
                made.left.append(_left(each, "", why_not))
    return chosen


def _fitting(each: Declaration, machine: Machine, which: Which, made: Import, means: Means) -> list[Candidate]:
    adapter = registry.find(each.host)
    if adapter is None:
        return []
    root = PROJECT_ROOT if which == "project" else machine.repository() or machine.folder
    try:
        return [candidate(each, adapter, machine, root, moving=means.moving)]
    except Unfit as unfit:
        made.left.append(replace(_left(each, unfit.field, unfit.why, spot=unfit.spot), todo=unfit.todo))
        return []


def shadowed(each: Declaration) -> bool:
    """Another entry of the same name and host runs in its place, here."""
    return each.state == "shadowed" or (
        each.state == "disabled" and each.decided_by.rule in ("higher-scope", "nearer-file")
    )


def elsewhere(each: Declaration) -> bool:
    """The user's own entry, which this host holds back only because the folder here is not trusted."""
    return each.state == "blocked" and each.decided_by.rule == "untrusted" and each.scope == "user"


def _winner(each: Declaration, declarations: Sequence[Declaration]) -> Declaration:
    """The entry that stands before this one; itself where none can be found."""
    name = (each.server or "").lower()
    rivals = [
        one
        for one in declarations
        if one.host == each.host and (one.server or "").lower() == name and not shadowed(one)
    ]
    exact = [one for one in rivals if each.decided_by.spot is not None and one.spot == each.decided_by.spot]
    return next(iter(exact or rivals), each)


def _why_not(each: Declaration) -> tuple[str, bool] | None:
    """Why an entry is not imported, and whether somebody should look at it."""
    entry = each.runs
    if each.state == "never-read":
        return f"{registry.label(each.host)} never reads this file", True
    if each.state == "broken" or entry is None:
        return f"{registry.label(each.host)} cannot read it: {each.decided_by.by or 'it is damaged'}", True
    kind = ours(entry)
    if kind is not None:
        return f"it is Interlock's own (`interlock {kind}`)", False
    if each.state == "blocked" and not elsewhere(each):
        return (
            f"{registry.label(each.host)} does not run it ({each.decided_by.by or each.decided_by.rule}), so Interlock must not either",
            True,
        )
    return None


def _todo(each: Declaration) -> str:
    """What the checks say to do about an entry that its host does not take."""
    if each.state == "never-read":
        return each.place.instead
    if each.decided_by.rule in ("syntax", "host-broken"):
        return f"Correct the file: {each.decided_by.by or 'it is damaged'}."
    problems = sorted(each.problems, key=lambda problem: problem.severity != "problem")
    return next((problem.todo for problem in problems if problem.todo), "") or f"Correct it: {each.decided_by.by}."


def _guilty(each: Declaration) -> Spot:
    return each.decided_by.spot or each.spot


def _left(each: Declaration, field_name: str, why: str, problem: bool = True, spot: Spot | None = None) -> Left:
    return Left(each.server or "", field_name, why, each.host, spot or each.spot, problem)


def _fields_left(server: Imported) -> Iterator[Left]:
    for source in server.sources:
        declaration, entry = source.declaration, source.declaration.runs
        for name in entry.ignored if entry is not None else ():
            why = f"{registry.label(declaration.host)} does not read this field"
            yield Left(server.key, name, why, declaration.host, declaration.spots.get(name, declaration.spot), False)
        for name in source.oauth:
            if name not in _OAUTH:
                why = "a manifest has no such setting for a sign-in"
                yield Left(server.key, f"oauth.{name}", why, declaration.host, declaration.spot)


_OAUTH = frozenset(
    ("clientId", "clientIdEnv", "clientSecretEnv", "clientMetadataUrl", "issuer", "resource", "callbackPort", "scopes")
)


def _wrong(server: Imported, target: Path, scope: str, machine: Machine) -> tuple[str, str] | None:
    """(field, reason) where the manifest's own checks refuse the document: then it is not written."""
    _configs, errors = loaded(text_of([(server.document, ())]), target, scope, machine.platform, machine.environ)
    if not errors:
        return None
    return errors[0].field, f"a manifest does not take it: {errors[0].what}"


# What the manifest has already


def _standing(each: Merged, existing: Mapping[str, ServerConfig], machine: Machine) -> ServerConfig | None:
    for config in existing.values():
        there = as_candidate(config, each.taken, machine)
        if there is None or there.identity != each.taken.identity:
            continue
        alike = all(not conflicts(there, source, machine.environ) for source in each.sources)
        if alike or any(source.name == config.key for source in each.sources):
            return config
    return None


def as_candidate(config: ServerConfig, like: Candidate, machine: Machine) -> Candidate | None:
    """A manifest's entry as an entry of a host, to compare it with those."""
    transport = config.transport
    if isinstance(transport, StdioTransport):
        words = transport.declared or transport.command
        values = {value.name: _value(value) for value in transport.env}
        return Candidate(
            declaration=like.declaration,
            identity=of_command(words, machine.home),
            kind="stdio",
            words=words,
            values=values,
        )
    if transport.endpoint is None:
        if like.endpoint is None or like.endpoint.source != transport.endpoint_env:
            return None
        return replace(like, values={value.name: _value(value) for value in transport.headers})
    return _remote(transport, like)


def _remote(transport: HttpTransport, like: Candidate) -> Candidate:
    values = {value.name: _value(value) for value in transport.headers}
    return Candidate(
        declaration=like.declaration, identity=of_url(transport.endpoint or ""), kind=transport.kind,
        url=transport.endpoint, values=values,
    )  # fmt: skip


def _value(value: EnvValue | HeaderValue) -> Value:
    prefix = value.prefix if isinstance(value, HeaderValue) else ""
    if value.file is not None:
        return Value(file=os.fspath(value.file), prefix=prefix)
    return Value(source=value.source, literal=value.literal, prefix=prefix)


def _against(there: ServerConfig, each: Merged) -> Iterator[Difference]:
    """Where the manifest's entry says something else than the hosts' do. It stays as it is."""
    taken = each.taken
    approval = taken.approvals.get("*")
    allow = None if there.allow is None else tuple(rule.glob for rule in there.allow)
    said: list[tuple[str, object, object]] = [
        ("enabled", there.enabled, taken.enabled),
        ("capability.tools.allow", allow, taken.allow),
        ("capability.tools.deny", {rule.glob for rule in there.deny} or None, set(taken.deny) or None),
        ("policy.defaultApproval", there.policy.default_approval, approval or there.policy.default_approval),
    ]
    said += [
        (f"tools.{tool}.approval", there.tools[tool].approval if tool in there.tools else None, word)
        for tool, word in taken.approvals.items()
        if tool != "*"
    ]
    manifest = Spot(os.fspath(there.origin.file), there.origin.line)
    for name, mine, hosts in said:
        if mine != hosts:
            source = taken.declaration
            values = (("manifest", manifest, _plain(mine)), (source.host, source.spot, _plain(hosts)))
            yield Difference(there.key, name, values, f"{_plain(mine)}: the manifest's, which is not changed")


def _plain(value: object) -> str:
    if value is None:
        return "(nothing)"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (tuple, set, frozenset)):
        return f"[{', '.join(sorted(str(each) for each in value))}]"
    return str(value)
