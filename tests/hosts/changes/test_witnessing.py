"""A file that a host's own command changes has the same record, and goes back the same way."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.changes.conftest import Disk, change

from interlock.hosts.changes import recording
from interlock.hosts.changes.recording import history
from interlock.hosts.changes.refused import Refused
from interlock.hosts.changes.restoring import restore
from interlock.hosts.changes.witnessing import witness
from interlock.hosts.machine import Machine

_BEFORE = b'{"mcpServers": {"a": {"command": "x"}}, "seen": 1}\n'
_AFTER = b'{"mcpServers":{"a":{"command":"x"},"i":{"command":"c","env":{}}},"seen":2}'
_EDITS = change("a.json", ("mcpServers.i", {"command": "c"}))


def test_it_goes_back_byte_for_byte(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", _BEFORE)
    id = witness(home, machine, _EDITS, lambda: (disk.write("a.json", _AFTER), None)[1], command="setup")
    assert [(run.id, run.command) for run in history(home)] == [(id, "setup")]
    assert restore(home, machine, None, force=False).complete
    assert disk.read("a.json") == _BEFORE


def test_a_file_that_the_command_made_is_removed(home: Path, machine: Machine, disk: Disk) -> None:
    edits = change("new/a.json", ("mcpServers.i", {"command": "c"}))
    witness(home, machine, edits, lambda: (disk.write("new/a.json", _AFTER), None)[1], command="setup")
    restore(home, machine, None, force=False)
    assert disk.names() == set()


def test_what_was_changed_since_stays(home: Path, machine: Machine, disk: Disk) -> None:
    """The whole entry goes, also what the command wrote besides."""
    disk.write("a.json", _BEFORE)
    witness(home, machine, _EDITS, lambda: (disk.write("a.json", _AFTER), None)[1], command="setup")
    disk.write("a.json", _AFTER.replace(b'"seen":2', b'"seen":3'))
    restore(home, machine, None, force=False)
    assert disk.read("a.json") == b'{"mcpServers":{"a":{"command":"x"}},"seen":3}'


def test_a_command_that_changes_nothing_leaves_no_record(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", _BEFORE)
    assert witness(home, machine, _EDITS, lambda: None, command="setup") == ""
    assert history(home) == []


def test_a_command_that_fails_half_way_can_be_undone(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", _BEFORE)

    def act() -> None:
        assert [file.copy for run in history(home) for file in run.files] == ["0.before"], "before it begins"
        disk.write("a.json", _AFTER)
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output"):
        witness(home, machine, _EDITS, act, command="setup")
    restore(home, machine, None, force=False)
    assert disk.read("a.json") == _BEFORE


def test_without_a_record_it_does_not_begin(
    home: Path, machine: Machine, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    disk.write("a.json", _BEFORE)
    monkeypatch.setattr(recording, "write_file", full)
    began: list[None] = []
    with pytest.raises(Refused, match="No space left"):
        witness(home, machine, _EDITS, lambda: began.append(None), command="setup")
    assert began == []


def test_a_damaged_file_is_not_given_to_the_command(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b'{"a": ')
    began: list[None] = []
    with pytest.raises(Refused, match="left as it is"):
        witness(home, machine, _EDITS, lambda: began.append(None), command="setup")
    assert (began, history(home)) == ([], [])
