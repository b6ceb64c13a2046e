"""`interlock generate`: writes the manifest's servers into the hosts' files, or shows what it would write."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, OK, USAGE
from interlock.cli.host_plans import Kind, Plan, Plans, Stop, add_flags
from interlock.cli.output import complain, print_json, safe

if TYPE_CHECKING:
    from interlock.hosts.generating import Item
    from interlock.hosts.place import Format
    from interlock.hosts.wanting import WriteScope

_ABOUT = f"{__doc__} Without --write nothing is changed. `interlock generate plugin --to DIR` packs the servers as a plugin instead."
_VERBS = {
    "new": ("would add", "added"),
    "changed": ("would change", "changed"),
    "replaced": ("would take over", "took over"),
    "removed": ("would remove", "removed"),
    "same": ("has already", "has already"),
}


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "generate", help="write the manifest's servers into the hosts' files", description=_ABOUT
    )
    add_flags(parser)
    parser.add_argument("--write", action="store_true", help="change the files; without it they are only shown")
    parser.add_argument(
        "--replace", action="store_true", help="take over entries of the same name that Interlock did not write"
    )
    plugin = parser.add_argument_group("generate plugin")
    plugin.add_argument(
        "--to", type=Path, default=None, metavar="DIR", help="the folder that the plugin is written into"
    )
    plugin.add_argument(
        "--kind", choices=("agent", "claude", "codex", "all"), default="all", help="which hosts' plugin (default: all)"
    )
    plugin.add_argument("--name", default=None, help="the plugin's name (default: the folder's)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.hosts[:1] == ["plugin"]:
        from interlock.cli.generate_plugin import run as run_plugin

        return run_plugin(args)
    try:
        with _alone(args) if args.write else contextlib.nullcontext():
            return _Run(args).run()
    except Stop as stop:
        complain(str(stop))
        return USAGE
    except Failed as failed:
        complain(str(failed))
        return CONFIGURATION


@contextlib.contextmanager
def _alone(args: argparse.Namespace) -> Iterator[None]:
    """One run at a time from reading to writing: what is put into a person's list is worked out from the list as it was."""
    from interlock.hosts.changes.locking import locked
    from interlock.hosts.changes.refused import Refused

    home = home_from(args)
    try:
        with locked(home, [str(home / "generate")]):
            yield
    except Refused as refused:
        raise Failed(f"nothing was written: {refused}") from None


class Failed(Exception):
    """What was asked for cannot be done here; nothing was changed."""


