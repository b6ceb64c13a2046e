"""From the manifest's servers to the changes of one host's files: what is written, what is lost, and what is refused.

Nothing is written here: `changes` does that with the edits. Entries that Interlock did not write are left alone; its own are
known from its records (generated.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from interlock.hosts import generated
from interlock.hosts.adapter import Adapter
from interlock.hosts.generated import Ledger, Owned, Where
from interlock.hosts.layering import Layer, leaves
from interlock.hosts.machine import Machine
from interlock.hosts.ours import ours
from interlock.hosts.outcome import Generated, Item, Lost, Refused
from interlock.hosts.place import PROJECT, Format, Place
from interlock.hosts.reading import BadEntry, entries_of, project_keys, refusal
from interlock.hosts.wanting import Prepared, WriteScope
from interlock.hosts.writing import FileEdits, Json, Loss, Rendered, Wanted
from interlock.manifest.config import HttpTransport, LossyPolicy

_NOWHERE = os.path.join(os.devnull, "nothing")

__all__ = ["Generated", "Item", "Lost", "Refused", "file_for", "place_for", "plan", "standing"]

LIST_KEYS: Mapping[str, str] = {"continue": "name"}
"""Hosts whose entries are a list, and the member that names one."""


def plan(
    adapter: Adapter,
    machine: Machine,
    wanted: Sequence[Wanted | Prepared],
    lossy: LossyPolicy | None = None,
    *,
    scope: WriteScope | None = None,
    ledger: Ledger | None = None,
    replacing: bool = False,
    keeping: Collection[str] | None = (),
) -> Generated:
    """`lossy` overrides what each entry says. `replacing`: entries that are not ours may be taken over.

    Entries of ours that are not wanted any more go away, unless `keeping` names them; None keeps all.
    """
    prepared = [each if isinstance(each, Prepared) else Prepared(each, None) for each in wanted]
    scope = scope or (prepared[0].wanted.scope if prepared else "user")
    work = _Work(adapter, standing(machine, scope, prepared), scope, ledger or Ledger(), lossy, replacing)
    if not work.open():
        return work.result()
    for each in prepared:
        work.add(each)
    if keeping is not None:
        work.remove_gone(keeping)
    return work.result()


def place_for(adapter: Adapter, scope: WriteScope) -> Place | None:
    """Where entries of this scope are written."""
    return next((place for place in adapter.places if place.scope == scope and place.writes), None)


def file_for(place: Place, machine: Machine) -> str | None:
    """The first path that exists, else an older version's that does, else the first. A project's never lies above the project."""
    paths = list(place.find(machine))
    if place.scope == "project":
        paths = [path for path in paths if path.startswith(machine.join(machine.folder, ""))] or paths[:1]
    older = place.older(machine) if place.older is not None else ()
    return next((path for path in (*paths, *older) if os.path.exists(machine.real(path))), paths[0] if paths else None)


def unsure_which(adapter: Adapter, place: Place, machine: Machine) -> str:
    """A word for people where an older version's file is there: nobody knows which one the version here reads."""
    older = [
        path for path in (place.older(machine) if place.older is not None else ()) if os.path.exists(machine.real(path))
    ]
    if not older:
        return ""
    newer = next(iter(place.find(machine)), "")
    return (
        f"{adapter.label} reads {newer} or, in older versions, {older[0]}, and which of the two the version here reads is not "
        "known: its own list of MCP servers tells. If the entry does not appear there, write it into the other file."
    )


def standing(machine: Machine, scope: WriteScope, prepared: Sequence[Prepared] = ()) -> Machine:
    """In project scope the file belongs into the project's root, wherever below it the command was typed."""
    if scope != "project":
        return machine
    root = next((each.wanted.project_root for each in prepared if each.wanted.project_root), None)
    return replace(machine, folder=root or machine.repository() or machine.folder)


def keeps_comments(adapter: Adapter, place: Place) -> bool:
    """Whether comments in this file may stay there."""
    return place.format in ("toml", "yaml") or adapter.tolerance.leaves_comments


