"""`interlock generate plugin`: the manifest's servers packed as a plugin."""

from __future__ import annotations

import argparse
import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, OK, USAGE
from interlock.cli.output import complain, print_json, safe

if TYPE_CHECKING:
    from interlock.hosts.changes.applying import WholeFile
    from interlock.hosts.generated import Ledger, Owned, Where
    from interlock.hosts.machine import Machine
    from interlock.hosts.packing import Packed, PluginKind

_HOSTS = {"claude": "claude-code", "codex": "codex"}
_OWNER = "plugin"


def run(args: argparse.Namespace) -> int:
    from interlock.cli.host_plans import Plans, Stop
    from interlock.hosts import packing, registry

    try:
        if len(args.hosts) > 1:
            raise Stop(f"{args.hosts[1]!r}: `generate plugin` takes no host; `--kind` says whose plugin it is")
        if args.to is None:
            raise Stop("`generate plugin` needs `--to DIR`")
        plans = Plans(args)
    except Stop as stop:
        complain(str(stop))
        return USAGE
    folder = Path(os.path.abspath(args.to.expanduser()))
    name = args.name or re.sub(r"[^a-z0-9]+", "-", folder.name.lower()).strip("-")
    kinds: tuple[PluginKind, ...] = packing.KINDS if args.kind == "all" else (args.kind,)
    for problem in plans.loaded.errors:
        complain(str(problem))
    packed = []
    for kind in kinds:
        adapter = registry.find(_HOSTS[kind]) if kind in _HOSTS else None
        packed.append(packing.pack(kind, name, plans.chosen, adapter, connect=args.connect, lossy=plans.lossy))
    code = _write(args, plans.machine, plans.ledger, folder, packed)
    if not args.json:
        for each in plans.skipped if not args.connect else ():
            print(safe(sys.stdout, f"Not packed: {each.server}: {each.why}."))
    return code if code != OK or not plans.loaded.errors else CONFIGURATION


def _write(args: argparse.Namespace, machine: Machine, ledger: Ledger, folder: Path, packed: list[Packed]) -> int:
    from interlock.hosts import generated
    from interlock.hosts.changes.applying import apply, planned
    from interlock.hosts.changes.refused import Refused

    home = home_from(args)
    whole: list[WholeFile] = []
    owned: dict[tuple[str, Where], Owned | None] = {}
    for each in packed:
        files, marks = _whole(each, folder / each.kind if len(packed) > 1 else folder)
        whole += files
        owned |= marks
    foreign = [each.file for each in whole if not _is_ours(machine, ledger, each)]
    if foreign:
        complain(
            f"nothing was written: {', '.join(foreign)} stands there and is not Interlock's; choose another folder"
        )
        return CONFIGURATION
    new = {where: mark for where, mark in owned.items() if ledger.at(*where) != mark}
    try:
        changed = [each.file for each in planned(machine, (), whole)]
        done = apply(home, machine, generated.edits(home, new), command="generate plugin", extra=whole)
    except Refused as refused:
        complain(f"nothing was written: {refused}")
        return CONFIGURATION
    if args.json:
        print_json({"folder": str(folder), "change": done.id or None, "plugins": [_as_dict(each) for each in packed]})
    else:
        _show(folder, packed, changed, done.id)
    return CONFIGURATION if any(each.refused for each in packed) else OK


def _whole(packed: Packed, folder: Path) -> tuple[list[WholeFile], dict[tuple[str, Where], Owned | None]]:
    from interlock.hosts import generated
    from interlock.hosts.changes.applying import WholeFile

    files: list[WholeFile] = []
    marks: dict[tuple[str, Where], Owned | None] = {}
    for path, content in packed.files.items():
        file = str(folder.joinpath(*path.split("/")))
        files.append(WholeFile(file, content))
        marks[file, ()] = generated.Owned(_OWNER, digest=generated.digest(content.decode()))
    return files, marks


def _is_ours(machine: Machine, ledger: Ledger, whole: WholeFile) -> bool:
    """Missing, the same already, or as Interlock left it."""
    from interlock.hosts import generated
    from interlock.hosts.reading import read_bytes

    content = read_bytes(machine, whole.file)
    if content is None or content == whole.content:
        return True
    owned = ledger.at(whole.file, ())
    return owned is not None and owned.digest == generated.digest(content.decode("utf-8", "replace"))


def _as_dict(each: Packed) -> dict[str, object]:
    return {
        "kind": each.kind, "name": each.name, "version": each.version, "files": sorted(each.files),
        "servers": list(each.servers), "variables": list(each.unset),
        "losses": [{"server": lost.server, "field": lost.loss.field, "why": lost.loss.why} for lost in each.losses],
        "refused": [{"server": one.server, "why": one.why, "todo": one.todo} for one in each.refused],
    }  # fmt: skip


def _show(folder: Path, packed: list[Packed], changed: list[str], id: str) -> None:
    for each in packed:
        place = folder / each.kind if len(packed) > 1 else folder
        if each.files:
            _say(f"{each.kind}: {place}: {each.name} {each.version} with {', '.join(each.servers)}")
            if each.unset:
                _say(f"  whoever loads it needs {', '.join(each.unset)} in the environment")
        else:
            _say(f"{each.kind}: nothing was packed")
        for lost in each.losses:
            _say(
                f"  {'lossy' if lost.loss.weakens else 'not kept'}: {lost.server}: `{lost.loss.field}`: {lost.loss.why}"
            )
        for one in each.refused:
            _say(f"  refused: {one.server + ': ' if one.server else ''}{one.why} {one.todo}".rstrip())
    _say(f"Written: {len(changed)} files. `interlock restore {id}` undoes it." if changed else "Nothing to do.")


def _say(text: str) -> None:
    print(safe(sys.stdout, text))
