"""Which of several entries of one name the host runs: the common rules, then switches, then the host's own."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.hosts.declaration import Decision, Declaration, Problem, Spot
from interlock.hosts.reading import BadEntry, Reading, refuse

_LIVE = ("effective",)


def settle(reading: Reading) -> None:
    """Sets the state of every declaration that is still `effective`."""
    _exclusive(reading)
    if reading.adapter.admit is not None:
        reading.adapter.admit(reading)
    if reading.adapter.settle is not None:
        reading.adapter.settle(reading)
    else:
        common(reading)
    _blast(reading)
    _switches(reading)
    if reading.adapter.judge is not None:
        reading.adapter.judge(reading)


def groups(reading: Reading) -> Mapping[str, list[Declaration]]:
    """Those still in play by name, the winner first. In one place the path that `find` names first wins."""
    order = {(id(each.place), each.path): number for number, each in enumerate(reading.seen)}
    found: dict[str, list[Declaration]] = {}
    for each in reading.declarations:
        if each.state in _LIVE and each.server is not None:
            key = each.server.lower() if reading.adapter.folds_case else each.server
            found.setdefault(key, []).append(each)
    for group in found.values():
        group.sort(key=lambda each: (-each.place.rank, order.get((id(each.place), each.file), 0)))
    return found


def common(reading: Reading) -> None:
    merge = reading.adapter.merge.value
    for group in groups(reading).values():
        if merge == "fields":
            by_field(reading, group)
        elif merge is None:
            undecided(reading, group)
        elif len(group) > 1 and merge != "both":
            whole(group, disabled=merge == "loser-disabled")


def undecided(reading: Reading, group: list[Declaration]) -> None:
    """Nobody knows which one this host takes: the order of ranks is only the likeliest."""
    if len(group) < 2:
        return
    whole(group)
    for each in group:
        other = next(one for one in group if one is not each)
        each.problems.append(
            Problem(
                "precedence-unknown", "warning", f"`{other.spot}` has the same name, and it is not known which of the two "
                f"{reading.adapter.label} takes.", why=reading.adapter.merge.note, spot=each.spot,
                todo="Keep one of the two, or give one another name.",
            )
        )  # fmt: skip


def whole(group: list[Declaration], *, disabled: bool = False) -> None:
    """The first replaces the others."""
    winner = group[0]
    for loser in group[1:]:
        same = loser.place is winner.place
        loser.state = "disabled" if disabled else "shadowed"
        loser.decided_by = Decision("nearer-file" if same else "higher-scope", winner.spot, _by(winner))
        loser.shadowed_fields = dict.fromkeys(loser.raw, winner.spot)


def by_field(reading: Reading, group: list[Declaration]) -> None:
    """The layers of one name put over each other: tables are united, everything else is replaced.

    A layer may be incomplete, and what is wrong in one may be replaced by another: only the result is judged.
    """
    winner, losers = group[0], group[1:]
    if not losers:
        try:
            winner.entry = reading.adapter.read(winner.raw)
        except BadEntry as error:
            refuse(winner, error)
        return
    merged: dict[str, object] = {}
    origins: dict[str, Spot] = {}
    for layer in reversed(group):
        _lay(merged, layer.raw, origins, layer, "")
    winner.origins = origins
    winner.decided_by = Decision("field-merge", winner.spot, _by(winner))
    for loser in losers:
        theirs = {name: origins.get(name, winner.spot) for name in _leaves(loser.raw)}
        loser.shadowed_fields = {name: spot for name, spot in theirs.items() if spot.file != loser.file}
        loser.state = "shadowed"
        loser.decided_by = Decision("field-merge", winner.spot, _by(winner))
    try:
        winner.merged = reading.adapter.read(merged)
    except BadEntry as error:
        _refuse_merged(reading, group, error, origins)


def _refuse_merged(reading: Reading, group: list[Declaration], error: BadEntry, origins: Mapping[str, Spot]) -> None:
    guilty = next((each for each in group if _alone(reading, each) == (error.field, error.why)), None)
    spot = origins.get(error.field, group[0].spot)
    if guilty is not None:
        spot = guilty.spots.get(error.field, guilty.spot)
        problem = Problem("entry-invalid", "problem", error.why, field=error.field, spot=spot, todo=error.todo)
    else:
        problem = Problem(
            "merge-invalid", "problem", f"Neither file is wrong, but put together they are: {error.why}.",
            why=f"{reading.adapter.label} merges entries of one name field by field.", field=error.field, spot=spot,
            todo=error.todo or "Give one of them another name.",
        )  # fmt: skip
    for each in group:
        each.state = "broken"
        each.decided_by = Decision("invalid-entry", spot, error.why)
        each.problems.append(problem)


def _alone(reading: Reading, layer: Declaration) -> tuple[str, str] | None:
    try:
        reading.adapter.read(layer.raw)
    except BadEntry as error:
        return error.field, error.why
    return None


def _lay(
    under: dict[str, object], over: Mapping[str, object], origins: dict[str, Spot], layer: Declaration, path: str
) -> None:
    for name, value in over.items():
        where = f"{path}{name}"
        below = under.get(name)
        if isinstance(value, dict):
            target = dict(below) if isinstance(below, dict) else {}
            if not isinstance(below, dict):
                origins.pop(where, None)
            under[name] = target
            _lay(target, value, origins, layer, f"{where}.")
        else:
            for gone in [each for each in origins if each == where or each.startswith(f"{where}.")]:
                del origins[gone]
            under[name] = value
            origins[where] = layer.spots.get(where, layer.spot)


def _leaves(raw: Mapping[str, object], path: str = "") -> list[str]:
    found: list[str] = []
    for name, value in raw.items():
        found += _leaves(value, f"{path}{name}.") if isinstance(value, dict) else [f"{path}{name}"]
    return found


def _exclusive(reading: Reading) -> None:
    rulers = [each for each in reading.seen if each.place.exclusive]
    if not rulers:
        return
    ruler = rulers[0]
    for each in reading.declarations:
        if each.place is not ruler.place and each.state in _LIVE:
            each.state = "blocked"
            each.decided_by = Decision("policy", Spot(ruler.path), "only what stands there counts")


def _blast(reading: Reading) -> None:
    """A fault that takes down more than its own entry."""
    takes = reading.adapter.tolerance
    rules: list[tuple[str, str | None]] = [("syntax", takes.fault.value), ("invalid-entry", takes.bad_entry.value)]
    for rule, reach in rules:
        guilty = [each for each in reading.declarations if each.state == "broken" and each.decided_by.rule == rule]
        if reach not in ("file", "host") or not guilty:
            continue
        for each in reading.declarations:
            first = next((one for one in guilty if reach == "host" or one.file == each.file), None)
            if first is not None and each.state in ("effective", "shadowed"):
                each.state = "broken"
                each.decided_by = Decision("host-broken", first.decided_by.spot, first.decided_by.by)


def _switches(reading: Reading) -> None:
    for each in reading.declarations:
        runs = each.runs
        if each.state in _LIVE and runs is not None and not runs.enabled:
            spots = each.origins or each.spots
            name = next((name for name in ("enabled", "disabled") if name in spots), "enabled")
            each.state = "disabled"
            each.decided_by = Decision("entry-off", spots.get(name, each.spot), name)


def _by(declaration: Declaration) -> str:
    return f'{declaration.scope} entry "{declaration.server}"'
