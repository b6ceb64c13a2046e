"""`interlock setup`: connects one AI host to one remote server, the best way that this host and machine allow."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.common import add_common, home_from
from interlock.cli.exit_codes import CONFIGURATION, OK, USAGE
from interlock.cli.output import complain, print_json, safe
from interlock.cli.setup_flags import Stop, checked

if TYPE_CHECKING:
    from interlock.hosts.machine import Machine
    from interlock.install.configure import Job
    from interlock.install.entries import Found
    from interlock.install.hosts import Host
    from interlock.install.ladder import Choice

_MORE_WORDS = "Flags of `interlock bridge` are passed on to it: `interlock setup codex URL --token-env NAME`."


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from interlock.install.hosts import HOSTS

    parser = commands.add_parser(
        "setup",
        help="connect an AI host to a remote server",
        description=f"{__doc__} It ends with one real call. {_MORE_WORDS}",
        usage=_usage([host.id for host in HOSTS]),
    )
    parser.add_argument("host", metavar="HOST", help="the AI host, such as claude-code, codex or cursor")
    parser.add_argument("url", metavar="URL", help="the server, such as https://mcp.example.com/mcp")
    _own_flags(parser)
    rest = parser.add_argument("flags", nargs=argparse.REMAINDER, metavar="...", help="flags of `interlock bridge`")
    rest.required = False  # or "..." would be named among what is missing
    parser.set_defaults(run=run)


def _usage(hosts: Sequence[str]) -> str:
    """With the hosts in it: whoever leaves HOST out has to see them."""
    listed = textwrap.wrap("HOST is one of " + ", ".join(hosts) + ".", 100, break_on_hyphens=False)
    return (
        "interlock setup HOST URL [--name NAME] [--yes] [--no-updates] [--dry-run] [flags of `interlock bridge`]\n\n"
        + "\n".join(listed)
    )


def _own_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=None, help="what the entry is called (default: from the URL)")
    parser.add_argument("--yes", action="store_true", help="ask nothing; also yes to looking for newer releases")
    parser.add_argument("--no-updates", action="store_true", help="never look for newer releases")
    parser.add_argument("--dry-run", action="store_true", help="say what would be done, and change nothing")


def run(args: argparse.Namespace) -> int:
    args, flags = _sorted_out(args)
    report: dict[str, object] = {}
    try:
        code = _Setup(args, flags, report).run()
    except Stop as stop:
        report["error"] = str(stop)
        complain(str(stop))
        if stop.snippet is not None:
            report["snippet"] = stop.snippet
            if not args.json:
                print(f"To paste:\n\n{stop.snippet}")
        code = stop.code
    if args.json:
        print_json({**report, "exit": code})
    return code


def _sorted_out(args: argparse.Namespace) -> tuple[argparse.Namespace, list[str]]:
    """Own flags may also stand behind the URL; what is left there belongs to the bridge."""
    again = argparse.ArgumentParser(prog="interlock setup", add_help=False, allow_abbrev=False)
    _own_flags(again)
    add_common(again)
    later, flags = again.parse_known_args([flag for flag in args.flags if flag != "--"])
    merged = dict(vars(args))
    for name, value in vars(later).items():
        if value != again.get_default(name):
            merged[name] = value
    return argparse.Namespace(**merged), flags


class _Setup:
    """One run. `report` gathers what `--json` prints."""

    def __init__(self, args: argparse.Namespace, flags: Sequence[str], report: dict[str, object]) -> None:
        from interlock.hosts.machine import here
        from interlock.install import hosts, naming
        from interlock.journal.redact import redact

        self.args = args
        self.home: Path = home_from(args)
        self.report = report
        self.plugin: Found | None = None
        self.machine: Machine = here()
        found = hosts.find(args.host)
        swapped = hosts.find(args.url)
        if found is None and swapped is not None:
            raise Stop(USAGE, f"the host comes first: `interlock setup {swapped.id} {redact(args.host)}`")
        if found is None:
            known = ", ".join(host.id for host in hosts.HOSTS)
            raise Stop(USAGE, f"{args.host!r} is no host that setup knows. It knows: {known}. Any other has to start this:\n"
                        f"  {shlex.join([*self._launcher(), 'bridge', redact(args.url)])}")  # fmt: skip
        self.host: Host = found
        self.bridge = checked(self.host, self.machine, args.url, flags)
        self.name: str = args.name or naming.from_url(args.url)
        if (why := naming.trouble_with(self.name, self.host)) is not None:
            raise Stop(USAGE, f"{why}; choose another with --name")
        report.update(host=self.host.id, url=args.url, name=self.name, dry_run=args.dry_run)

    def run(self) -> int:
        from interlock.cli.setup_updates import settle
        from interlock.install.ladder import Rung

        choice = self._choice()
        for reason in choice.passed_over():
            self._say(reason)
        self.report.update(rung=int(choice.rung), using=choice.using, reasons=choice.reasons, price=choice.price)
        if choice.rung is Rung.NONE:
            raise Stop(CONFIGURATION, f"no connection of {self.host.label} to {self.args.url} can be set up")
        self._say(f"Using: {choice.using}.")
        if choice.price is not None:
            self._say(choice.price)
            if self.bridge.flags:
                self._say(f"What the bridge's flags ask for is not in such an entry: {' '.join(self.bridge.flags)}")
        self._say_parallel(choice)
        self._say_unset()
        job = None
        if choice.rung is not Rung.PLUGIN:
            job = self._job(choice)
            if self.args.dry_run:
                return self._plan(job)
            self._write(job)
        elif self.args.dry_run:
            return OK
        self.report["updates"], said = settle(self.home, self.args)
        if said is not None:
            self._say(said)
        if job is not None and job.command is not None:
            return self._prove(job.command)
        if self.plugin is not None:
            words = self.plugin.command
            # A word with a variable is the host's to fill in: then our own launcher stands for it.
            return self._prove(self._command() if any("$" in word for word in words) else words)
        return self._prove_native()

    # What is to be done

    def _launcher(self) -> list[str]:
        from interlock.install.launcher import command

        return command(self.home)

    def _command(self) -> tuple[str, ...]:
        """What the host will start. `--home` only where the launcher could not know it."""
        home = (
            [] if self.home == Path(os.path.abspath(os.path.expanduser("~/.interlock"))) else ["--home", str(self.home)]
        )
        return (*self._launcher(), "bridge", self.args.url, "--host", self.host.id, *self.bridge.flags, *home)

    def _choice(self) -> Choice:
        from interlock.install import entries, ladder

        self.plugin = entries.plugin_with_bridge(self.host, self.machine, self.args.url)
        no_process = None if self.plugin is not None or self.host.adapter is None else self._lay()
        return ladder.choose(self.host, ladder.Machine(self.plugin, no_process))

    def _lay(self) -> str | None:
        """Lay the home copy where it is missing or older, and start it; why that cannot be, or None."""
        import subprocess

        from interlock import __version__
        from interlock.install import laying, record
        from interlock.install.closure import NotCopyable
        from interlock.install.places import version_of
        from interlock.install.version import newer

        standing = record.standing(self.home)
        fit = standing.current is not None and standing.trouble is None
        if not fit or newer(__version__, version_of(standing.current or "")):
            if self.args.dry_run:
                self._say(f"Would lay the home copy in {self.home / 'app'}.")
                return None if os.access(_existing(self.home), os.W_OK) else f"{self.home} cannot be written"
            if standing.trouble is not None:
                self._say(f"The home copy is not fit to run ({standing.trouble}): laying it anew.")
            try:
                laid = laying.lay_self(self.home)
            except (laying.LayingFailed, NotCopyable) as error:
                return str(error)
            except OSError as error:
                return f"{error.filename or self.home}: {error.strerror or error}"
            self.report["laid"] = laid.name
            self._say(f"Laid {laid.name} in {laid.path}.")
        try:
            told = subprocess.run(
                [*self._launcher(), "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return str(error)
        if told.returncode != 0:
            return told.stderr.decode("utf-8", "replace").strip() or f"the launcher ended with {told.returncode}"
        return None

    def _job(self, choice: Choice) -> Job:
        from interlock.install import hosts
        from interlock.install.configure import Job
        from interlock.install.ladder import Rung

        command = self._command() if choice.rung is Rung.BRIDGE else None
        rendered = (
            hosts.bridge(self.host, self.machine, self.name, command, self.bridge.names)
            if command is not None
            else hosts.native(self.host, self.machine, self.name, self.args.url)
        )
        if rendered is None:
            raise Stop(CONFIGURATION, f"{self.host.label} has no entry for a URL")
        return Job(self.host, self.machine, str(self.home), self.name, rendered, command, self.args.url)

    # Doing it

    def _plan(self, job: Job) -> int:
        from interlock.install.configure import Refused, planned

        try:
            plan = planned(job)
        except Refused as refused:
            raise Stop(CONFIGURATION, refused.why, refused.snippet) from None
        self.report["plan"] = plan
        self._say(f"Would {plan}")
        for note in job.rendered.notes:
            self._say(note)
        return OK

    def _write(self, job: Job) -> None:
        from interlock.install.configure import Refused, write

        try:
            written = write(job)
        except Refused as refused:
            raise Stop(CONFIGURATION, refused.why, refused.snippet) from None
        self.report.update(written._asdict())
        if written.how == "unchanged":
            self._say(f"{written.file} has this entry already.")
        else:
            by = f" by `{job.host.cli.program}`" if written.how == "command" and job.host.cli is not None else ""
            did = "Replaced the entry" if written.replaced else "Wrote the entry"
            self._say(f'{did} "{job.name}" {"in" if written.replaced else "into"} {written.file}{by}.')
            for line in written.changes:
                self._say(f"  {line}")
        if written.backup is not None:
            self._say(f"The file as it was: {written.backup}")
        if written.undo is not None:
            self._say(f"To take it back: {written.undo}")
        for remark in written.remarks:
            self._say(remark)
        self._say(self.host.afterwards)

    def _say_parallel(self, choice: Choice) -> None:
        """Two ways to one server work, but only one of them has what the bridge promises."""
        from interlock.install.entries import of_host, same_url
        from interlock.install.ladder import Rung

        own = {Rung.NATIVE: "native", Rung.BRIDGE: "interlock"}.get(choice.rung)
        parallel: list[Found] = [
            found
            for found in of_host(self.host, self.machine)
            if found.way in ("native", "other-bridge", "interlock") and same_url(found.url, self.args.url)
            and not (found.name == self.name and found.way == own)
            and not (self.plugin is not None and found.file == self.plugin.file)
        ]  # fmt: skip
        self.report["parallel"] = [{"file": one.file, "name": one.name, "way": one.way} for one in parallel]
        for found in parallel:
            beside = f'Beside it "{found.name}" in {found.file}'
            if found.way == "interlock":
                self._say(
                    f"{beside} starts a bridge to the same URL too: two sets of the same tools. Keep one of them."
                )
                continue
            what = "connects by itself" if found.way == "native" else "goes through another bridge"
            self._say(
                f"{beside} {what} to the same URL: two sets of the same tools. Calls through that one share no sign-in, "
                "get no verdicts and have no session binding; send writes through this one."
            )

    def _say_unset(self) -> None:
        missing = [name for name in self.bridge.names if name not in os.environ]
        if missing and not self.host.own_secrets:
            self._say(f"Not set here: {', '.join(missing)}. The host must be started with it.")

    def _prove(self, command: Sequence[str]) -> int:
        from interlock.cli.setup_outcome import exit_code, told
        from interlock.install import proof

        self._say("Starting it as the host would ...")
        environment = proof.clean_environment(os.environ, self.bridge.names)
        # One page for one sign-in: it is opened below, where a person's screen is known.
        outcome = proof.call(command, {**environment, "INTERLOCK_NO_BROWSER": "1"})
        self.report["proof"] = {
            "outcome": outcome.kind, "tools": list(outcome.tools), "authorize_url": outcome.authorize_url,
            "said": outcome.said, "seconds": round(outcome.seconds, 3), "verdict": outcome.verdict,
        }  # fmt: skip
        self._say(safe(sys.stdout, told(outcome, self.args.url)))
        if outcome.authorize_url is not None and "device" in self.bridge.flags:
            self._say(safe(sys.stdout, outcome.said))  # the code to enter there
        if outcome.authorize_url is not None and not self.args.json and "--no-browser" not in self.bridge.flags:
            from interlock.upstream.oauth.browser import open_browser

            if open_browser(outcome.authorize_url):
                self._say("A browser was opened with it.")
        return exit_code(outcome)

    def _prove_native(self) -> int:
        from interlock.cli.setup_outcome import exit_code
        from interlock.install import proof_native

        outcome = proof_native.call(self.args.url)
        self.report["proof"] = {"outcome": outcome.kind, "said": outcome.said, "seconds": round(outcome.seconds, 3)}
        if outcome.kind in ("tools", "login"):
            self._say(f"The way is open: {outcome.said}. Open {self.host.label} and sign in there if it asks.")
            return OK
        self._say(f"The entry is written, but the call did not succeed: {outcome.said}")
        return exit_code(outcome)

    def _say(self, text: str) -> None:
        if not self.args.json:
            print(text)


def _existing(path: Path) -> Path:
    """The nearest folder that is there."""
    return next(folder for folder in (path, *path.parents) if folder.exists())