class _Work:
    """One run over one host."""

    def __init__(
        self, adapter: Adapter, machine: Machine, scope: WriteScope, ledger: Ledger, lossy: LossyPolicy | None,
        replacing: bool,
    ) -> None:  # fmt: skip
        self.adapter = adapter
        self.machine = machine
        self.scope = scope
        self.ledger = ledger
        self.lossy = lossy
        self.replacing = replacing
        self.file: str | None = None
        self.table: Where = ()
        self.entries: dict[str, object] = {}
        self.layers: dict[str, Layer] = {}
        self.items: list[Item] = []
        self.losses: list[Lost] = []
        self.refused: list[Refused] = []
        self.notes: list[str] = []

    def open(self) -> bool:
        """Find the file and what stands in it."""
        place = place_for(self.adapter, self.scope)
        if place is None:
            why = f"Interlock writes no file of {self.adapter.label} in {self.scope} scope."
            self.refused.append(Refused("", why, _other_scopes(self.adapter)))
            return False
        self.file = file_for(place, self.machine)
        if self.file is None:
            self.refused.append(Refused("", f"{self.adapter.label} has no file of {self.scope} scope on this machine."))
            return False
        layer = self._layer(self.file, place)
        if layer is None or self._unreadable(self.file, place, layer):
            return False
        self.table = _resolved(place.tables[0], layer.value, self.machine)
        if not isinstance(layer.get(self.table), (list if place.listed else dict, type(None))):
            why = f"`{'.'.join(self.table)}` in {self.file} is not {'a list' if place.listed else 'an object'}."
            self.refused.append(Refused("", why, "Correct the file first; it is left as it is."))
            return False
        if unsure := unsure_which(self.adapter, place, self.machine):
            self.notes.append(unsure)
        layer.list_key = LIST_KEYS.get(self.adapter.id)
        if layer.document is not None:
            found = entries_of(layer.document, (self.table,), self.machine, listed=place.listed)
            self.entries = {name: raw for name, raw, _base in found}
        return True

    def _unreadable(self, file: str, place: Place, layer: Layer) -> bool:
        """The host would not see the entry: our parser takes more than its own."""
        why, at = (None, None) if layer.document is None else refusal(self.adapter, place, layer.document)
        if why is None:
            return False
        where = f"{file}:{at[0]}" if at is not None else file
        self.refused.append(
            Refused(
                "",
                f"{where} cannot be read by {self.adapter.label}: {why}.",
                "Correct the file first; it is left as it is.",
            )
        )
        return True

    def _layer(self, file: str, place: Place | FileEdits) -> Layer | None:
        if file not in self.layers:
            comments = place.comments if isinstance(place, FileEdits) else keeps_comments(self.adapter, place)
            layer = Layer.read(self.machine, file, place.format, comments)
            if layer.fault:
                where = f"{file}:{layer.at[0]}" if layer.at is not None else file
                self.refused.append(
                    Refused(
                        "", f"{where} cannot be read: {layer.fault}.", "Correct the file first; it is left as it is."
                    )
                )
                return None
            self.layers[file] = layer
        return self.layers[file]

    # One entry

    def add(self, prepared: Prepared) -> None:
        wanted = replace(prepared.wanted, file=self.file)
        trouble = self._name_trouble(wanted.name) or self._transport_trouble(wanted)
        if trouble is not None:
            self.refused.append(trouble)
            return
        rendered = self.adapter.write(wanted, self.machine)
        entry = _with_cwd(rendered.entry, prepared, self.adapter)
        losses = _once((*prepared.losses, *rendered.losses))
        weak = [loss for loss in losses if loss.weakens]
        policy = self.lossy or (wanted.server.lossy if wanted.server is not None else "error")
        if not entry or (weak and policy == "error"):
            self._refuse(wanted.name, weak)
            return
        path = (*self.table, wanted.name)
        existing = self._existing(wanted.name)
        foreign = existing is not None and not self._is_ours(path, existing, wanted)
        if foreign and existing != entry and not self.replacing:
            why = f"{self.file} has an entry of this name that Interlock did not write."
            self.refused.append(
                Refused(wanted.name, why, "`--replace` takes it over (the file is backed up first).", True)
            )
            return
        trouble = self._extras_trouble(wanted.name, rendered)
        if trouble is not None:
            self.refused.append(trouble)
            return
        self.losses += [Lost(wanted.name, loss) for loss in losses]
        self.notes += [note for note in (*prepared.notes, *rendered.notes) if note not in self.notes]
        self._put(wanted.name, path, entry, existing, foreign, bool(weak))
        self._extras(wanted.name, wanted, rendered)

    def _put(
        self, server: str, path: Where, entry: Mapping[str, Json], existing: object, foreign: bool, lossy: bool
    ) -> None:
        assert self.file is not None
        layer = self.layers[self.file]
        owned = self.ledger.at(self.file, path)
        before = existing if isinstance(existing, dict) else None
        if existing is None or (foreign and existing != entry):
            layer.set(path, dict(entry))
        elif existing != entry:
            layer.update(path, entry, owned.members if owned is not None and not foreign else (), existing)
        changed = layer.touched(path)
        if owned is not None and before is not None and changed and _by_hand(owned, before):
            self.notes.append(f'"{server}" was changed by hand since Interlock wrote it; it is written anew.')
        state = "new" if existing is None else "same" if not changed else "replaced" if foreign else "changed"
        known = set(leaves(entry))
        stale = tuple(each for each in (owned.members if owned is not None else ()) if each not in known)
        self.items.append(Item(server, path, entry, state, before, lossy, stale))
        if not foreign or changed:
            layer.own(path, Owned(self.adapter.id, server, generated.digest(entry), leaves(entry)))

    def _extras_trouble(self, server: str, rendered: Rendered) -> Refused | None:
        for edits in rendered.edits:
            layer = self._layer(edits.file, edits)
            if layer is None:
                fault = self.refused.pop()
                return Refused(server, fault.why, fault.todo)
            for edit in edits.edits:
                conflict = layer.conflict(edit, self.ledger)
                if conflict is not None:
                    return Refused(
                        server, f"{conflict}, and the entry needs it.", "Change it there, or leave this server out."
                    )
        return None

    def _extras(self, server: str, wanted: Wanted, rendered: Rendered) -> None:
        """What belongs to the entry in other places: permission rules, lists."""
        for edits in rendered.edits:
            layer = self.layers[edits.file]
            for edit in edits.edits:
                layer.take(self.adapter.id, edit, self.ledger)
        # What it wants of a list stands alone only where nothing stands there: asked with no file in sight.
        handled = set()
        for edits in self.adapter.write(wanted, replace(self.machine, root=_NOWHERE)).edits:
            other = self._layer(edits.file, edits)
            if other is None:
                self.refused.pop()  # the file is of no use to the entry as it stands
                continue
            for edit in edits.edits:
                if other.conflict(edit, self.ledger) is not None:
                    continue  # a person's own word stands there, and the entry does without
                handled.add((edits.file, edit.path))
                other.extra(self.adapter.id, server, edit, self.ledger)
        self._drop_extras(server, handled)

    def _existing(self, name: str) -> object:
        if name in self.entries:
            return self.entries[name]
        if self.adapter.folds_case:
            return next((raw for other, raw in self.entries.items() if other.lower() == name.lower()), None)
        return None

    def _is_ours(self, path: Where, existing: object, wanted: Wanted) -> bool:
        assert self.file is not None
        if self.ledger.at(self.file, path) is not None:
            return True
        if not wanted.connect or not isinstance(existing, dict):
            return False
        try:
            return ours(self.adapter.read(existing)) == "connect"
        except BadEntry:
            return False

    def _refuse(self, server: str, weak: Sequence[Loss]) -> None:
        if not weak:
            self.refused.append(Refused(server, f"{self.adapter.label} has no form for this server."))
            return
        said = "; ".join(f"`{loss.field}`: {loss.why}" for loss in weak)
        why = f"{self.adapter.label} cannot express all of it: {said}."
        self.refused.append(
            Refused(
                server,
                why,
                "`lossy: warn` in the manifest, or `--lossy warn`, writes it without; `--connect` loses nothing.",
            )
        )

    def _name_trouble(self, name: str) -> Refused | None:
        pattern = self.adapter.server_names.value
        if name in self.adapter.reserved:
            why = f"{self.adapter.label} keeps this name for itself."
        elif name == "__proto__":
            why = "Programs in JavaScript lose an entry of this name."
        elif pattern is not None and not re.fullmatch(pattern, name):
            why = f"{self.adapter.label} starts no server of this name: it has to match {pattern}."
        elif self.adapter.folds_case and any(
            item.server.lower() == name.lower() and item.server != name for item in self.items
        ):
            why = f"{self.adapter.label} does not tell capital from small letters, and another server has this name."
        else:
            return None
        return Refused(name, why, "Give it another `key` in the manifest.")

    def _transport_trouble(self, wanted: Wanted) -> Refused | None:
        kinds = self.adapter.transports.value
        if kinds is None:
            return None
        transport = wanted.server.transport if wanted.server is not None else None
        kind = transport.kind if isinstance(transport, HttpTransport) else "stdio"
        if kind in kinds:
            return None
        why = f"{self.adapter.label} takes no {kind} server from a file (it takes {', '.join(sorted(kinds))})."
        return Refused(wanted.name, why, "" if wanted.connect else "`--connect` reaches it through Interlock.")

    # What is no longer wanted

    def remove_gone(self, keeping: Collection[str]) -> None:
        assert self.file is not None
        stay = {item.server for item in self.items} | {each.server for each in self.refused} | set(keeping)
        gone = set()
        for file, where, owned in list(self.ledger.of_host(self.adapter.id)):
            if file != self.file or where[:-1] != self.table or not owned.server or owned.server in stay:
                continue
            gone.add(owned.server)
            layer = self.layers[file]
            existing = self.entries.get(where[-1])
            layer.own(where, None)
            if existing is not None:
                self._take_away(layer, where, owned, existing)
        for server in sorted(gone):
            self._drop_extras(server)

    def _take_away(self, layer: Layer, where: Where, owned: Owned, existing: object) -> None:
        layer.remove(where)
        before = existing if isinstance(existing, dict) else None
        self.items.append(Item(owned.server, where, {}, "removed", before))

    def _drop_extras(self, server: str, handled: Collection[tuple[str, Where]] = ()) -> None:
        """What belonged to an entry in other places and is not wanted there any more."""
        for file, where, owned in list(self.ledger.of_host(self.adapter.id)):
            if (file, where) in handled or (file == self.file and where[:-1] == self.table):
                continue
            if server in owned.items or owned.server == server:
                layer = self.layers.get(file) or Layer.read(self.machine, file, _format_of(file), True)
                if layer.fault:
                    self.notes.append(f'{file} cannot be read: what belongs to "{server}" stays there.')
                    continue
                self.layers[file] = layer
                layer.drop(self.adapter.id, server, where, owned)

    def result(self) -> Generated:
        edits: list[FileEdits] = []
        owned: dict[tuple[str, Where], Owned | None] = {}
        for file, layer in self.layers.items():
            edits += layer.edits()
            for where, each in layer.owned.items():
                if self.ledger.at(file, where) != each:
                    owned[file, where] = each
        return Generated(
            host=self.adapter.id, file=self.file, scope=self.scope, edits=tuple(edits), losses=tuple(self.losses),
            refused=tuple(self.refused), notes=tuple(self.notes), entries=tuple(self.items), owned=owned,
        )  # fmt: skip


