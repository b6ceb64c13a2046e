"""`interlock trust`: a person looks at what a manifest would run, and says yes or no at a terminal."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.common import CONFIGURATION, OK, USAGE, home_from, load_from

if TYPE_CHECKING:
    from interlock.manifest.launch import LaunchPlan
    from interlock.manifest.loading import Loaded
    from interlock.manifest.trust import Record, Trust

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "trust",
        help="look at what a manifest would run, and trust it",
        description="A manifest that is neither yours nor the administrator's starts nothing until you have trusted it "
        "here. You are asked again when what it would run changes. Without FILE: the manifests that wait for it.",
    )
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="manifest file or folder")
    parser.add_argument("--hash", action="store_true", help="only print the hash of what would run, for --trusted-hash")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.files:
        args = argparse.Namespace(**{**vars(args), "manifest": args.files})
    loaded = load_from(args)
    for problem in loaded.errors:
        print(problem, file=sys.stderr)
    if args.hash:
        return _print_hashes(loaded, args)
    waiting = [trust for trust in loaded.trusts if trust.how in ("never", "changed")]
    if args.json:
        print(json.dumps([_as_dict(trust) for trust in loaded.trusts], indent=2))
        return CONFIGURATION if waiting or loaded.errors else OK
    return _ask_for_all(waiting, loaded, home_from(args))


def _print_hashes(loaded: Loaded, args: argparse.Namespace) -> int:
    """One hash a file; with the file's name where there are several, as sha256sum does."""
    if not loaded.trusts:
        print("There is no manifest here that declares a server.", file=sys.stderr)
        return CONFIGURATION
    if args.json:
        print(json.dumps([{"file": str(trust.file), "hash": trust.hash} for trust in loaded.trusts], indent=2))
    else:
        for trust in loaded.trusts:
            print(trust.hash if len(loaded.trusts) == 1 else f"{trust.hash}  {trust.file}")
    return CONFIGURATION if loaded.errors else OK


def _ask_for_all(waiting: Sequence[Trust], loaded: Loaded, home: Path) -> int:
    from interlock.manifest import trust as trusting

    if not waiting:
        print("Nothing waits for your trust." if loaded.trusts else "There is no manifest here that declares a server.")
        for trust in loaded.trusts:
            print(f"  {trust.file}: {trust.reason or _WHY[trust.how]}")
        return OK if loaded.trusts and all(trust.trusted for trust in loaded.trusts) else CONFIGURATION
    stored = trusting.read(home)
    for trust in waiting:
        for line in description(trust, stored.records.get(str(trust.file))):
            print(line)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        print(
            "Trust is given by a person at a terminal, and this is none: run `interlock trust` there. "
            "For tests and CI, `interlock trust --hash FILE` prints a hash and --trusted-hash accepts exactly it.",
            file=sys.stderr,
        )
        return USAGE
    refused = False
    for trust in waiting:
        if _yes(f"Let {trust.file} start these? [y/N] "):
            path = trusting.remember(home, [trust])
            print(f"Trusted, and remembered in {path}.")
        else:
            refused = True
            print("Not trusted. Nothing in it starts.")
    return CONFIGURATION if refused else OK


def _yes(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        print()
        return False


_WHY: Mapping[str, str] = {
    "scope": "yours or the administrator's, so it needs none",
    "packaged": "came with Interlock",
    "hash": "accepted by --trusted-hash",
    "stored": "trusted",
    "empty": "starts nothing",
}


def description(trust: Trust, before: Record | None) -> Iterator[str]:
    """What a person reads before the question. Nothing from the manifest can move the cursor or hide a part."""
    from interlock.manifest.trust import server_hash

    yield f"{trust.file} would start:" if before is None else f"{trust.file} has changed. It would now start:"
    for plan in trust.plans:
        change = ""
        if before is not None:
            known = before.servers.get(plan.key)
            change = " (new)" if known is None else " (changed)" if known != server_hash(plan) else " (as before)"
        yield ""
        yield f"  {visible(plan.key)}{change}"
        yield from _plan_lines(plan)
    if before is not None:
        for key in sorted(set(before.servers) - {plan.key for plan in trust.plans}):
            yield f"  {visible(key)} (no longer)"
    yield ""
    yield f"  {trust.hash}"
    yield ""


_LISTS: Mapping[str, str] = {"capability.tools.allow": "only", "capability.tools.deny": "never"}


def _plan_lines(plan: LaunchPlan) -> Iterator[str]:
    if plan.command:
        words = [visible(word, quoted=True) for word in plan.command]
        yield f"    runs       {' '.join(words)}"
    if plan.directory is not None:
        yield f"    in         {visible(plan.directory)}"
    for line in plan.env:
        yield f"    gets       {visible(line)}"
    if plan.url is not None:
        from_variable = plan.url.startswith("$")
        yield f"    connects   {visible(plan.url)}{' (a variable of your environment)' if from_variable else ''}"
    for line in plan.headers:
        yield f"    sends      {visible(line)}"
    for line in plan.login:
        yield f"    logs in    {visible(line)}"
    for line in plan.session:
        yield f"    session    {visible(line)}"
    for line in plan.unasked:
        # The lists of tools matter here, because they say which tools the line before them lets run.
        label = _LISTS.get(line.partition(":")[0], "no asking")
        yield f"    {label:<10} {visible(line)}"
    for line in plan.uncovered:
        yield f"    uncovered  {visible(line)}"
    if plan.uncovered:
        yield "               (files of the same repository: what they do can change without your being asked)"


def visible(text: str, *, quoted: bool = False) -> str:
    """The text with everything that a terminal would act on or not show written as an escape."""
    import shlex

    safe = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return shlex.quote(safe) if quoted else safe


def _as_dict(trust: Trust) -> Mapping[str, object]:
    return {
        "file": str(trust.file),
        "hash": trust.hash,
        "trusted": trust.trusted,
        "how": trust.how,
        "servers": [
            {
                "key": plan.key,
                "integrationId": plan.integration_id,
                "transport": plan.transport,
                "command": plan.command,
                "directory": plan.directory,
                "env": plan.env,
                "url": plan.url,
                "headers": plan.headers,
                "login": plan.login,
                "session": plan.session,
                "unasked": plan.unasked,
                "uncovered": plan.uncovered,
            }
            for plan in trust.plans
        ],
    }
