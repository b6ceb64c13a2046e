"""The table of hosts in docs/setup.md is what setup does."""

from __future__ import annotations

import os
from pathlib import Path

from tests.install.written import config_file

from interlock.hosts.machine import Machine
from interlock.install import hosts

PAGE = Path(__file__).resolve().parents[2] / "docs" / "setup.md"


def rows() -> list[list[str]]:
    text = PAGE.read_text(encoding="utf-8")
    table = text[text.index("| host | file (Linux) |") :].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_the_table_of_hosts() -> None:
    linux = Machine(platform="linux", home="~", folder="~", environ={}, root=os.devnull)
    assert [row[0].split("`")[1] for row in rows()] == [host.id for host in hosts.HOSTS]
    for host, (_, file, command, variables) in zip(hosts.HOSTS, rows(), strict=True):
        path = config_file(host, linux)
        assert file.startswith("none" if path is None else f"`{path}`"), host.id
        assert command == (f"`{host.cli.program}`" if host.cli is not None else ""), host.id
        assert variables.startswith(("none", "not established: none")) is not hosts.passes_variables(host, linux), (
            host.id
        )
