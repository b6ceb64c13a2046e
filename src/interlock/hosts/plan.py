"""The plan of an adoption: which entries leave which host, the one that comes, and what has to stay and why.

Nothing is written here. The edits, the manifest and the moved secrets are one change for `changes.apply`, so that one
`restore` takes all of it back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from interlock.hosts import child_environment, generated, generating, importing, plan_notes, registry, wanting
from interlock.hosts.adapter import Adapter
from interlock.hosts.candidate import Candidate
from interlock.hosts.changes.applying import planned
from interlock.hosts.changes.refused import Refused as Unchangeable
from interlock.hosts.declaration import Declaration
from interlock.hosts.documents import Means, Secret, loaded, text_of
from interlock.hosts.generated import Ledger
from interlock.hosts.generating import Generated
from interlock.hosts.importing import Import, Imported, Left, Which
from interlock.hosts.machine import Machine
from interlock.hosts.ours import ours, plain
from interlock.hosts.target import Target
from interlock.hosts.wanting import WriteScope
from interlock.hosts.writing import REMOVE, Edit, FileEdits, Wanted
from interlock.manifest.config import EnvValue, Gateway, HeaderValue, ServerConfig, StdioTransport

Connect = Callable[[str], Sequence[str]]
"""The command of Interlock's own entry, for one host."""


@dataclass(frozen=True, slots=True)
class Goes:
    """An entry that leaves a host's file, and the server of the manifest that it becomes."""

    declaration: Declaration
    key: str


@dataclass(slots=True)
class HostPlan:
    adapter: Adapter
    goes: list[Goes] = field(default_factory=list)
    stays: list[Left] = field(default_factory=list)
    entry: Generated | None = None
    """Interlock's own entry; None where the host gets none."""
    gains: tuple[str, ...] = ()
    """Servers that it did not have before."""
    notes: list[str] = field(default_factory=list)
    replaced: list[Goes] = field(default_factory=list)
    """Interlock's own entry under other names: with both, every tool would be there twice."""

    @property
    def file(self) -> str | None:
        return self.entry.file if self.entry is not None else None

    def edits(self) -> list[FileEdits]:
        """The new entry first: so a file keeps the manner in which its entries are written."""
        made = [] if self.entry is None else list(self.entry.edits)
        by_file: dict[str, list[Goes]] = {}
        for each in [*self.goes, *self.replaced]:
            by_file.setdefault(each.declaration.file, []).append(each)
        return made + [_removal(self.adapter, file, goes) for file, goes in by_file.items()]


@dataclass(slots=True)
class Plan:
    imported: Import
    """Only of what is adopted."""
    target: Target
    content: bytes | None
    """The manifest afterwards; None where it stays as it is."""
    hosts: list[HostPlan]
    secrets: list[Secret]
    """Those that are moved into files."""
    unsettled: list[Secret]
    """Those that keep their servers where they are."""
    machine: Machine
    home: Path
    moving: bool = False
    """Secrets are moved, where they can be."""

    @property
    def adopted(self) -> list[str]:
        return list(dict.fromkeys(each.key for host in self.hosts for each in host.goes))

    @property
    def closed(self) -> list[Adapter]:
        """Hosts that write their file from memory: they must not run meanwhile."""
        return [host.adapter for host in self.hosts if host.goes and host.adapter.closed.value]

    def edits(self) -> list[FileEdits]:
        made = [edit for host in self.hosts for edit in host.edits()]
        owned = {
            where: each for host in self.hosts if host.entry is not None for where, each in host.entry.owned.items()
        }
        return made + list(generated.edits(self.home, owned))


def make(
    declarations: Sequence[Declaration],
    machine: Machine,
    *,
    home: Path,
    target: Target,
    connect: Connect,
    which: Which = "user",
    means: Means | None = None,
    ledger: Ledger | None = None,
) -> Plan:
    means = replace(means or Means(environ=machine.environ), moving=True)
    made = importing.take(declarations, machine, target=target.file, which=which, existing=target.servers, means=means)
    work = _Work(
        declarations, machine, made, target, connect, "project" if which == "project" else "user", ledger or Ledger()
    )
    work.settle()
    return replace(work.result(home), moving=means.secrets is not None)


