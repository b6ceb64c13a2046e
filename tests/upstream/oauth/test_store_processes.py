"""The grant store under many processes, kill -9 at every step, full and read-only disks: with real processes and disks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.upstream.oauth.grant_log import ROTATE_AT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks, and sends SIGKILL")
SCRIPT = Path(__file__).with_name("store_children.py")
SOURCE = Path(__file__).resolve().parents[3] / "src"


def run(*arguments: object, before: tuple[str, ...] = ()) -> Any:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [*before, sys.executable, str(SCRIPT), *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=55)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_thirty_processes_that_read_change_and_write_lose_no_update(tmp_path: Path) -> None:
    seen = run("count", tmp_path / "home", 30, 8)
    assert seen == {"codes": [0] * 30, "token": "240", "generation": 240, "left": []}


@pytest.mark.parametrize("processes", [1, 5, 30])
def test_one_of_n_processes_spends_the_token_and_no_loser_drops_the_new_pair(tmp_path: Path, processes: int) -> None:
    seen = run("refresh", tmp_path / "home", processes)
    assert seen == {"codes": [0] * processes, "spent": "x", "token": "new"}


@pytest.mark.parametrize(
    ("act", "tokens"),
    [
        ("replace", {"old", "new"}),
        ("first", {None, "new"}),
        ("twice", {"old", "new"}),
        ("drop", {"old", None}),
        ("damaged", {None, "new"}),
    ],
)
def test_killed_at_any_step_leaves_the_old_or_the_new_grant_and_a_free_lock(
    tmp_path: Path, act: str, tokens: set[str | None]
) -> None:
    steps = run("kill", tmp_path, act)
    assert len(steps) >= 9
    assert [step["code"] for step in steps] == [-9] * (len(steps) - 1) + [0]
    for step in steps:
        assert step["token"] in tokens, step
        assert step["waited"] < 1, step
        assert step["left"] <= (2 if act == "twice" else 1), step
        assert step["swept"] == [], step
        assert step["aside"] == (act == "damaged"), step
    # Once the new one is there it stays: killed later, it is never the old one again.
    found = [step["token"] for step in steps]
    assert found[0] == (None if act in ("first", "damaged") else "old")
    assert found[-1] == (None if act == "drop" else "new")
    assert found == sorted(found, key=lambda token: token == found[-1])
    assert {"open", "close"} <= {step["at"] for step in steps}


@pytest.mark.parametrize(("act", "field"), [("note", "flow"), ("registration", "client")])
def test_killed_at_any_step_leaves_the_old_or_the_new_note(tmp_path: Path, act: str, field: str) -> None:
    steps = run("kill", tmp_path, act)
    found = [step[field] for step in steps]
    assert found[0] == "first"
    assert found[-1] == "second"
    assert set(found) == {"first", "second"}
    assert found == sorted(found)
    assert all(step["swept"] == [] and step["token"] == "old" for step in steps)


def test_the_lock_of_a_killed_process_is_free_at_once(tmp_path: Path) -> None:
    seen = run("hold", tmp_path / "home")
    assert seen["busy"]
    assert seen["seconds"] < 1
    assert seen["left"] == []


LINE = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d v0\.0\.0\+test \d+ refreshed resource\.test (.*)"
)


def survivors(home: Path, length: int) -> dict[int, list[int]]:
    """The numbers of the lines that are there, by writer, in the order of the files; each line is checked."""
    found: dict[int, list[int]] = {}
    for name in ("grant.log.1", "grant.log"):
        if not (home / name).exists():
            continue
        content = (home / name).read_bytes().decode()
        assert content.endswith("\n")
        for line in content.splitlines():
            whole = LINE.fullmatch(line)
            assert whole, line
            words = re.fullmatch(rf"writer (\d+) line (\d+) {'w ' * (length // 2)}end", whole[1])
            assert words, line
            found.setdefault(int(words[1]), []).append(int(words[2]))
    return found


def test_thirty_writers_lose_no_line_of_the_log(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert run("log", home, 30, 20, 100) == {"codes": [0] * 30}
    assert not (home / "grant.log.1").exists()
    assert survivors(home, 100) == {writer: list(range(20)) for writer in range(30)}


def test_rotation_under_thirty_writers_loses_only_the_oldest_lines(tmp_path: Path) -> None:
    home = tmp_path / "home"
    lines = 100
    assert run("log", home, 30, lines, 300) == {"codes": [0] * 30}
    assert sorted(path.name for path in home.iterdir()) == ["grant.log", "grant.log.1", "grant.log.lock"]
    for name in ("grant.log", "grant.log.1"):
        status = (home / name).stat()
        assert status.st_mode & 0o777 == 0o600
        # A writer that found somebody else rotating went on in the old file.
        assert status.st_size < ROTATE_AT + 30 * 500
    found = survivors(home, 300)
    for numbers in found.values():
        assert len(numbers) == len(set(numbers))
        assert sorted(numbers) == list(range(min(numbers), max(numbers) + 1))
    kept = sum(len(numbers) for numbers in found.values())
    assert kept * 380 > ROTATE_AT


def test_a_write_that_the_disk_refuses_changes_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    seen = run("full", tmp_path / "home")
    assert seen["code"] == 0
    assert seen["token"] == "old"
    assert seen["left"] == []
    assert len(seen["texts"]) == 2
    for text in seen["texts"]:
        assert "INTERLOCK_HOME" in text
        assert "unchanged" in text
        assert "refresh-" not in text
    # The line that was cut by the limit stays one line, and the next begins on its own.
    assert (tmp_path / "home" / "grant.log").read_text().splitlines()[-1].endswith(" refreshed resource.test after")


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="interlock-test-") as name:
        yield Path(name)


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() != 0, reason="takes root to become another user")
def test_another_users_folder_is_refused_aloud_and_root_leaves_files_to_their_owner(open_folder: Path) -> None:
    seen = run("foreign", open_folder / "home")
    assert seen["code"] == 0
    assert len(seen["texts"]) == 3
    assert all("belongs to user 0" in text and "chown" in text for text in seen["texts"])
    assert len(seen["kept"]) == 2
    assert set(seen["owners"].values()) == {65534}
    assert seen["modes"].pop("grants") == 0o700
    assert set(seen["modes"].values()) == {0o600}


def mounts() -> bool:
    if not (shutil.which("unshare") and shutil.which("mount")) or os.geteuid() != 0:
        return False
    try:
        command = ["unshare", "-m", "sh", "-c", "mount -t tmpfs -o size=64k none /mnt"]
        return subprocess.run(command, capture_output=True, timeout=10).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


def test_a_full_and_a_read_only_disk(tmp_path: Path) -> None:
    if not mounts():
        pytest.skip("takes the right to mount a small disk")
    place = tmp_path / "disk"
    place.mkdir()
    mount = 'mount -t tmpfs -o size=256k,mode=700 none "$0" && exec "$@"'
    seen = run("disk", place, before=("unshare", "-m", "sh", "-c", mount, str(place)))
    for name, number, word in (
        ("full", "ENOSPC", "no space is left"),
        ("full client", "ENOSPC", "no space is left"),
        ("read-only", "EROFS", "read-only"),
        ("read-only client", "EROFS", "read-only"),
        ("read-only forget", "EROFS", "read-only"),
    ):
        assert seen[name].startswith(f"{number} "), seen
        assert word in seen[name]
        assert "unchanged" in seen[name]
        assert "INTERLOCK_HOME" in seen[name]
    assert seen["full token"] == "old"
    assert seen["left"] == []
    assert seen["reserved"] == "done"
    assert seen["reserved token"] == seen["read-only token"] == seen["read-only forget token"] == "fresh"
