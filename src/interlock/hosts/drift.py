"""Where a host's files differ from what `generate` would write into them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from interlock.hosts.declaration import Declaration, Spot
from interlock.hosts.generating import Generated, Item
from interlock.hosts.layering import leaves
from interlock.hosts.masking import masked, secret_texts
from interlock.hosts.reading import Reading

Kind = Literal["missing", "changed", "extra", "off", "unseen", "taken", "rules"]
"""`missing`: not there; `changed`: a field says otherwise; `extra`: Interlock's, and gone from the manifest; `off`: the host
does not start it; `unseen`: the host runs another entry instead, or cannot read this one; `taken`: a foreign entry has the
name; `rules`: what belongs to entries in another place."""


@dataclass(frozen=True, slots=True)
class Drift:
    host: str
    server: str
    kind: Kind
    field: str = ""
    wanted: str = ""
    """What the manifest asks for, secrets masked."""
    found: str = ""
    """What stands there, secrets masked."""
    spot: Spot | None = None
    said: str = ""


def drifts(made: Generated, reading: Reading) -> list[Drift]:
    """`made` is the plan over the files as they are; `reading` what the host makes of them."""
    standing = {
        each.server: each
        for each in reading.declarations
        if each.server is not None and each.file == made.file and each.scope == made.scope
    }
    found: list[Drift] = []
    for item in made.entries:
        declaration = standing.get(item.server)
        spot = declaration.spot if declaration is not None else None
        if item.state == "new":
            found.append(Drift(made.host, item.server, "missing", spot=Spot(made.file or "")))
        elif item.state == "removed":
            found.append(Drift(made.host, item.server, "extra", spot=spot))
        else:
            found += _fields(made.host, item, declaration)
            if declaration is not None:
                found += _state(made.host, declaration)
    found += [
        Drift(made.host, each.server, "taken", spot=standing[each.server].spot, said=each.why)
        for each in made.refused
        if each.server in standing and each.foreign
    ]
    for edits in made.edits:
        touched = [edit.path for edit in edits.edits if not _is_entry(edits.file, edit.path, made)]
        found += [
            Drift(made.host, "", "rules", ".".join(path), spot=Spot(edits.file)) for path in dict.fromkeys(touched)
        ]
    return found


def _is_entry(file: str, path: tuple[str, ...], made: Generated) -> bool:
    return file == made.file and any(path[: len(item.path)] == item.path for item in made.entries)


def _fields(host: str, item: Item, declaration: Declaration | None) -> Iterator[Drift]:
    if item.before is None or item.state == "same":
        return
    spots: Mapping[str, Spot] = declaration.spots if declaration is not None else {}
    for where in dict.fromkeys((*leaves(item.entry), *item.stale)):
        wanted, there = _at(item.entry, where), _at(item.before, where)
        if wanted == there or (wanted == {} and isinstance(there, dict)):
            continue
        name = ".".join(where)
        spot = spots.get(name, declaration.spot if declaration is not None else None)
        yield Drift(host, item.server, "changed", name, _shown(where, wanted), _shown(where, there), spot)


def _state(host: str, declaration: Declaration) -> Iterator[Drift]:
    server, decision = declaration.server or "", declaration.decided_by
    said = f"{declaration.state}: {decision.rule}" + (f" ({decision.by})" if decision.by else "")
    if declaration.state == "disabled":
        yield Drift(host, server, "off", spot=decision.spot or declaration.spot, said=said)
    elif declaration.state in ("shadowed", "broken", "blocked", "never-read"):
        yield Drift(host, server, "unseen", spot=decision.spot or declaration.spot, said=said)


class _Absent:
    pass


_ABSENT = _Absent()


def _at(value: object, where: Sequence[str]) -> object:
    for step in where:
        if not isinstance(value, dict) or step not in value:
            return _ABSENT
        value = value[step]
    return value


def _shown(where: Sequence[str], value: object) -> str:
    if isinstance(value, _Absent):
        return "(nothing)"
    named: object = value
    for step in reversed(where):
        named = {step: named}
    return masked(json.dumps(value, ensure_ascii=False, default=str), secret_texts(named))
