"""Which of several entries of one name the host runs: the common rules, then switches, then the host's own."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.hosts.declaration import Decision, Declaration, Spot
from interlock.hosts.reading import BadEntry, Reading

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
        if len(group) < 2:
            continue
        if merge == "fields":
            by_field(reading, group)
        elif merge == "both":
            continue
        else:
            whole(group, disabled=merge == "loser-disabled")


def whole(group: list[Declaration], *, disabled: bool = False) -> None:
    """The first replaces the others."""
    winner = group[0]
    for loser in group[1:]:
        same = loser.place is winner.place
        loser.state = "disabled" if disabled else "shadowed"
        loser.decided_by = Decision("nearer-file" if same else "higher-scope", winner.spot, _by(winner))
        loser.shadowed_fields = dict.fromkeys(loser.raw, winner.spot)


def by_field(reading: Reading, group: list[Declaration]) -> None:
    """The layers of one name put over each other: tables are united, everything else is replaced."""
    winner, losers = group[0], group[1:]
    merged: dict[str, object] = {}
    origins: dict[str, Spot] = {}
    for layer in reversed(group):
        _lay(merged, layer.raw, origins, layer, "")
    for loser in losers:
        lost = {
            name: spot
            for name in _leaves(loser.raw)
            if (spot := origins.get(name)) is not None and spot.file != loser.file
        }
        gone = {name: winner.spot for name in _leaves(loser.raw) if name not in origins}
        loser.shadowed_fields = {**gone, **lost}
        if loser.shadowed_fields:
            loser.state = "shadowed"
            loser.decided_by = Decision("field-merge", winner.spot, _by(winner))
    winner.origins = origins
    if winner.decided_by.rule == "only-one":
        winner.decided_by = Decision("field-merge", winner.spot, _by(winner))
    try:
        winner.merged = reading.adapter.read(merged)
    except BadEntry as error:
        from interlock.hosts.declaration import Problem

        spot = origins.get(error.field, winner.spot)
        problem = Problem(
            "merge-invalid", "problem", f"Neither file is wrong, but put together they are: {error.why}.",
            why="The host merges entries of one name field by field.", field=error.field, spot=spot,
            todo=error.todo or "Give one of the two another name.",
        )  # fmt: skip
        for each in group:
            each.state = "broken"
            each.decided_by = Decision("invalid-entry", spot, error.why)
            each.problems.append(problem)


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
            switch = reading.adapter.switch.value
            name = switch.field if switch is not None else "enabled"
            each.state = "disabled"
            each.decided_by = Decision("entry-off", each.spots.get(name, each.origins.get(name, each.spot)), name)


def _by(declaration: Declaration) -> str:
    return f'{declaration.scope} entry "{declaration.server}"'
