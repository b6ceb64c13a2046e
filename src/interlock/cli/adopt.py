"""`interlock adopt`: moves the servers of AI hosts behind Interlock; each host keeps one entry that leads to all of them.

The plan is shown first. Everything is one recorded change, which is tried at once; `interlock restore` takes it back.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, NEVER_REACHED, OK, USAGE
from interlock.cli.output import complain, print_json, safe

if TYPE_CHECKING:
    from interlock.cli.adopt_trial import Outcome
    from interlock.hosts.changes.applying import Applied, WholeFile
    from interlock.hosts.machine import Machine
    from interlock.hosts.plan import Plan


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("adopt", help="move the servers of AI hosts behind Interlock", description=__doc__)
    parser.add_argument("host", nargs="*", metavar="HOST", help="only these AI hosts (default: all)")
    parser.add_argument("--dry-run", action="store_true", help="show the plan, and change nothing")
    parser.add_argument("--yes", action="store_true", help="do it without asking")
    parser.add_argument(
        "--scope",
        choices=("user", "project"),
        default="user",
        help="the user's own files (default), or those of the project here",
    )
    parser.add_argument(
        "--move-secrets",
        action="store_true",
        help="move literal secrets out of the hosts' files into files that only you can read",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.cli.import_ import UnknownHost
    from interlock.hosts.changes.refused import Refused
    from interlock.hosts.machine import here
    from interlock.hosts.shown_paths import shortened
    from interlock.hosts.target import Unusable

    adopt: _Adopt | None = None
    try:
        adopt = _Adopt(args)
        return adopt.run()
    except UnknownHost as error:
        complain(str(error))
        return USAGE
    except BrokenPipeError:
        raise  # whoever reads our output has gone: main knows what to do
    except (Unusable, Refused, OSError, Stop) as error:
        done = adopt.done if adopt is not None else None
        what = (
            "nothing was changed" if done is None else f"the files are changed (`interlock restore {done}` undoes it)"
        )
        complain(shortened(f"{what}: {error}", here()))
        return CONFIGURATION


class Stop(Exception):
    """Nothing was changed; the text says why."""


class _Adopt:
    def __init__(self, args: argparse.Namespace) -> None:
        from interlock.cli.import_ import chosen
        from interlock.hosts.machine import here

        self.args = args
        self.home: Path = home_from(args)
        self.machine: Machine = here()
        self.hosts = chosen(args.host)
        self.report: dict[str, object] = {}
        self.done: str | None = None
        """Id of the recorded change, once it is made."""

    def run(self) -> int:
        from interlock.cli.adopt_telling import as_dict, lines, to_correct

        plan = self._plan(moving=self.args.move_secrets)
        if not self.args.move_secrets and not self.args.dry_run and self._may_move(plan):
            plan = self._plan(moving=True)
        self.report = {**as_dict(plan), "dry_run": self.args.dry_run, "applied": None, "trial": []}
        for line in lines(plan):
            self._say(line)
        if not plan.adopted:
            for line in to_correct(plan):
                self._say(line)
            self._say("There is nothing to adopt.")
            return self._end(OK)
        if self.args.dry_run:
            self._foresee(plan)
            self._say("")
            for line in to_correct(plan):
                self._say(line)
            self._say(f"Nothing was changed. `interlock {self._words()}` does it.")
            return self._end(OK)
        for line in to_correct(plan):
            self._say(line)
        if not self._agreed():
            raise Stop("nobody agreed (`--yes` does without asking)")
        applied = self._apply(plan)
        self._say(f"Done. `interlock restore {applied.id}` takes all of it back.")
        return self._end(self._try(plan, applied))

    # The plan

    def _plan(self, *, moving: bool) -> Plan:
        from interlock.cli.import_ import declarations, manifest_file
        from interlock.gates.approval import HOSTS_THAT_ASK
        from interlock.hosts import generated, plan, target
        from interlock.hosts.documents import Means

        file = manifest_file(self.args.scope, self.home, self.machine)
        folder = self.home / "secrets"
        usual = self.home == Path(os.path.abspath(os.path.expanduser("~/.interlock")))
        means = Means(
            environ=self.machine.environ,
            secrets=folder if moving else None,
            secrets_shown="~/.interlock/secrets" if usual else os.fspath(folder),
            asking=frozenset(HOSTS_THAT_ASK),
        )
        return plan.make(
            declarations(self.machine, self.hosts),
            self.machine,
            home=self.home,
            target=target.read(file, self.args.scope, self.machine),
            connect=self._command,
            which=self.args.scope,
            means=means,
            ledger=generated.read(self.home, self.machine),
        )

    def _command(self, host: str) -> tuple[str, ...]:
        """What the host starts. In a project's files the bare name, which every copy of the project can have."""
        if self.args.scope == "project":
            return ("interlock", "connect", "--host", host)
        from interlock.install.launcher import command

        usual = Path(os.path.abspath(os.path.expanduser("~/.interlock")))
        more = [] if self.home == usual else ["--home", str(self.home)]
        return (*command(self.home), "connect", "--host", host, *more)

    def _foresee(self, plan: Plan) -> None:
        """What --dry-run says besides: whether the files can be changed, and the lines that would change."""
        from interlock.cli.adopt_telling import differences
        from interlock.hosts.shown_paths import shortened

        self.report["changes"] = changed = differences(plan, self._extra(plan))
        for each in changed:
            self._say("")
            for line in each["diff"]:
                self._say(line)
        if self.args.scope == "user":
            where = shortened(os.fspath(self.home / "app"), self.machine)
            self._say(f"\nThe home copy in {where} would be laid first where it is missing or older.")

    def _words(self) -> str:
        """The command as it would be typed, without what only says how to ask."""
        more = ["--scope", self.args.scope] if self.args.scope != "user" else []
        more += ["--move-secrets"] if self.args.move_secrets else []
        return " ".join(["adopt", *self.args.host, *more])

    # Asking

    def _is_person(self) -> bool:
        return not (self.args.json or self.args.yes) and sys.stdin.isatty() and sys.stdout.isatty()

    def _may_move(self, plan: Plan) -> bool:
        movable = [secret for secret in plan.unsettled if secret.movable]
        if not movable or not self._is_person():
            return False
        from interlock.hosts.shown_paths import shortened

        keys = ", ".join(dict.fromkeys(secret.server for secret in movable))
        where = shortened(os.fspath(self.home / "secrets"), self.machine)
        return _yes(
            f"Secrets stand in the hosts' files ({keys}). Move them to {where}, where only you can read them? [y/N] "
        )

    def _agreed(self) -> bool:
        return bool(self.args.yes) or (self._is_person() and _yes("Do this? [y/N] "))

    # Doing

    def _extra(self, plan: Plan) -> list[WholeFile]:
        """The manifest and the moved secrets."""
        from interlock.hosts.changes.applying import WholeFile

        made = [WholeFile(str(secret.file), f"{secret.value}\n".encode()) for secret in plan.secrets]
        if plan.content is not None:
            made.append(WholeFile(os.fspath(plan.target.file), plan.content))
        return made

    def _apply(self, plan: Plan) -> Applied:
        from interlock.cli.home_copy import lay
        from interlock.hosts.changes.applying import apply
        from interlock.hosts.changes.locking import locked
        from interlock.install.places import private_folder

        for secret in plan.secrets:
            if secret.file is not None and secret.file.exists():
                raise Stop(f"{secret.file} is there already: look at it, and take it away")
        if self.args.scope == "user":
            said, trouble = lay(self.home)
            if trouble is not None:
                raise Stop(f"the hosts would start the home copy, and it cannot be laid: {trouble}")
            if said is not None:
                self._say(said)
        private_folder(os.fspath(self.home))
        with locked(self.home, [os.fspath(self.home / "generate")]):
            # What was shown is done, or nothing: meanwhile a host, a person or another run may have written a file.
            now = self._plan(moving=plan.moving)
            if (now.edits(), now.content) != (plan.edits(), plan.content):
                raise Stop("the hosts' files or the manifest were changed meanwhile: run this again")
            applied = apply(self.home, self.machine, plan.edits(), command=self._words(), extra=self._extra(plan))
        self.done = applied.id
        self.report["applied"] = {"id": applied.id, "files": [each.file for each in applied.files]}
        if self.args.scope == "project":
            self._trust(plan)
        return applied

    def _trust(self, plan: Plan) -> None:
        """Whoever agreed to the plan has seen what the project's manifest starts, and every host started it before."""
        from interlock.manifest import trust
        from interlock.manifest.loading import load

        loaded = load(manifests=[], home=self.home, project_root=Path(self.machine.folder))
        own = [each for each in loaded.trusts if each.file == plan.target.file and not each.trusted]
        if own:
            trust.remember(self.home, own)
            self._say(f"{plan.target.file} is trusted on this machine; others look at it with `interlock trust`.")

    def _try(self, plan: Plan, applied: Applied) -> int:
        from interlock.cli.adopt_trial import tried
        from interlock.hosts.shown_paths import shortened

        code, silent = OK, False
        outcomes: list[dict[str, object]] = []
        for host in plan.hosts:
            if host.entry is None:
                continue
            self._say(f"Starting it as {host.adapter.label} would ...")
            outcome: Outcome = tried(plan, host, self.home)
            outcomes.append(outcome.as_dict())
            for line in outcome.lines():
                self._say(shortened(line, self.machine))
            silent = silent or not all(outcome.tools.values())
            if not outcome.good:
                code = NEVER_REACHED
        self.report["trial"] = outcomes
        if code != OK:
            self._worse(applied)
        elif silent:
            self._say("What does not answer is named above, and did not before; everything else works.")
        return code

    def _worse(self, applied: Applied) -> None:
        """Something worked before and does not now. Who is there decides; else it stays, and the exit code says so."""
        self._say(
            f"Something worked before and does not now; it is named above. `interlock restore {applied.id}` undoes all."
        )
        if not (self._is_person() and _yes("Undo everything? [y/N] ")):
            return
        from interlock.hosts.changes.restoring import restore

        done = restore(self.home, self.machine, applied.id, force=False)
        self.report["undone"] = done.complete
        self._say(
            "Everything is as it was." if done.complete else f"Not all could be undone: `interlock restore {done.id}`."
        )

    def _say(self, text: str) -> None:
        if not self.args.json:
            print(safe(sys.stdout, text))

    def _end(self, code: int) -> int:
        if self.args.json:
            print_json({**self.report, "exit": code})
        return code


def _yes(question: str) -> bool:
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False
