"""Records that something has spoilt: said and not passed over, never waited for, and Interlock's own list stays true."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from tests.hosts.changes.conftest import Disk, change

from interlock.hosts import generated
from interlock.hosts.changes import recording
from interlock.hosts.changes.applying import apply
from interlock.hosts.changes.restoring import NothingToRestore, history, restore
from interlock.hosts.machine import Machine
from interlock.hosts.writing import Edit, FileEdits


@pytest.mark.parametrize("content", [b"", b'{"format": 1', b"[]", b"null", b'{"format": 1, "id": 5}', b"\xff"])
def test_a_damaged_record_is_named(home: Path, machine: Machine, disk: Disk, content: bytes) -> None:
    id = apply(home, machine, [change("a.json", ("x", 1))], command="generate").id
    assert recording.damaged(home) == []
    (home / "changes" / id / recording.NAME).write_bytes(content)
    assert recording.damaged(home) == [home / "changes" / id]
    assert history(home) == []


@pytest.mark.skipif(os.name == "nt", reason="no pipes with a name")
def test_a_pipe_for_a_record_or_a_copy_is_not_waited_for(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b"{}")
    id = apply(home, machine, [change("a.json", ("x", 1))], command="generate").id
    copy = home / "changes" / id / "0.before"
    copy.unlink()
    os.mkfifo(copy)
    assert [each.how for each in restore(home, machine, None, force=False).files] == ["left"]
    record = home / "changes" / id / recording.NAME
    record.unlink()
    os.mkfifo(record)
    assert recording.damaged(home) == [record.parent]
    with pytest.raises(NothingToRestore):
        restore(home, machine, None, force=False)


def test_while_an_entry_is_left_interlock_knows_it_as_its_own(tmp_path: Path, disk: Disk) -> None:
    machine = Machine(platform="linux", home="/home/ada", folder="/home/ada", environ={}, root=None)
    home = tmp_path / "interlock"
    file = tmp_path / "a.json"
    file.write_bytes(b"{}")
    ledger = home / generated.FILE_NAME
    edits = [
        FileEdits(file=str(each), format="json", comments=False, edits=(Edit(("x",), 1),)) for each in (file, ledger)
    ]
    id = apply(home, machine, edits, command="generate").id
    copy = home / "changes" / id / "0.before"
    original = copy.read_bytes()
    copy.write_bytes(b"spoilt")
    assert [each.how for each in restore(home, machine, None, force=False).files] == ["left", "left"]
    assert json.loads(ledger.read_bytes()) == {"x": 1}
    copy.write_bytes(original)
    assert restore(home, machine, None, force=False).complete
    assert (file.read_bytes(), ledger.exists()) == (b"{}", False)
