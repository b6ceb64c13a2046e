"""`interlock doctor`: what is wrong, stage by stage, with a machine, a host or a server, or behind a symptom. It changes nothing."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from interlock.cli import doctor_bridge
from interlock.cli.common import add_common, home_from
from interlock.cli.doctor_showing import list_symptoms, show
from interlock.cli.exit_codes import OK, TOOL_ERROR, USAGE
from interlock.cli.output import complain, print_json
from interlock.cli.remote import is_url, seconds

if TYPE_CHECKING:
    from interlock.doctor.examination import Examination
    from interlock.doctor.finding import Finding
    from interlock.doctor.symptoms import Step

SECONDS = 20.0


class _Subjects(dict[str, argparse.ArgumentParser]):
    """`bridge` has flags of its own; whatever else is named goes to one parser, which is in no list."""

    def __init__(self, named: dict[str, argparse.ArgumentParser], other: argparse.ArgumentParser) -> None:
        super().__init__(named)
        self._other = other

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str) -> argparse.ArgumentParser:
        return self._other


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor", help="find out what is wrong, stage by stage", description=__doc__,
        epilog="SUBJECT is a symptom (`interlock doctor --list`), a server (a key or a URL), a host such as `codex`, or "
        "`bridge [URL]` for one remote connection. Without one: everything that can be seen on this machine. "
        "Exit code 0 where nothing is wrong, 1 where a problem was found.",
    )  # fmt: skip
    subjects = parser.add_subparsers(dest="subject", metavar="SUBJECT", required=False)
    parser.usage = (
        "interlock doctor [symptom | server | host | bridge [URL]]\n"
        "                        [--list] [--server KEY] [--host ID] [--tool NAME] [--start]\n"
        "                        [--all] [--quiet] [--timeout S] [--json] [--home DIR]"
    )
    doctor_bridge.add(subjects, __doc__ or "")
    other = argparse.ArgumentParser(prog=f"{parser.prog} SUBJECT", description=parser.description, epilog=parser.epilog)
    other.add_argument("more", nargs="*", help=argparse.SUPPRESS)
    _flags(parser)
    before = len(other._actions)
    _flags(other)
    add_common(other)
    for action in other._actions[before:]:
        action.default = argparse.SUPPRESS  # they may stand before the subject too, and must not be undone here
    named = _Subjects(dict(subjects.choices), other)
    subjects.choices = subjects._name_parser_map = named
    parser.set_defaults(run=run, more=[])


def _flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--list", action="store_true", help="list the symptoms, and start nothing")
    parser.add_argument(
        "--server", default=None, metavar="KEY", help="only this server: a key, or a URL; starts it where needed"
    )
    parser.add_argument("--host", default=None, metavar="ID", help="only this AI host, such as codex")
    parser.add_argument("--tool", default=None, metavar="NAME", help="only this tool, by the server's own name")
    parser.add_argument("--start", action="store_true", help="start servers where a check needs it, each once")
    parser.add_argument("--all", action="store_true", help="show also what is in order, notes, and what is not known")
    parser.add_argument(
        "--timeout", type=seconds, default=None, metavar="S",
        help=f"wait so long for each server that is started (default: {SECONDS:g}; `bridge`: {doctor_bridge.SECONDS:g})",
    )  # fmt: skip
    parser.add_argument("--quiet", action="store_true", help="show problems only")


def run(args: argparse.Namespace) -> int:
    if args.timeout is None:
        args.timeout = doctor_bridge.SECONDS if args.subject == "bridge" else SECONDS
    if not 0 < args.timeout <= 600:
        complain("--timeout is a number of seconds between 0 and 600.")
        return USAGE
    if args.subject == "bridge":
        return doctor_bridge.run(args)
    if args.list:
        list_symptoms(json=args.json)
        return OK
    return _examine(args, " ".join([args.subject or "", *args.more]).strip())


def _examine(args: argparse.Namespace, subject: str) -> int:
    from interlock.cli.common import load_from
    from interlock.cli.starting import run_loop
    from interlock.doctor.examination import Examination
    from interlock.hosts import registry
    from interlock.hosts.machine import here

    host = None
    if args.host is not None:
        adapter = registry.find(args.host)
        if adapter is None:
            complain(f"there is no host {args.host[:80]!r}. Known: {', '.join(registry.IDS)}.")
            return USAGE
        host = adapter.id
    examination = Examination(
        home_from(args), here(os.environ), load_from(args), args.server, host, args.tool, args.start, args.timeout
    )
    found = run_loop(_steps(examination, subject))
    if found is None:
        return USAGE
    title, steps = found
    if args.server is not None and title in _starting():
        examination.start = True  # a server that was named may be started for a symptom that needs it

    findings, started = run_loop(_findings(examination, steps))
    if args.json:
        print_json([each.as_row() for each in findings])
    else:
        show(title, findings, examination.machine, started=started, everything=args.all, quiet=args.quiet)
    return TOOL_ERROR if any(each.severity == "problem" for each in findings) else OK


def _starting() -> frozenset[str]:
    from interlock.doctor.symptoms import SYMPTOMS

    return frozenset(each.slug for each in SYMPTOMS if each.starts)


async def _findings(examination: Examination, steps: Sequence[Step]) -> tuple[list[Finding], int]:
    """And how many servers were started for them."""
    from interlock.doctor.examining import examined

    examination.forget()  # facts belong to the event loop that found them out
    findings = await examined(examination, steps)
    return findings, len([each for each in await examination.all_started_already() if each.target.program])


async def _steps(examination: Examination, subject: str) -> tuple[str, Sequence[Step]] | None:
    """What the subject is, and what is examined for it; None, after a word on standard error, where it is nothing."""
    from interlock.doctor import symptoms
    from interlock.hosts import registry

    if not subject:
        steps = symptoms.EVERYTHING
        if examination.server is not None:
            return examination.server, symptoms.OF_SERVER
        return (examination.host, symptoms.OF_HOST) if examination.host is not None else ("this machine", steps)
    if subject in symptoms.BY_SLUG:
        return subject, symptoms.BY_SLUG[subject].steps
    keys = await _keys(examination)
    adapter = registry.find(subject)
    if is_url(subject) or (subject in keys and adapter is None):
        examination.server = subject
        return subject, symptoms.OF_SERVER
    if adapter is not None:
        examination.host = adapter.id
        return adapter.id, symptoms.OF_HOST
    symptom = symptoms.named(subject)
    if symptom is not None:
        return symptom.slug, symptom.steps
    complain(_unknown(subject, keys))
    return None


async def _keys(examination: Examination) -> list[str]:
    found = (await examination.inventory()).declarations
    return list(dict.fromkeys([*examination.loaded.gateway.servers, *(each.server for each in found if each.server)]))


def _unknown(subject: str, keys: Sequence[str]) -> str:
    from interlock.doctor.shown import near, shown
    from interlock.doctor.symptoms import meant
    from interlock.hosts import registry

    likely = list(dict.fromkeys([*near(subject, keys), *near(subject, registry.IDS), *meant(subject)]))[:4]
    guess = f" Did you mean {' or '.join(likely)}?" if likely else ""
    return (
        f"{shown(subject, 80)!r} is no symptom, no server of a manifest or a host's file, and no host.{guess} "
        "`interlock doctor --list` lists the symptoms, `interlock inventory` the servers."
    )
