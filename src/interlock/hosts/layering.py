"""One file of a host while changes to it are gathered: what stands there, what is to stand there, and whose it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from interlock.hosts import generated
from interlock.hosts.generated import Ledger, Owned, Where
from interlock.hosts.machine import Machine
from interlock.hosts.place import Format
from interlock.hosts.reading import parse, read_bytes
from interlock.hosts.text.document import At, Damaged, Document
from interlock.hosts.writing import REMOVE, Edit, FileEdits, Json


@dataclass(slots=True)
class _List:
    """A list that several entries have items in, such as permission rules."""

    host: str
    base: list[Json]
    prior: Mapping[str, tuple[Json, ...]]
    items: dict[str, tuple[Json, ...]] = field(default_factory=dict)
    """What is Interlock's now, by the servers that were looked at."""
    wanted: list[Json] = field(default_factory=list)
    taken: list[Json] = field(default_factory=list)

    def final(self) -> list[Json]:
        kept = [item for server, items in self.after().items() for item in items]
        dropped = [item for server in self.items for item in self.prior.get(server, ()) if item not in kept]
        stay = [item for item in self.base if item not in dropped and item not in self.taken]
        for item in self.wanted:
            if item not in stay:
                stay.append(item)
        return stay

    def after(self) -> dict[str, tuple[Json, ...]]:
        joined = {**self.prior, **self.items}
        return {server: items for server, items in sorted(joined.items()) if items}


@dataclass(slots=True)
class Layer:
    file: str
    format: Format
    comments: bool
    value: object = None
    document: Document | None = None
    fault: str = ""
    at: At | None = None
    list_key: str | None = None
    owned: dict[Where, Owned | None] = field(default_factory=dict)
    """What is Interlock's from now on; None: no longer."""
    _edits: list[Edit] = field(default_factory=list)
    _lists: dict[Where, _List] = field(default_factory=dict)

    @classmethod
    def read(cls, machine: Machine, file: str, format: Format, comments: bool) -> Layer:
        layer = cls(file, format, comments)
        try:
            content = read_bytes(machine, file)
            if content is not None and content.strip():
                layer.document = parse(content, format)
                layer.value = layer.document.value
        except Damaged as error:
            layer.fault, layer.at = error.why, error.at
        except OSError as error:
            layer.fault = error.strerror or type(error).__name__
        if not layer.fault and layer.value is not None and not isinstance(layer.value, dict):
            layer.fault = "it does not hold an object"
        return layer

    def get(self, where: Where) -> object:
        value = self.value
        for step in where:
            value = value.get(step) if isinstance(value, dict) else None
        return value

    # Members

    def set(self, where: Where, value: Json) -> None:
        self._edits.append(Edit(where, value))

    def remove(self, where: Where) -> None:
        self._edits.append(Edit(where, REMOVE))

    def update(self, where: Where, value: Mapping[str, Json], members: Iterable[Where], existing: object) -> None:
        """Make an object say `value`. Of its other members, those that were Interlock's (`members`) go, a person's stay."""
        gone = [each for each in members if each not in set(leaves(value))]
        if self.list_key is not None:  # an item of a list is written whole
            merged = _merged(existing, value, gone)
            if merged != existing:
                self.set(where, merged)
            return
        self._edits += _changes(where, existing, value)
        for each in gone:
            if not _has(value, each):
                self._edits += _removal(where, existing, each, value)

    def touched(self, where: Where) -> bool:
        return any(edit.path[: len(where)] == where for edit in self._edits)

    def own(self, where: Where, owned: Owned | None) -> None:
        self.owned[where] = owned

    # What belongs to an entry elsewhere

    def conflict(self, edit: Edit, ledger: Ledger) -> str | None:
        """Why a member cannot be set: a person's own value stands there."""
        current = self.get(edit.path)
        if (
            edit.value is REMOVE
            or current is None
            or current == edit.value
            or ledger.at(self.file, edit.path) is not None
        ):
            return None
        if isinstance(edit.value, list) and isinstance(current, list):
            return None
        if isinstance(edit.value, dict) and isinstance(current, dict):
            return None
        return f"`{'.'.join(edit.path)}` in {self.file} says otherwise"

    def extra(self, host: str, server: str, edit: Edit, ledger: Ledger) -> None:
        where, value, current = edit.path, edit.value, self.get(edit.path)
        owned = ledger.at(self.file, where)
        if isinstance(value, list):
            listed = self._list(host, where, owned)
            mine = [item for item in value if item not in listed.base or item in listed.prior.get(server, ())]
            listed.items[server] = tuple(mine)
            listed.wanted += value
        elif isinstance(value, dict):
            if isinstance(current, dict):
                self.update(where, value, owned.members if owned is not None else (), current)
            else:
                self.set(where, value)
            self.own(
                where, Owned(host, server, generated.digest(value), leaves(value), since=self._since(where, owned))
            )
        elif value is REMOVE:
            if current is not None:
                self.remove(where)
        elif current != value:
            self.set(where, value)  # type: ignore[arg-type]
            self.own(where, Owned(host, server, generated.digest(value), since=self._since(where, owned)))

    def take(self, host: str, edit: Edit, ledger: Ledger) -> None:
        """Items of a list that an entry wants out of it, seen from what it makes of the list as it stands."""
        if isinstance(edit.value, list):
            listed = self._list(host, edit.path, ledger.at(self.file, edit.path))
            listed.taken += [item for item in listed.base if item not in edit.value and item not in listed.taken]

    def drop(self, host: str, server: str, where: Where, owned: Owned) -> None:
        """Take away what belonged to an entry that is gone."""
        if owned.items:
            self._list(host, where, owned).items.setdefault(server, ())
            return
        current = self.get(where)
        self.own(where, None)
        if isinstance(current, dict) and set(leaves(current)) <= set(owned.members):
            self.remove(self._top(where, owned.since))
        elif owned.members:
            for each in owned.members:
                self._edits += _removal(where, current, each, {})
        elif current is not None and generated.digest(current) == owned.digest:
            self.remove(self._top(where, owned.since))

    def _since(self, where: Where, owned: Owned | None) -> int:
        if owned is not None:
            return owned.since
        return next((depth for depth in range(1, len(where)) if self.get(where[:depth]) is None), 0)

    def _top(self, where: Where, since: int) -> Where:
        """The largest object that Interlock made and that holds nothing but this."""
        for depth in range(since, len(where)) if since else ():
            inner, alone = self.get(where[:depth]), True
            for step in where[depth:]:
                alone = alone and isinstance(inner, dict) and set(inner) == {step}
                inner = inner.get(step) if isinstance(inner, dict) else None
            if alone:
                return where[:depth]
        return where

    def _list(self, host: str, where: Where, owned: Owned | None) -> _List:
        if where not in self._lists:
            current = self.get(where)
            base = list(current) if isinstance(current, list) else []
            self._lists[where] = _List(host, base, owned.items if owned is not None else {})
        return self._lists[where]

    def edits(self) -> list[FileEdits]:
        """All of it; also settles whose the lists' items are."""
        lists: list[Edit] = []
        for where, listed in self._lists.items():
            final, after = listed.final(), listed.after()
            if final != listed.base:
                ours = _all(listed.prior)
                emptied = not final and all(item in ours for item in listed.base)
                lists.append(Edit(where, REMOVE if emptied else final))
            self.owned[where] = Owned(listed.host, items=after) if after else None
        made = []
        if self._edits:
            made.append(self._of(tuple(self._edits), self.list_key))
        if lists:
            made.append(self._of(tuple(lists), None))
        return made

    def _of(self, edits: tuple[Edit, ...], list_key: str | None) -> FileEdits:
        return FileEdits(
            file=self.file, format=self.format, comments=self.comments, edits=edits, list_key=list_key
        )  # fmt: skip