@dataclass(slots=True)
class _Work:
    declarations: Sequence[Declaration]
    machine: Machine
    made: Import
    target: Target
    connect: Connect
    scope: WriteScope
    ledger: Ledger
    kept: dict[int, Left] = field(default_factory=dict)
    """By id of its declaration: entries that stay although they could be imported."""

    def settle(self) -> None:
        """Find what has to stay until nothing changes any more: one that stays may keep another."""
        for host in dict.fromkeys(source.declaration.host for server in self._all() for source in server.sources):
            self._host_takes_it(host)
        for server in self._all():
            for source in server.sources:
                why = self._unsafe(server, source)
                if why is not None:
                    self._keep(source.declaration, server.key, *why)
        before = -1
        while before != len(self.kept):
            before = len(self.kept)
            for server in self._all():
                for source in self._going(server):
                    self._neighbours_allow(source.declaration, server.key)
                    self._other_hosts_allow(source.declaration, server.key)

    def _all(self) -> list[Imported]:
        return [*self.made.servers, *self.made.present]

    def _going(self, server: Imported) -> list[Candidate]:
        return [source for source in server.sources if id(source.declaration) not in self.kept]

    def _keep(self, each: Declaration, key: str, field_name: str, why: str, todo: str = "") -> None:
        self.kept.setdefault(id(each), Left(each.server or key, field_name, why, each.host, each.spot, todo=todo))

    def _host_takes_it(self, host: str) -> None:
        adapter = registry.find(host)
        if adapter is None:
            return
        trial = self._generated(adapter, ())
        if trial.refused:
            refused = trial.refused[0]
            self._keep_all(host, f"Interlock's own entry cannot be written: {refused.why}", refused.todo)
            return
        trouble = self._unwritable(trial.edits)
        if trouble is not None:
            self._keep_all(host, f"Interlock's own entry cannot be written: {trouble}", _correct(trouble))
            return
        self._files_let_go(adapter)

    def _keep_all(self, host: str, why: str, todo: str) -> None:
        for server in self._all():
            for source in server.sources:
                if source.declaration.host == host:
                    self._keep(source.declaration, server.key, "", why, todo)

    def _files_let_go(self, adapter: Adapter) -> None:
        """An entry stays where its file cannot be changed; those in other files go all the same."""
        by_file: dict[str, list[Goes]] = {}
        for server in self._all():
            for source in server.sources:
                if source.declaration.host == adapter.id:
                    by_file.setdefault(source.declaration.file, []).append(Goes(source.declaration, server.key))
        for file, goes in by_file.items():
            trouble = self._unwritable([_removal(adapter, file, goes)])
            for each in goes if trouble is not None else ():
                why = f"its file cannot be changed: {trouble}"
                self._keep(each.declaration, each.key, "", why, _correct(trouble))

    def _unwritable(self, edits: Sequence[FileEdits]) -> Unchangeable | None:
        try:
            planned(self.machine, edits)
        except Unchangeable as refused:
            return refused
        return None

    def _generated(
        self, adapter: Adapter, configs: Iterable[ServerConfig], keeping: Collection[str] | None = None
    ) -> Generated:
        gateway = Gateway({config.key: config for config in configs}, (), "")
        root = (self.machine.repository() or self.machine.folder) if self.scope == "project" else None
        wanted: Wanted = wanting.connect(self.connect(adapter.id), gateway, self.scope, root)
        return generating.plan(adapter, self.machine, [wanted], scope=self.scope, ledger=self.ledger, keeping=keeping)

    def _unsafe(self, server: Imported, source: Candidate) -> tuple[str, str] | None:
        """Why this entry works where it is and might not behind Interlock."""
        if server.existing is not None and source.enabled and (server.existing.blocked or not server.existing.enabled):
            return "enabled", f"the manifest has it and does not run it ({server.existing.origin})"
        if server.existing is None:
            secret = next((each for each in server.secrets if not each.settled), None)
            if secret is not None:
                return secret.field, f"{secret.todo}; until then it stays as it is"
        environ = self.machine.environ
        withheld = self._withheld(server, source.declaration.host)
        if withheld:
            what = f"{registry.label(source.declaration.host)} would not pass on {', '.join(withheld)}, which it needs"
            return "", f"{what}; a secret can be moved into a file (`--move-secrets`)"
        for name, value in source.values.items():
            if value.secret is None:
                continue
            there = self._reference(server, name)
            if there is not None and there not in environ:
                what = f"its own secret would be replaced by the variable {there}, which is not set here"
                return name, what
        return None

    def _withheld(self, server: Imported, host: str) -> tuple[str, ...]:
        """Variables of this server that are set here and do not get through this host's entry."""
        adapter = registry.find(host)
        if adapter is None:
            return ()
        if server.existing is not None:
            names = wanting.variables(server.existing)
        else:
            taken = server.merged.taken
            values = [*taken.values.values(), *([taken.endpoint] if taken.endpoint is not None else [])]
            names = tuple(each.source for each in values if each.source is not None)
            names += tuple(each.variable for each in server.secrets if each.file is None)
        wanted = Wanted(
            name=wanting.CONNECT_KEY,
            scope=self.scope,
            connect=tuple(self.connect(host)),
            pass_names=tuple(sorted(set(names))),
        )
        held = child_environment.withheld(adapter, adapter.write(wanted, self.machine), wanted.pass_names)
        return tuple(name for name in held if name in self.machine.environ)

    def _reference(self, server: Imported, name: str) -> str | None:
        """The variable that the manifest takes this value from, where it is one."""
        if server.existing is not None:
            transport = server.existing.transport
            given: Sequence[EnvValue | HeaderValue] = (
                transport.env if isinstance(transport, StdioTransport) else transport.headers
            )
            return next((value.source for value in given if value.name == name), None)
        taken = server.merged.taken.values.get(name)
        return None if taken is None else taken.source

    def _neighbours_allow(self, each: Declaration, key: str) -> None:
        """An entry of the same name elsewhere in this host must not be broken, nor begin to run, when this one goes."""
        adapter = registry.find(each.host)
        going = {id(source.declaration) for server in self._all() for source in self._going(server)}
        name = (each.server or "").lower()
        for other in self.declarations:
            if other is each or other.host != each.host or (other.server or "").lower() != name or id(other) in going:
                continue
            if other.state == "never-read":
                continue
            if adapter is not None and adapter.merge.value == "fields":
                self._keep(each, key, "", f"{other.spot} has the same name, and {adapter.label} puts both together")
            elif importing.shadowed(other):
                self._keep(each, key, "", f"without it the entry of the same name at {other.spot} would begin to run")

    def _other_hosts_allow(self, each: Declaration, key: str) -> None:
        """Several hosts may read the same file: an entry leaves it for all of them, or for none."""
        for other in self.kept.values():
            if other.host != each.host and other.spot == each.spot:
                self._keep(
                    each, key, "", f"{registry.label(other.host)} reads this entry too, and there it has to stay"
                )
                return

    def result(self, home: Path) -> Plan:
        adopted = Import(
            servers=[each for each in self.made.servers if self._going(each)],
            present=[each for each in self.made.present if self._going(each)],
            left=self.made.left,
            machine=self.machine,
        )
        keys = {each.key for each in [*adopted.servers, *adopted.present]}
        adopted.differences = [each for each in self.made.differences if each.server in keys]
        adopted.notes = [each for each in self.made.notes if each[0] in keys]
        content = self.target.appended(adopted.text(), self.machine) if adopted.servers else None
        configs = list(self._configs(adopted))
        hosts = list(self._hosts(adopted, configs))
        moved = [secret for secret in adopted.secrets if secret.file is not None and not secret.is_set]
        unsettled = [each for server in self.made.servers for each in server.secrets if not each.settled]
        unsettled += self.made.held
        return Plan(adopted, self.target, content, hosts, moved, unsettled, self.machine, home)

    def _configs(self, adopted: Import) -> Iterable[ServerConfig]:
        """Everything that the manifest declares afterwards: all of it has to be reached through each entry."""
        yield from self.target.servers.values()
        text = text_of([(each.document, ()) for each in adopted.servers])
        yield from loaded(text, self.target.file, self.target.scope, self.machine.platform, self.machine.environ)[0]

    def _hosts(self, adopted: Import, configs: Sequence[ServerConfig]) -> Iterable[HostPlan]:
        everything = [config.key for config in configs if config.enabled]
        written: dict[str, str] = {}
        for host in registry.IDS:
            goes = [
                Goes(source.declaration, server.key)
                for server in [*adopted.servers, *adopted.present]
                for source in self._going(server)
                if source.declaration.host == host
            ]
            stays = [left for left in self.kept.values() if left.host == host]
            stays += [left for left in self.made.left if left.host == host and not left.field]
            stays += [
                left
                for left in self.made.left
                if left.host == host and left.field and not _of_one_that_goes(left, goes)
            ]
            adapter = registry.find(host) if goes or stays else None
            if adapter is None:
                continue
            plan = HostPlan(adapter, goes, list(dict.fromkeys(stays)))
            if goes:
                plan.entry = self._entry(adapter, configs, {id(each.declaration) for each in goes}, written, plan)
                had = {each.key for each in goes}
                plan.gains = tuple(key for key in everything if key not in had)
                plan.notes += plan.entry.notes
                plan.notes += plan_notes.of_host(adapter, goes, self.machine, configs)
            yield plan

    def _entry(
        self,
        adapter: Adapter,
        configs: Sequence[ServerConfig],
        going: set[int],
        written: dict[str, str],
        plan: HostPlan,
    ) -> Generated:
        """Interlock's own entry. Entries that `generate` wrote before go with the others; of a shared file one host writes it."""
        keeping = [
            each.server
            for each in self.declarations
            if each.host == adapter.id and each.server is not None and id(each) not in going
        ]
        made = self._generated(adapter, configs, keeping)
        first = written.setdefault(made.file or "", adapter.id)
        if first == adapter.id:
            self._replace_own(made, plan)
            return made
        plan.notes.append(
            f"{adapter.label} reads {made.file} as {registry.label(first)} does: the one entry there, with its names, is for both."
        )
        return replace(made, edits=(), entries=(), owned={}, notes=())

    def _replace_own(self, made: Generated, plan: HostPlan) -> None:
        for each in self.declarations:
            entry = each.runs
            if each.host != made.host or each.file != made.file or entry is None or ours(entry) != "connect":
                continue
            if each.server == wanting.CONNECT_KEY or each.state != "effective":
                continue
            if plain(entry):
                plan.replaced.append(Goes(each, wanting.CONNECT_KEY))
                plan.stays = [left for left in plan.stays if (left.spot, left.server) != (each.spot, each.server)]
            else:
                plan.notes.append(
                    f"{each.server} ({each.spot}) leads to Interlock too, with words of its own: its tools may now be there twice."
                )


def _correct(refused: Unchangeable | None) -> str:
    return f"Correct this: {refused.why.removeprefix('it is left as it is: ')}." if refused is not None else ""


def _of_one_that_goes(left: Left, goes: Sequence[Goes]) -> bool:
    """A field that is left out of an entry that goes all the same."""
    return any(left.server == each.key and left.spot and left.spot.file == each.declaration.file for each in goes)


def _removal(adapter: Adapter, file: str, goes: Sequence[Goes]) -> FileEdits:
    place = goes[0].declaration.place
    edits = []
    for each in goes:
        path = tuple(str(step) for step in each.declaration.path)
        edits.append(Edit((*path[:-1], each.declaration.server or path[-1]), REMOVE))
    return FileEdits(
        file=file, format=place.format, comments=generating.keeps_comments(adapter, place), edits=tuple(edits),
        list_key=generating.LIST_KEYS.get(adapter.id) if isinstance(goes[0].declaration.path[-1], int) else None,
    )  # fmt: skip
