"""Edits on disk: all of them or none, recorded before anything is replaced, and nothing else about a file changes."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from tests.hosts.changes.conftest import Disk, change

from interlock.hosts.changes import committing, recording
from interlock.hosts.changes.applying import Applied, Planned, WholeFile, Written, apply, planned
from interlock.hosts.changes.recording import history
from interlock.hosts.changes.refused import Refused
from interlock.hosts.machine import Machine
from interlock.hosts.writing import REMOVE

_JSON = b'{\n\t// mine\n\t"mcpServers": {"a": {"command": "x"}},\n}\n'
_TOML = b'# mine\r\nmodel = "m"\r\n'
_POSIX = pytest.mark.skipif(os.name == "nt", reason="modes and links of POSIX systems")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def _written(path: Path) -> tuple[int, int, int]:
    """What changes where a file is written anew; not when it was last read."""
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def test_what_is_planned_is_what_is_written(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", _JSON)
    edits = [change("a.json", ("mcpServers.i", {"command": "c"})), change("new/b.toml", ("m.i.command", "c"))]
    after = b'{\n\t// mine\n\t"mcpServers": {"a": {"command": "x"}, "i": {"command": "c"}},\n}\n'
    assert planned(machine, edits) == [
        Planned("/home/ada/a.json", _JSON, after),
        Planned("/home/ada/new/b.toml", None, b'[m.i]\ncommand = "c"\n'),
    ]
    assert disk.names() == {"a.json"}
    assert not home.exists()
    done = apply(home, machine, edits, command="generate")
    assert done.files == (Written("/home/ada/a.json", "changed"), Written("/home/ada/new/b.toml", "made"))
    assert disk.read("a.json") == after
    assert disk.read("new/b.toml") == b'[m.i]\ncommand = "c"\n'
    assert disk.names() == {"a.json", "new", "new/b.toml"}
    assert apply(home, machine, edits, command="generate") == Applied("", ())
    assert [run.id for run in history(home)] == [done.id]


def test_what_holds_already_is_not_touched(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", _JSON)
    before = _written(disk.path("a.json"))
    assert apply(home, machine, [change("a.json", ("mcpServers.gone", REMOVE))], command="c") == Applied("", ())
    assert _written(disk.path("a.json")) == before
    assert not home.exists()


@_POSIX
def test_modes_of_new_and_old_files(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b"{}")
    disk.path("a.json").chmod(0o640)
    apply(home, machine, [change("a.json", ("b", 1)), change("x/y/b.json", ("b", 1))], command="c")
    assert mode(disk.path("a.json")) == 0o640
    assert [mode(disk.path(each)) for each in ("x", "x/y", "x/y/b.json")] == [0o700, 0o700, 0o600]
    assert {mode(path) for path in home.rglob("*") if path.is_file()} == {0o600}
    assert {mode(path) for path in [home, *home.rglob("*")] if path.is_dir()} == {0o700}


@_POSIX
def test_a_link_stays_a_link(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("dotfiles/real.json", b"{}")
    disk.path("a.json").symlink_to("dotfiles/real.json")
    apply(home, machine, [change("a.json", ("b", 1)), change("dotfiles/real.json", ("c", 2))], command="c")
    assert disk.path("a.json").is_symlink()
    assert disk.read("dotfiles/real.json") == b'{"b": 1, "c": 2}'


@_POSIX
@pytest.mark.parametrize(("locked", "words"), [("conf/a.json", "read-only"), ("conf", "folder .* is read-only")])
def test_what_is_read_only_is_refused(home: Path, machine: Machine, disk: Disk, locked: str, words: str) -> None:
    disk.write("conf/a.json", b"{}")
    disk.write("other.json", b"{}")
    disk.path(locked).chmod(0o500 if locked == "conf" else 0o400)
    with pytest.raises(Refused, match=words) as refused:
        apply(home, machine, [change("other.json", ("b", 1)), change("conf/a.json", ("b", 1))], command="c")
    disk.path(locked).chmod(0o700)
    assert refused.value.file == "/home/ada/conf/a.json"
    assert (disk.read("conf/a.json"), disk.read("other.json")) == (b"{}", b"{}")
    assert history(home) == []


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1', "line 1, column 1 is not closed"),
        (b"[]", "does not hold an object"),
        (b'{"m": []}', "m is no object"),
        (b'{"m": {}, "m": {}}', "m stands there twice"),
        (b"\xff\xfe{\0}\0", "UTF-16"),
    ],
)
def test_a_damaged_file_is_refused_and_no_other_is_changed(
    home: Path, machine: Machine, disk: Disk, content: bytes, words: str
) -> None:
    disk.write("good.json", b"{}")
    disk.write("bad.json", content)
    with pytest.raises(Refused, match=words) as refused:
        apply(home, machine, [change("good.json", ("b", 1)), change("bad.json", ("m.x", 1))], command="c")
    assert str(refused.value).startswith("/home/ada/bad.json:")
    assert (disk.read("good.json"), disk.read("bad.json")) == (b"{}", content)


def test_several_edits_of_one_file_and_files_written_whole(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b"{}")
    edits = [change("a.json", ("b", 1)), change("a.json", ("c", 2)), change("a.json", ("b", REMOVE))]
    whole = WholeFile("/home/ada/interlock.yaml", b"servers: {}\n")
    done = apply(home, machine, edits, command="c", extra=[whole])
    assert disk.read("a.json") == b'{"c": 2}'
    assert disk.read("interlock.yaml") == b"servers: {}\n"
    assert len(done.files) == 2


def test_the_record_names_members_and_holds_no_value(home: Path, machine: Machine, disk: Disk) -> None:
    secret = "gh" + "p_" + "A" * 36
    disk.write("a.json", json.dumps({"m": {"old": secret}}).encode())
    done = apply(home, machine, [change("a.json", ("m.x", {"token": secret}))], command="adopt")
    text = (home / "changes" / done.id / "record.json").read_text()
    assert secret not in text
    run = history(home)[0]
    assert (run.command, run.files[0].path) == ("adopt", "/home/ada/a.json")
    assert run.files[0].edits[0].paths == (("m", "x"),)
    assert run.files[0].after == recording.digest(disk.read("a.json"))


def test_a_file_that_changes_in_the_last_moment_is_read_again(
    home: Path, machine: Machine, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.write("a.json", b"{}")
    disk.write("b.json", b"{}")
    true_write = recording.write
    others = iter([b'{"host": 1}', b'{"host": 2}'])

    def written(*args: object) -> None:
        true_write(*args)  # type: ignore[arg-type]
        content = next(others, None)
        if content is not None:
            disk.write("b.json", content)

    monkeypatch.setattr(recording, "write", written)
    apply(home, machine, [change("a.json", ("x", 1)), change("b.json", ("x", 1))], command="c")
    assert (disk.read("a.json"), disk.read("b.json")) == (b'{"x": 1}', b'{"host": 2, "x": 1}')
    assert len(history(home)) == 1
    assert disk.names() == {"a.json", "b.json"}


def test_a_program_that_never_stops_writing_wins(
    home: Path, machine: Machine, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.write("a.json", b"{}")
    disk.write("b.json", b"{}")
    true_write = recording.write
    number = iter(range(1000))

    def written(*args: object) -> None:
        true_write(*args)  # type: ignore[arg-type]
        disk.write("b.json", b'{"host": %d}' % next(number))

    monkeypatch.setattr(recording, "write", written)
    with pytest.raises(Refused, match="another program keeps writing"):
        apply(home, machine, [change("a.json", ("x", 1)), change("b.json", ("x", 1))], command="c")
    assert disk.read("a.json") == b"{}"
    assert disk.read("b.json") == b'{"host": 4}'
    assert history(home) == []
    assert disk.names() == {"a.json", "b.json"}


def test_where_the_second_file_cannot_be_replaced_the_first_is_put_back(
    home: Path, machine: Machine, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk.write("a.json", _JSON)
    disk.write("b.json", b"{}")
    true_replace = os.replace

    def replaced(source: str, target: str) -> None:
        if str(target).endswith("b.json"):
            raise OSError(28, "No space left on device")
        true_replace(source, target)

    monkeypatch.setattr(committing.os, "replace", replaced)
    with pytest.raises(Refused, match=r"b\.json: it cannot be written, so nothing is changed: No space left"):
        apply(
            home, machine, [change("a.json", ("x", 1)), change("n/c.json", ("x", 1)), change("b.json", ("x", 1))],
            command="c",
        )  # fmt: skip
    assert (disk.read("a.json"), disk.read("b.json")) == (_JSON, b"{}")
    assert disk.names() == {"a.json", "b.json"}
    assert history(home) == []


def test_without_a_place_for_the_record_nothing_is_changed(home: Path, machine: Machine, disk: Disk) -> None:
    disk.write("a.json", b"{}")
    home.mkdir()
    (home / "changes").write_bytes(b"no folder")
    with pytest.raises(Refused, match="folder cannot be made"):
        apply(home, machine, [change("a.json", ("x", 1))], command="c")
    assert disk.read("a.json") == b"{}"


def test_what_runs_left_that_died_before_they_had_a_record_goes_after_a_day(
    home: Path, machine: Machine, disk: Disk
) -> None:
    apply(home, machine, [change("a.json", ("x", 1))], command="c")
    for name in ("old", "new"):
        (home / "changes" / name).mkdir()
        (home / "changes" / name / "0.before").write_bytes(b"{}")
    os.utime(home / "changes" / "old", (0, 0))
    os.utime(home / "changes" / history(home)[0].id, (0, 0))
    apply(home, machine, [change("a.json", ("y", 1))], command="c")
    assert len(history(home)) == 2
    assert {path.name for path in (home / "changes").iterdir()} == {"new", *(run.id for run in history(home))}
