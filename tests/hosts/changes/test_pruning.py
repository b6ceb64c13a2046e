"""Records of old runs do not pile up; whatever is young, or among the newest, can still be undone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.hosts.changes.conftest import Disk, change

from interlock.hosts.changes import recording
from interlock.hosts.changes.applying import apply
from interlock.hosts.changes.restoring import history, restore
from interlock.hosts.machine import Machine

OLD, YOUNG = "20200101T000000.{:06d}Z-abcdef", "29990101T000000.{:06d}Z-abcdef"


def _records(home: Path, machine: Machine, name: str, count: int) -> list[str]:
    """As many runs of that time, made from a real one."""
    first = apply(home, machine, [change("a.json", (f"made.{name[:4]}", 1))], command="generate").id
    made = [name.format(number) for number in range(count)]
    for id in made:
        shutil.copytree(home / "changes" / first, home / "changes" / id)
        record = home / "changes" / id / recording.NAME
        record.write_text(record.read_text().replace(first, id))
    shutil.rmtree(home / "changes" / first)
    return made


def test_only_what_is_old_and_not_among_the_newest_goes(home: Path, machine: Machine, disk: Disk) -> None:
    old = _records(home, machine, OLD, recording.KEPT + 10)
    last = apply(home, machine, [change("a.json", ("x", 1))], command="generate").id
    assert sorted(each.id for each in history(home)) == [*old[10:], last]
    assert sorted(path.name for path in (home / "changes").iterdir()) == [*old[10:], last]
    assert restore(home, machine, last, force=False).complete


def test_whatever_is_young_stays(home: Path, machine: Machine, disk: Disk) -> None:
    young = _records(home, machine, YOUNG, recording.KEPT + 10)
    apply(home, machine, [change("a.json", ("x", 1))], command="generate")
    assert set(young) < {each.id for each in history(home)}


@pytest.mark.parametrize("name", ["notes", "0"])
def test_what_is_no_run_is_left_alone(home: Path, machine: Machine, disk: Disk, name: str) -> None:
    _records(home, machine, YOUNG, recording.KEPT + 1)
    foreign = home / "changes" / name
    foreign.mkdir()
    (foreign / recording.NAME).write_text("{}")
    apply(home, machine, [change("a.json", ("x", 1))], command="generate")
    assert (foreign / recording.NAME).exists()