class _Run:
    def __init__(self, args: argparse.Namespace) -> None:
        if args.to is not None:
            raise Stop("--to goes with `interlock generate plugin`")
        self.args = args
        self.plans = Plans(args)
        self.kind: Kind = "direct" if args.direct else "connect"
        self.report: list[dict[str, object]] = []
        self.unset: dict[str, None] = {}
        """Variables that entries refer to and that are not set here."""

    def run(self) -> int:
        loaded = self.plans.loaded
        for problem in loaded.errors:
            complain(str(problem))
        adapters = self.plans.adapters(self.args.hosts)
        if not adapters:
            raise Stop("no host has files on this machine; name one: `interlock generate HOST`")
        if self.kind == "connect" and self.plans.keys is not None:
            raise Stop("--server goes with --direct: Interlock's own entry leads to all servers")
        if not loaded.gateway.servers:
            empty = "" if self.kind == "direct" else ", and Interlock's entry leads to no tool until one does"
            complain(f"no manifest declares a server here{empty}: `interlock check` says where one goes")
        scope: WriteScope = self.args.scope or "user"
        plans = [self.plans.plan(each, self.kind, scope, replacing=self.args.replace) for each in adapters]
        applied = self._write(plans) if self.args.write else None
        for plan in plans:
            self._show(plan, applied)
        self._skipped()
        if self.plans.ledger.fault:
            complain(self.plans.ledger.fault)
        self._end(plans, applied)
        if self.args.json:
            print_json({
                "written": self.args.write, "scope": scope, "kind": self.kind, "change": applied,
                "hosts": self.report, "skipped": [{"server": each.server, "why": each.why} for each in self.plans.skipped],
            })  # fmt: skip
        failed = loaded.errors or any(plan.made.refused for plan in plans)
        return CONFIGURATION if failed else OK

    # Doing

    def _write(self, plans: Sequence[Plan]) -> str | None:
        """The id of the change, for `interlock restore`; None where nothing was to do."""
        from interlock.hosts import generated
        from interlock.hosts.changes.applying import apply
        from interlock.hosts.changes.refused import Refused

        edits = [each for plan in plans for each in plan.made.edits]
        owned = {where: each for plan in plans for where, each in plan.made.owned.items()}
        everything = [*edits, *generated.edits(self.plans.home, owned)]
        if not everything:
            return None
        if self.kind == "connect" and any(plan.scope != "project" for plan in plans):
            self._lay()
        words = getattr(self.args, "words", ["generate"])
        try:
            return apply(self.plans.home, self.plans.machine, everything, command=_typed(words)).id or None
        except Refused as refused:
            raise Failed(f"nothing was written: {refused}") from None

    def _lay(self) -> None:
        from interlock.cli.home_copy import lay

        said, trouble = lay(self.plans.home)
        if trouble is not None:
            raise Failed(f"nothing was written: the entry would start the home copy, and it cannot be laid: {trouble}")
        if said is not None:
            self._say(said)

    # Telling

    def _show(self, plan: Plan, applied: str | None) -> None:
        made, write = plan.made, self.args.write
        one: dict[str, object] = {
            "host": made.host, "file": made.file,
            "entries": [{"server": each.server, "state": each.state, "lossy": each.lossy} for each in made.entries],
            "losses": [
                {"server": each.server, "field": each.loss.field, "why": each.loss.why, "weakens": each.loss.weakens}
                for each in made.losses
            ],
            "refused": [{"server": each.server, "why": each.why, "todo": each.todo} for each in made.refused],
            "notes": list(made.notes), "unset": list(plan.unset),
        }  # fmt: skip
        self.report.append(one)
        self._say(f"{plan.adapter.label}: {made.file or 'no file'}")
        for item in made.entries:
            self._say(f"  {_entry_line(item, write)}")
        if not write:
            one["diff"] = diffs = _differences(plan, self.plans)
            for lines in diffs.values():
                for line in lines:
                    self._say(f"    {line}")
        elif applied is not None and made.edits:
            one["read_back"] = read = _read_back(plan, self.plans)
            for server, said in read.items():
                self._say(f"  read back: {server} is {said}")
        for lost in made.losses:
            mark = "lossy" if lost.loss.weakens else "not kept"
            self._say(f"  {mark}: {lost.server}: `{lost.loss.field}`: {lost.loss.why}")
        for refused in made.refused:
            who = f"{refused.server}: " if refused.server else ""
            self._say(f"  refused: {who}{refused.why} {refused.todo}".rstrip())
        for note in made.notes if made.edits else ():
            self._say(f"  note: {note}")
        if plan.unset and any(item.state != "removed" for item in made.entries):
            self.unset.update(dict.fromkeys(plan.unset))
        if write and made.edits and plan.adapter.closed.value is True:
            self._say(f"  {plan.adapter.label} writes this file from memory: if it runs, quit it and generate again.")
        elif write and made.edits and plan.adapter.reload.value:
            self._say(f"  takes effect: {plan.adapter.reload.value}")

    def _skipped(self) -> None:
        what = "Not generated" if self.kind == "direct" else "Not served through the entry yet"
        for each in self.plans.skipped:
            if self.kind == "direct" or not each.off:
                self._say(f"{what}: {each.server}: {each.why}.")

    def _end(self, plans: Sequence[Plan], applied: str | None) -> None:
        if self.unset:
            them = "it" if len(self.unset) == 1 else "them"
            self._say(f"Not set here: {', '.join(self.unset)}. Hosts have to be started with {them}.")
        if not any(plan.made.edits for plan in plans):
            refused = any(plan.made.refused for plan in plans)
            there = any(plan.made.entries for plan in plans)
            self._say("Nothing was changed." if refused
                      else "Nothing to do: everything stands there already." if there else "Nothing to do.")  # fmt: skip
        elif not self.args.write:
            self._say("Nothing was changed. `--write` makes these changes; `interlock restore` undoes them.")
        elif applied is not None:
            self._say(f"Written. `interlock restore {applied}` undoes it.")

    def _say(self, text: str) -> None:
        if not self.args.json:
            print(safe(sys.stdout, text))


def _typed(words: Sequence[str]) -> str:
    from interlock.journal.redact import redact

    return redact(" ".join(words))


def _entry_line(item: Item, write: bool) -> str:
    would, did = _VERBS[item.state]
    return f"{did if write else would} {item.server}" + (" (lossy)" if item.lossy else "")


def _differences(plan: Plan, plans: Plans) -> Mapping[str, list[str]]:
    from interlock.hosts.changes.applying import planned
    from interlock.hosts.changes.refused import Refused
    from interlock.hosts.masking import difference

    formats: dict[str, Format] = {each.file: each.format for each in plan.made.edits}
    try:
        foreseen = planned(plans.machine, plan.made.edits)
    except Refused as refused:
        return {refused.file: [f"(this cannot be written: {refused.why})"]}
    return {
        each.file: difference(each.file, each.before, each.after, formats.get(each.file, "jsonc")) for each in foreseen
    }


def _read_back(plan: Plan, plans: Plans) -> Mapping[str, str]:
    """What the host makes of the entries now, by the same reading that `inventory` uses."""
    from interlock.hosts.generating import place_for, standing
    from interlock.hosts.reading import read

    place = place_for(plan.adapter, plan.scope)
    reading = read(plan.adapter, standing(plans.machine, plan.scope))
    found: dict[str, str] = {}
    for item in plan.made.entries:
        if item.state == "removed":
            continue
        here = [
            each
            for each in reading.declarations
            if (each.server, each.file, each.scope) == (item.server, plan.made.file, plan.scope)
        ]
        if not here:
            found[item.server] = (
                f"in a file of several hosts; no sign of {plan.adapter.label} itself is on this machine"
                if place is not None and place.shared
                else "NOT THERE: another program may have written the file at the same time"
            )
            continue
        decision = here[0].decided_by
        found[item.server] = here[0].state + (
            "" if here[0].state == "effective" else f": {decision.rule} {decision.by}".rstrip()
        )
    return found