def leaves(value: Mapping[str, object]) -> tuple[Where, ...]:
    """The paths of everything in an object that is no object with members."""
    found: list[Where] = []
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            found += [(name, *rest) for rest in leaves(inner)]
        else:
            found.append((name,))
    return tuple(found)


def _all(items: Mapping[str, tuple[Json, ...]]) -> list[Json]:
    return [item for each in items.values() for item in each]


def _changes(where: Where, existing: object, value: Mapping[str, Json]) -> Iterator[Edit]:
    known = existing if isinstance(existing, dict) else {}
    for name, inner in value.items():
        current = known.get(name)
        if isinstance(inner, dict) and inner and isinstance(current, dict):
            yield from _changes((*where, name), current, inner)
        elif name not in known or (current != inner and not (inner == {} and isinstance(current, dict))):
            yield Edit((*where, name), inner)


def _has(value: object, where: Where) -> bool:
    for step in where:
        if not isinstance(value, dict) or step not in value:
            return False
        value = value[step]
    return True


def _removal(where: Where, existing: object, member: Where, value: Mapping[str, Json]) -> Iterator[Edit]:
    """Remove a leaf; an object that only held it goes with it, unless it is wanted."""
    if not _has(existing, member):
        return
    for depth in range(1, len(member)):
        inner: object = existing
        for step in member[:depth]:
            inner = inner[step] if isinstance(inner, dict) else None
        if isinstance(inner, dict) and set(inner) == {member[depth]} and not _has(value, member[:depth]):
            yield Edit((*where, *member[:depth]), REMOVE)
            return
    yield Edit((*where, *member), REMOVE)


def _merged(existing: object, value: Mapping[str, Json], gone: Iterable[Where]) -> dict[str, Json]:
    made: dict[str, Json] = dict(existing) if isinstance(existing, dict) else {}
    for each in gone:
        if len(each) == 1:
            made.pop(each[0], None)
    for name, inner in value.items():
        current = made.get(name)
        if isinstance(inner, dict) and isinstance(current, dict):
            dropped = [each[1:] for each in gone if len(each) > 1 and each[0] == name]
            made[name] = _merged(current, inner, dropped)
        else:
            made[name] = inner
    return made
