"""`interlock diff`: where the hosts' files differ from the manifest. Exit code 1 where they do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlock.cli.exit_codes import CONFIGURATION, OK, TOOL_ERROR, USAGE
from interlock.cli.host_plans import Kind, Plan, Plans, Stop, add_flags
from interlock.cli.output import complain, print_json, safe

if TYPE_CHECKING:
    from interlock.hosts.adapter import Adapter
    from interlock.hosts.drift import Drift
    from interlock.hosts.wanting import WriteScope

_MORE = (
    "Compares what `interlock generate` would write with what stands there, for the hosts, scopes and kind of entry that it "
    "wrote before. Secrets are masked. Changes nothing."
)


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "diff", help="show where the hosts' files differ from the manifest", description=f"{__doc__} {_MORE}"
    )
    add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        plans = Plans(args)
        compared = list(_compared(args, plans))
    except Stop as stop:
        complain(str(stop))
        return USAGE
    found = [(plan, _drifts(plan, plans)) for plan in compared]
    for problem in plans.loaded.errors:
        complain(str(problem))
    if args.json:
        print_json({"drift": any(drift for _plan, drift in found), "hosts": [_as_dict(*each) for each in found]})
    else:
        _show(found)
    if any(drift for _plan, drift in found):
        return TOOL_ERROR
    return CONFIGURATION if plans.loaded.errors else OK


def _compared(args: argparse.Namespace, plans: Plans) -> Iterator[Plan]:
    """What was generated before, or what the flags name."""
    asked: Kind | None = "direct" if args.direct else "connect" if args.connect else None
    adapters = plans.adapters(args.hosts)
    if not adapters:
        raise Stop("no host has files on this machine; name one: `interlock diff HOST`")
    recorded = {adapter.id: dict(plans.recorded(adapter)) for adapter in adapters}
    anything = any(recorded.values())
    for adapter in adapters:
        known = recorded[adapter.id]
        for scope, kind in _pairs(args, adapter, known, asked, listed=bool(args.hosts) or not anything):
            if kind == "connect" and plans.keys is not None:
                raise Stop("--server goes with --direct: Interlock's own entry leads to all servers")
            yield plans.plan(adapter, kind, scope)


def _pairs(
    args: argparse.Namespace, adapter: Adapter, known: dict[WriteScope, Kind], asked: Kind | None, *, listed: bool
) -> list[tuple[WriteScope, Kind]]:
    if args.scope is not None:
        return [(args.scope, asked or known.get(args.scope, "connect"))]
    if known:
        return [(scope, asked or kind) for scope, kind in known.items()]
    return [("user", asked or "connect")] if listed else []


def _drifts(plan: Plan, plans: Plans) -> list[Drift]:
    from interlock.hosts.drift import drifts
    from interlock.hosts.generating import standing
    from interlock.hosts.reading import read

    return drifts(plan.made, read(plan.adapter, standing(plans.machine, plan.scope)))


def _as_dict(plan: Plan, found: list[Drift]) -> dict[str, object]:
    return {
        "host": plan.made.host, "file": plan.made.file, "scope": plan.scope, "kind": plan.kind,
        "drift": [
            {
                "server": each.server, "kind": each.kind, "field": each.field, "wanted": each.wanted, "found": each.found,
                "file": None if each.spot is None else each.spot.file, "line": None if each.spot is None else each.spot.line,
                "said": each.said,
            }
            for each in found
        ],
        "refused": [{"server": each.server, "why": each.why, "todo": each.todo} for each in plan.made.refused],
    }  # fmt: skip


def _show(found: list[tuple[Plan, list[Drift]]]) -> None:
    for plan, drift in found:
        _say(f"{plan.adapter.label}: {plan.made.file or 'no file'} ({plan.scope}, {plan.kind})")
        if not drift and not any(not each.foreign for each in plan.made.refused):
            _say("  as the manifest says")
        for each in drift:
            _say(f"  {_line(each)}")
        for refused in plan.made.refused:
            if not refused.foreign:
                _say(
                    f"  refused: {refused.server + ': ' if refused.server else ''}{refused.why} {refused.todo}".rstrip()
                )
    if any(drift for _plan, drift in found):
        _say("`interlock generate` shows the change that would end this; with `--write` it makes it.")


def _line(each: Drift) -> str:
    where = f" ({each.spot})" if each.spot is not None else ""
    said = {
        "missing": "missing: it stands nowhere in the file",
        "changed": f"changed: `{each.field}` is {each.found}, and the manifest says {each.wanted}",
        "extra": "extra: Interlock wrote it, and the manifest has it no more",
        "off": f"switched off: {each.said}",
        "unseen": f"not in force: {each.said}",
        "taken": "taken: an entry of this name is not Interlock's",
        "rules": f"rules: `{each.field}` lacks or has too much of what belongs to the entries",
    }[each.kind]
    return f"{each.server + ': ' if each.server else ''}{said}{where}"


def _say(text: str) -> None:
    print(safe(sys.stdout, text))
