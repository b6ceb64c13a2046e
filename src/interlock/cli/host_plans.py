"""What `generate` and `diff` share: which hosts, which servers, and the plan for each host's file."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, cast

from interlock.cli.common import home_from, load_from

if TYPE_CHECKING:
    from interlock.hosts.adapter import Adapter
    from interlock.hosts.generated import Ledger
    from interlock.hosts.generating import Generated
    from interlock.hosts.machine import Machine
    from interlock.hosts.wanting import Skipped, WriteScope
    from interlock.manifest.config import LossyPolicy, ServerConfig
    from interlock.manifest.loading import Loaded

Kind = Literal["connect", "direct"]
SCOPES: tuple[WriteScope, ...] = ("user", "project", "local")


class Stop(Exception):
    """The command line names something that is not there."""


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("hosts", nargs="*", metavar="HOST", help="AI hosts (default: those with files on this machine)")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--connect", action="store_true", help="one entry that starts Interlock, which has all servers")
    kind.add_argument("--direct", action="store_true", help="an entry for each server; the host connects to it itself")
    parser.add_argument("--scope", choices=SCOPES, default=None, help="whose file: user (default), project, or local")
    parser.add_argument(
        "--server", action="append", default=None, metavar="KEY", help="only this server; may be repeated"
    )
    parser.add_argument(
        "--lossy", choices=("error", "warn"), default=None,
        help="what to do where a host cannot express an entry (default: what the entry's `lossy` says)",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """For one host in one scope."""

    adapter: Adapter
    scope: WriteScope
    kind: Kind
    made: Generated
    unset: tuple[str, ...]
    """Variables that the entries refer to and that are not set here."""


class Plans:
    """One run of a command over hosts."""

    def __init__(self, args: argparse.Namespace) -> None:
        from interlock.hosts import generated, wanting
        from interlock.hosts.machine import here

        self.home: Path = home_from(args)
        self.machine: Machine = here()
        self.loaded: Loaded = load_from(args)
        self.ledger: Ledger = generated.read(self.home, self.machine)
        self.keys: list[str] | None = args.server
        self.lossy = cast("LossyPolicy | None", args.lossy)
        self.manifests: list[Path] = [Path(os.path.abspath(path.expanduser())) for path in args.manifest or ()]
        servers = self.loaded.gateway.servers
        missing = [key for key in self.keys or () if key not in servers]
        if missing:
            known = f"; there are {', '.join(servers)}" if servers else ""
            raise Stop(f"no manifest declares {', '.join(repr(key) for key in missing)}{known}")
        self.chosen: list[ServerConfig]
        self.skipped: list[Skipped]
        self.chosen, self.skipped = wanting.candidates(self.loaded.gateway, self.keys)

    def adapters(self, names: Sequence[str]) -> list[Adapter]:
        from interlock.hosts import registry

        if names:
            found = []
            for name in names:
                adapter = registry.find(name)
                if adapter is None:
                    raise Stop(f"{name!r} is no host that Interlock knows. It knows: {', '.join(registry.IDS)}")
                if adapter not in found:
                    found.append(adapter)
            return found
        return [adapter for adapter in registry.every() if self.has_files(adapter)]

    def has_files(self, adapter: Adapter) -> bool:
        return any(
            os.path.isfile(self.machine.real(path))
            for place in adapter.places
            if place.scope in SCOPES and not place.shared
            for path in place.find(self.machine)
        )

    def plan(self, adapter: Adapter, kind: Kind, scope: WriteScope, *, replacing: bool = False) -> Plan:
        from interlock.hosts import generating, wanting

        root = self.machine.repository() or self.machine.folder
        gateway = self.loaded.gateway
        wanted: list[wanting.Prepared] = []
        names: tuple[str, ...]
        if kind == "connect":
            own = wanting.connect(self.command(adapter, scope), gateway, scope, root)
            wanted, names = [wanting.Prepared(own, None)], own.pass_names
        else:
            wanted = [wanting.direct(config, adapter, self.machine, scope, root) for config in self.chosen]
            names = tuple(sorted({name for config in self.chosen for name in wanting.variables(config)}))
        keeping = [each.server for each in self.skipped if not each.off]
        if (
            self.loaded.errors
        ):  # what a manifest with errors declares is not known, so nothing of ours is known to be gone
            keeping = [owned.server for _file, _where, owned in self.ledger.of_host(adapter.id)]
        made = generating.plan(
            adapter, self.machine, wanted, self.lossy, scope=scope, ledger=self.ledger, replacing=replacing,
            keeping=None if self.keys is not None and kind == "direct" else keeping if kind == "direct" else (),
        )  # fmt: skip
        unset = tuple(name for name in names if name not in os.environ)
        return Plan(adapter, scope, kind, self._possible(made), unset)

    def _possible(self, made: Generated) -> Generated:
        """One host's file that cannot be changed keeps no other host's from being written."""
        from interlock.hosts.changes.applying import planned
        from interlock.hosts.changes.refused import Refused as Unchangeable
        from interlock.hosts.outcome import Refused

        try:
            planned(self.machine, made.edits)
        except Unchangeable as refused:
            why = Refused("", f"{refused}.", "Correct the file first.")
            return replace(made, edits=(), owned={}, entries=(), refused=(*made.refused, why))
        return made

    def command(self, adapter: Adapter, scope: WriteScope) -> tuple[str, ...]:
        """What the host starts. In a project's file the bare name, which every copy of the project can have."""
        if scope == "project":
            return ("interlock", "connect", "--host", adapter.id)
        from interlock.install.launcher import command

        home = Path(os.path.abspath(os.path.expanduser("~/.interlock")))
        more = [] if self.home == home else ["--home", str(self.home)]
        for path in self.manifests:
            more += ["--manifest", str(path)]
        return (*command(self.home), "connect", "--host", adapter.id, *more)

    def recorded(self, adapter: Adapter) -> Iterator[tuple[WriteScope, Kind]]:
        """The scopes in whose files Interlock has entries of this host, and of which kind they are."""
        from interlock.hosts import generating
        from interlock.hosts.wanting import CONNECT_KEY

        for scope in SCOPES:
            place = generating.place_for(adapter, scope)
            file = None if place is None else generating.file_for(place, generating.standing(self.machine, scope))
            names = {
                owned.server
                for path, where, owned in self.ledger.of_host(adapter.id)
                if path == file and place is not None and len(where) == len(place.tables[0]) + 1 and owned.server
            }
            if names:
                yield scope, "connect" if CONNECT_KEY in names else "direct"
