"""Real processes: many that write at once lose nothing, and one that is killed leaves every file old or new."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hosts.changes import adding, dying

from interlock.hosts.changes.recording import history
from interlock.hosts.changes.restoring import NothingToRestore, restore
from interlock.hosts.text import jsonc

_ENVIRON = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
_PROCESSES = 50


@pytest.mark.timeout(240)
def test_fifty_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    """Each adds its entry to two of three files, in a different order than its neighbours."""
    folder = tmp_path / "machine" / "h"
    folder.mkdir(parents=True)
    before = b'{\n  // mine\n  "m": {\n    "old": 1, // this too\n  },\n}\n'
    files = ["a.json", "b.json", "c.json"]
    for file in files:
        (folder / file).write_bytes(before)
    start, home = tmp_path / "start", tmp_path / "home"
    wanted: dict[str, set[str]] = {file: {"old"} for file in files}
    running = []
    for number in range(_PROCESSES):
        mine = [files[number % 3], files[(number + 1) % 3]]
        for file in mine:
            wanted[file].add(f"n{number}")
        words = [str(home), str(tmp_path / "machine"), str(start), f"n{number}", *mine]
        running.append(subprocess.Popen([sys.executable, adding.__file__, *words], env=_ENVIRON))
    start.touch()
    assert [process.wait() for process in running] == [0] * _PROCESSES
    for file in files:
        content = (folder / file).read_bytes()
        value = jsonc.parse(content).value
        assert isinstance(value, dict)
        assert set(value["m"]) == wanted[file]
        assert b"// mine" in content
        assert b"// this too" in content
    assert sorted(os.listdir(folder)) == files
    assert len(history(home)) == _PROCESSES
    machine = dying.machine(tmp_path)
    for _ in range(_PROCESSES):
        restore(home, machine, None, force=False)
    assert [(folder / file).read_bytes() for file in files] == [before] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of itself")
@pytest.mark.timeout(240)
@pytest.mark.parametrize("what", ["apply", "restore"])
def test_killed_at_any_step_every_file_is_old_or_new_and_restore_gives_the_original(tmp_path: Path, what: str) -> None:
    template = tmp_path / "template" / "machine" / "h"
    template.mkdir(parents=True)
    for name, content in dying.FILES.items():
        (template / name).write_bytes(content)
    ran = subprocess.run(
        [sys.executable, dying.__file__, str(tmp_path), what], env=_ENVIRON, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    died, code = map(int, ran.stdout.split())
    assert code == 0
    assert died > 30
    through = tmp_path / str(died + 1)
    if what == "restore":
        through = tmp_path / "new"
        (tmp_path / "new" / "machine" / "h").mkdir(parents=True)
        for name, content in dying.FILES.items():
            (through / "machine" / "h" / name).write_bytes(content)
        dying.change(through)
    new = contents(through)
    assert set(new) == {*dying.FILES, "new/d.json", "w.yaml"}
    states = set()
    for number in range(1, died + 1):
        base = tmp_path / str(number)
        after = contents(base)
        for name, content in after.items():
            if not name.endswith(".interlock-tmp"):
                assert content in (dying.FILES.get(name), new[name]), (number, name)
        assert set(dying.FILES) <= set(after)
        states.add(tuple(after.get(name) == new[name] for name in sorted(new)))
        try:
            assert restore(base / "home", dying.machine(base), None, force=False).complete
        except NothingToRestore:
            assert all(after[name] == content for name, content in dying.FILES.items())
            dying.change(base)
            dying.undo(base)
        assert contents(base) == dying.FILES, number
        assert not (base / "machine" / "h" / "new").exists()
    assert len(states) >= 5  # it was killed between any two of the files


def contents(base: Path) -> dict[str, bytes]:
    top = base / "machine" / "h"
    return {path.relative_to(top).as_posix(): path.read_bytes() for path in sorted(top.rglob("*")) if path.is_file()}