def _resolved(table: Where, value: object, machine: Machine) -> Where:
    """With the project's own key, as it stands there, else as the host would write it."""
    if PROJECT not in table:
        return table
    index = table.index(PROJECT)
    inner: object = value
    for step in table[:index]:
        inner = inner.get(step) if isinstance(inner, dict) else None
    known = inner if isinstance(inner, dict) else {}
    keys = project_keys(machine)
    key = next((each for each in keys if each in known), keys[0])
    return (*table[:index], key, *table[index + 1 :])


def _with_cwd(entry: Mapping[str, Json], prepared: Prepared, adapter: Adapter) -> Mapping[str, Json]:
    if prepared.wanted.server is None:
        return entry
    made = {name: value for name, value in entry.items() if name != "cwd"}
    if prepared.cwd is not None and "cwd" in adapter.fields:
        made["cwd"] = prepared.cwd
    return made


def _once(losses: Sequence[Loss]) -> tuple[Loss, ...]:
    """One for each field: the adapter's own words where both have some."""
    found = {loss.field: loss for loss in losses}
    return tuple(found.values())


def _by_hand(owned: Owned, before: Mapping[str, object]) -> bool:
    """Whether what Interlock wrote stands there otherwise now."""
    ours_now: dict[str, object] = {}
    for where in owned.members:
        value: object = before
        for step in where:
            value = value.get(step) if isinstance(value, dict) else None
        inner = ours_now
        for step in where[:-1]:
            following = inner.setdefault(step, {})
            assert isinstance(following, dict)
            inner = following
        inner[where[-1]] = value
    return bool(owned.digest) and generated.digest(ours_now) != owned.digest


def _format_of(file: str) -> Format:
    ending = file.rpartition(".")[2].lower()
    known: Mapping[str, Format] = {"toml": "toml", "yaml": "yaml", "yml": "yaml"}
    return known.get(ending, "jsonc")


def _other_scopes(adapter: Adapter) -> str:
    scopes = dict.fromkeys(place.scope for place in adapter.places if place.writes)
    return f"It can be written in {' or '.join(scopes)} scope: `--scope`." if scopes else ""
