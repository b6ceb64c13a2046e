"""What an edit means on a file's value: the single members to put and to drop, and what the file must say afterwards.

Replacing an object by an object changes only the members that differ, so that comments and order inside stay.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from interlock.hosts.text.document import Damaged, Step
from interlock.hosts.writing import REMOVE, Edit, Json

Where = tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Put:
    """The object or list that holds it is there. A list's number may be the one past its end: then it is added."""

    path: Where
    value: Json


@dataclass(frozen=True, slots=True)
class Drop:
    path: Where


def steps(value: object, edit: Edit, list_key: str | None) -> list[Put | Drop]:
    """Nothing where it holds already. Raises Damaged where something stands in the way."""
    if not edit.path:
        raise ValueError("an edit names a member")
    where: Where = ()
    here = value
    for depth, name in enumerate(edit.path):
        rest = edit.path[depth + 1 :]
        if here is None and depth:
            return _made(where, edit.path[depth:], edit, list_key)
        if isinstance(here, list) and list_key is not None:
            index = _index(here, list_key, name)
            if index is None:
                return [] if edit.value is REMOVE else [Put((*where, len(here)), _item(rest, edit, list_key, name))]
            where, here = (*where, index), here[index]
        elif isinstance(here, dict):
            if name not in here:
                return _made((*where, name), rest, edit, list_key)
            where, here = (*where, name), here[name]
        else:
            raise Damaged(f"{shown(where)} is no object" if where else "the file does not hold an object")
    if edit.value is REMOVE:
        return [Drop(where)]
    wanted = cast("Json", edit.value)
    if list_key is not None and isinstance(where[-1], int) and isinstance(wanted, dict):
        wanted = {list_key: edit.path[-1], **wanted}
    return list(_changes(here, wanted, where, keep=edit.keep))


def shown(path: Where) -> str:
    """A path for people."""
    return ".".join(str(step) for step in path)


def _made(where: Where, rest: tuple[str, ...], edit: Edit, list_key: str | None) -> list[Put | Drop]:
    """A member that is missing (or null), with everything below it."""
    if edit.value is REMOVE:
        return []
    if list_key is not None and len(rest) == 1 and isinstance(edit.value, dict):
        return [Put(where, [_item((), edit, list_key, rest[0])])]
    made = cast("Json", edit.value)
    for name in reversed(rest):
        made = {name: made}
    return [Put(where, made)]


def _item(rest: tuple[str, ...], edit: Edit, list_key: str, name: str) -> Json:
    made = cast("Json", edit.value)
    for step in reversed(rest):
        made = {step: made}
    if not isinstance(made, dict):
        raise ValueError("an item of a list of maps is a map")
    return {list_key: name, **made}


def _index(items: list[object], list_key: str, name: str) -> int | None:
    found = [number for number, item in enumerate(items) if isinstance(item, dict) and item.get(list_key) == name]
    if len(found) > 1:
        raise Damaged(f"two entries have one {list_key}")
    return found[0] if found else None


def _changes(old: object, new: Json, where: Where, *, keep: bool) -> Iterator[Put | Drop]:
    if same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name, value in new.items():
            if name not in old:
                yield Put((*where, name), value)
            else:
                yield from _changes(old[name], value, (*where, name), keep=False)
        if not keep:
            for name in old:
                if name not in new:
                    yield Drop((*where, name))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _list_changes(old, new, where)
    else:
        yield Put(where, new)


def _list_changes(old: list[object], new: list[Json], where: Where) -> Iterator[Put | Drop]:
    """Items dropped and added at the end one by one; any other change replaces the list."""
    kept: list[int] = []
    for number, item in enumerate(old):
        if len(kept) < len(new) and same(item, new[len(kept)]):
            kept.append(number)
    if not kept:
        yield Put(where, new)
        return
    for number in reversed(range(len(old))):
        if number not in kept:
            yield Drop((*where, number))
    for added, item in enumerate(new[len(kept) :]):
        yield Put((*where, len(kept) + added), item)


def same(one: object, other: object) -> bool:
    """Equal with equal types (1 is not true, nor 1.0); the order of an object's members does not matter."""
    pending = [(one, other)]
    while pending:
        left, right = pending.pop()
        if left is right:
            continue
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            pending += [(left[key], right[key]) for key in left]
        elif isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pending += zip(left, right, strict=True)
        elif type(left) is not type(right) or (left != right and not (left != left and right != right)):
            return False
    return True


def applied(value: object, changes: list[Put | Drop]) -> object:
    """A copy of the value as it must be afterwards; what is not on the way to a change is shared with the old one."""
    for change in changes:
        value = _with(value, change.path, change)
    return value


def joined(changes: list[Put | Drop]) -> list[Put | Drop]:
    """The same with fewer: what is put below something that was put just before goes in with it.

    Each change of a text reads it again, so that hundreds of entries in a new file would take minutes.
    """
    made: list[Put | Drop] = []
    ours: set[int] = set()
    for change in changes:
        at = _below(made, change) if isinstance(change, Put) else None
        last = made[at] if at is not None else None
        if at is None or not isinstance(change, Put) or not isinstance(last, Put):
            made.append(change)
            continue
        if at not in ours:
            made[at] = last = Put(last.path, copy.deepcopy(last.value))
            ours.add(at)
        holder = inside(last.value, change.path[len(last.path) : -1])
        if isinstance(holder, dict):
            holder[change.path[-1]] = copy.deepcopy(change.value)
        elif isinstance(holder, list):
            holder.append(copy.deepcopy(change.value))
    return made


def _below(made: list[Put | Drop], change: Put) -> int | None:
    """Which of the changes before makes the object or list that this one adds to, where none between them touches it."""
    for number in reversed(range(len(made))):
        other = made[number]
        depth = min(len(other.path), len(change.path))
        if isinstance(other, Drop) and isinstance(other.path[-1], int):
            return None  # the items behind it have other numbers from here on
        if other.path[:depth] != change.path[:depth]:
            continue
        if isinstance(other, Drop) or len(other.path) >= len(change.path):
            return None
        holder = inside(other.value, change.path[len(other.path) : -1])
        step = change.path[-1]
        new = step not in holder if isinstance(holder, dict) else isinstance(holder, list) and step == len(holder)
        return number if new else None
    return None


def _with(value: object, path: Where, change: Put | Drop) -> object:
    step, rest = path[0], path[1:]
    if isinstance(value, dict):
        made = dict(value)
        if rest:
            made[step] = _with(made[step], rest, change)
        elif isinstance(change, Drop):
            del made[step]
        else:
            made[step] = copy.deepcopy(change.value)
        return made
    if isinstance(value, list) and isinstance(step, int):
        items = list(value)
        if rest:
            items[step] = _with(items[step], rest, change)
        elif isinstance(change, Drop):
            del items[step]
        else:
            items[step : step + 1] = [copy.deepcopy(change.value)]
        return items
    raise Damaged("nothing to put it under")


def inside(value: object, path: Where) -> object:
    """What stands at a path, or None."""
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT = _Absent()


def member(value: object, path: tuple[str, ...], list_key: str | None) -> object:
    """What stands where an edit's path leads, or ABSENT."""
    for name in path:
        if isinstance(value, list) and list_key is not None:
            index = _index(value, list_key, name)
            value = ABSENT if index is None else value[index]
        elif isinstance(value, dict):
            value = value.get(name, ABSENT)
        else:
            return ABSENT
    return value
