"""Undoing a run: the original bytes where nobody came between, else only what was ours."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.hosts.changes.conftest import Disk, change

from interlock.hosts.changes.applying import WholeFile, apply
from interlock.hosts.changes.recording import history
from interlock.hosts.changes.refused import Refused
from interlock.hosts.changes.restoring import NothingToRestore, Returned, foreseen, restore
from interlock.hosts.machine import Machine
from interlock.hosts.writing import REMOVE

_FILES = {
    "a.json": b'\xef\xbb\xbf{\r\n  "mcpServers" : {\r\n    "old":{"command":"x"}, // mine\r\n  },\n}',
    "b.toml": b'# mine\r\n[mcp_servers]\r\nold.command = "x"\n\n[z]',
    "c.yaml": b"# mine\nmcpServers:\n    old: {command: x} # it\n\n# end",
}
_TABLES = {"a.json": "mcpServers", "b.toml": "mcp_servers", "c.yaml": "mcpServers"}


def adopted(home: Path, machine: Machine, name: str = "i") -> str:
    """One entry more and the old one gone, in three files, and two new files."""
    edits = [
        change(file, (f"{table}.{name}", {"command": "interlock"}), (f"{table}.old", REMOVE))
        for file, table in _TABLES.items()
    ]
    edits.append(change("new/deep/d.json", (f"m.{name}", 1)))
    extra = [WholeFile("/home/ada/interlock.yaml", b"a: 1\n")]
    return apply(home, machine, edits, command="adopt", extra=extra).id


def laid(disk: Disk) -> None:
    for name, content in _FILES.items():
        disk.write(name, content)


def found(disk: Disk) -> dict[str, bytes | None]:
    return {name: disk.read(name) for name in _FILES}


def test_everything_is_as_it_was_byte_for_byte(home: Path, machine: Machine, disk: Disk) -> None:
    laid(disk)
    before = disk.names()
    id = adopted(home, machine)
    assert disk.names() == {*before, "new", "new/deep", "new/deep/d.json", "interlock.yaml"}
    assert all(disk.read(name) != content for name, content in _FILES.items())
    seen = foreseen(home, machine, None, force=False)
    done = restore(home, machine, None, force=False)
    assert done == seen
    assert (done.id, done.command, done.complete) == (id, "adopt", True)
    assert [each.how for each in done.files] == ["original", "original", "original", "removed", "removed"]
    assert found(disk) == _FILES
    assert disk.names() == before
    with pytest.raises(NothingToRestore):
        restore(home, machine, None, force=False)
    again = restore(home, machine, id, force=False)
    assert {each.how for each in again.files} == {"already"}


def test_what_another_program_added_since_stays(home: Path, machine: Machine, disk: Disk) -> None:
    laid(disk)
    adopted(home, machine)
    for name in _FILES:
        others = apply(home / "other", machine, [change(name, ("theirs", {"k": 1}))], command="c")
        assert others.id
    wanted = {}
    done = restore(home, machine, None, force=False)
    assert [each.how for each in done.files] == ["undone", "undone", "undone", "removed", "removed"]
    assert all("changed since" in each.why for each in done.files[:3])
    wanted["a.json"] = (
        b'\xef\xbb\xbf{\r\n  "mcpServers" : {\r\n    "old": {\r\n      "command": "x"\r\n    }, // mine\r\n  },\n'
        b'  "theirs": {\n    "k": 1\n  },\n}'
    )
    found_json = disk.read("a.json")
    assert found_json is not None
    assert b'"theirs"' in found_json
    assert b"interlock" not in found_json
    assert b"// mine" in found_json
    assert b'"old"' in found_json
    assert disk.read("b.toml") is not None
    for name in ("b.toml", "c.yaml"):
        content = disk.read(name) or b""
        assert b"theirs" in content
        assert b"old" in content
        assert b"interlock" not in content
        assert b"# mine" in content


def test_objects_that_we_made_go_with_our_member_unless_others_came(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b'{"x": 1}')
    disk.write("b.json", b'{"x": 1}')
    apply(home, machine, [change("a.json", ("m.s.i", 1)), change("b.json", ("m.s.i", 1))], command="c")
    disk.write("a.json", b'{"x": 2, "m": {"s": {"i": 1}}}')
    disk.write("b.json", b'{"x": 2, "m": {"s": {"i": 1, "j": 2}}}')
    restore(home, machine, None, force=False)
    assert disk.read("a.json") == b'{"x": 2}'
    assert disk.read("b.json") == b'{"x": 2, "m": {"s": {"j": 2}}}'


def test_of_a_kept_object_only_our_members_are_undone(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b'{"m": {"i": {"on": true, "mine": 1}}}')
    apply(home, machine, [change("a.json", ("m.i", {"on": False, "more": 2}), keep=True)], command="c")
    disk.write("a.json", b'{"m": {"i": {"on": false, "mine": 3, "more": 2}}}')
    restore(home, machine, None, force=False)
    assert disk.read("a.json") == b'{"m": {"i": {"on": true, "mine": 3}}}'


@pytest.mark.parametrize("now", [b'{"broken', b"[1]", None])
def test_what_cannot_be_undone_alone_is_left_until_it_is_forced(
    home: Path, machine: Machine, disk: Disk, now: bytes | None
) -> None:
    disk.write("a.json", b"{}")
    id = apply(home, machine, [change("a.json", ("m", 1))], command="c").id
    if now is None:
        disk.path("a.json").unlink()
    else:
        disk.write("a.json", now)
    done = restore(home, machine, None, force=False)
    assert not done.complete
    assert done.files[0].how == "left"
    assert disk.read("a.json") == now
    assert restore(home, machine, None, force=True).files == (Returned("/home/ada/a.json", "original"),)
    assert disk.read("a.json") == b"{}"
    assert [run.restored for run in history(home) if run.id == id] == [True]


def test_a_file_written_whole_and_changed_since_is_left(home: Path, machine: Machine, disk: Disk) -> None:
    apply(home, machine, [], command="c", extra=[WholeFile("/home/ada/interlock.yaml", b"a: 1\n")])
    disk.write("interlock.yaml", b"a: 2\n")
    assert restore(home, machine, None, force=False).files[0].how == "left"
    assert disk.read("interlock.yaml") == b"a: 2\n"


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_runs_of_one_file_undone_in_either_order(
    home: Path, machine: Machine, disk: Disk, order: tuple[int, int]
) -> None:
    laid(disk)
    runs = [
        apply(home, machine, [change("a.json", ("mcpServers.i", 1))], command="one").id,
        apply(home, machine, [change("a.json", ("mcpServers.i", 2), ("mcpServers.j", 2))], command="two").id,
    ]
    for number in order:
        restore(home, machine, runs[number], force=False)
    assert disk.read("a.json") == _FILES["a.json"]


def test_the_newest_run_that_is_not_undone_is_first(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b"{}")
    runs = [apply(home, machine, [change("a.json", (name, 1))], command="c").id for name in ("x", "y", "z")]
    undone = [restore(home, machine, None, force=False).id for _ in runs]
    assert undone == runs[::-1]
    assert disk.read("a.json") == b"{}"


def test_an_undoing_can_be_undone_by_its_id(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b"{}")
    id = apply(home, machine, [change("a.json", ("x", 1))], command="c").id
    after = disk.read("a.json")
    restore(home, machine, None, force=False)
    undoing = history(home)[0]
    assert (undoing.command, undoing.of) == ("restore", id)
    restore(home, machine, undoing.id, force=False)
    assert disk.read("a.json") == after
    assert restore(home, machine, None, force=False).id == id
    assert disk.read("a.json") == b"{}"


def test_ids_may_be_shortened_and_must_be_known(home: Path, machine: Machine, disk: Disk) -> None:
    id = apply(home, machine, [change("a.json", ("x", 1))], command="c").id
    with pytest.raises(NothingToRestore, match="No run has the id nonsense"):
        restore(home, machine, "nonsense", force=False)
    with pytest.raises(NothingToRestore):
        restore(home, machine, "../../etc", force=False)
    assert restore(home, machine, id[:-3], force=False).id == id


def test_a_damaged_copy_is_never_written(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b"{}")
    id = apply(home, machine, [change("a.json", ("x", 1))], command="c").id
    after = disk.read("a.json")
    (home / "changes" / id / "0.before").write_bytes(b"{ }")
    done = restore(home, machine, None, force=True)
    assert (done.files[0].how, disk.read("a.json")) == ("left", after)


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX systems")
def test_a_read_only_file_is_not_restored_by_force(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b"{}")
    apply(home, machine, [change("a.json", ("x", 1))], command="c")
    after = disk.read("a.json")
    disk.path("a.json").chmod(0o400)
    with pytest.raises(Refused, match="read-only"):
        restore(home, machine, None, force=True)
    assert disk.read("a.json") == after


def test_what_an_undone_run_had_written_and_somebody_wrote_again_is_put_back(
    home: Path, machine: Machine, disk: Disk
) -> None:
    disk.write("a.json", b"{}")
    apply(home, machine, [change("a.json", ("x", 1))], command="c")
    theirs = disk.read("a.json")
    assert theirs is not None
    restore(home, machine, None, force=False)
    disk.write("a.json", theirs)
    apply(home, machine, [change("a.json", ("y", 1))], command="c")
    restore(home, machine, None, force=False)
    assert disk.read("a.json") == theirs
