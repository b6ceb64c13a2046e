"""The newest Interlock runs, whichever was launched; and nothing that another could have written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import __version__
from interlock.build import build
from interlock.install import settings
from interlock.install.align import MARKER
from interlock.install.places import Places, read_current

from .conftest import Copy, aligning, run, until

_TELLING = """
import json, os, sys
def main():
    print(json.dumps([os.getpid(), sys.argv[1:], sys.stdin.read(), os.environ.get("INTERLOCK_ALIGNED_FOR")]))
    return 3
"""


def test_without_a_home_copy_it_goes_on_and_imports_nothing(interlock_home: Path, clean: dict[str, str]) -> None:
    heavy = ("json", "hashlib", "subprocess", "pathlib", "re", "contextlib", "filelock", "tempfile", "interlock.build")
    then = f"print([name for name in {heavy!r} if name in sys.modules and name not in before])"
    shown = run(aligning(interlock_home, before="import typing; before = set(sys.modules)", then=then), clean)
    assert (shown.stdout.strip(), shown.stderr) == ("[]", "")
    assert list(interlock_home.iterdir()) == [], "nor does it write anything"


def test_a_newer_home_copy_runs_in_our_place(interlock_home: Path, copy: Copy, clean: dict[str, str]) -> None:
    """Same process, same arguments, and not one byte of standard input is lost."""
    copy("99.0.0", main=_TELLING)
    command = aligning(interlock_home, "bridge", "--name", "a b", "http://127.0.0.1/")
    with subprocess.Popen(command, env=clean, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        output, _ = process.communicate("first line\nsecond", timeout=60)
    pid, argv, read, marker = json.loads(output)
    assert (argv, read) == (["bridge", "--name", "a b", "http://127.0.0.1/"], "first line\nsecond")
    assert process.returncode == 3
    assert marker == str(process.pid)
    if os.name == "posix":
        assert pid == process.pid


@pytest.mark.parametrize("variable", ["INTERLOCK_NO_UPDATE", "CI"])
@pytest.mark.parametrize("version", ["99.0.0", "0.0.1"])
def test_off_in_ci_and_where_it_is_switched_off(
    interlock_home: Path, copy: Copy, clean: dict[str, str], variable: str, version: str
) -> None:
    name = copy(version)
    shown = run(aligning(interlock_home, "--version"), clean | {variable: "1"})
    assert (shown.stdout, shown.stderr) == ("self\n", "")
    current = read_current(Places(interlock_home))
    assert current is not None
    assert current.name == name


@pytest.mark.parametrize("value", ["", "0", "false"])
def test_an_empty_or_false_variable_switches_nothing_off(
    interlock_home: Path, copy: Copy, clean: dict[str, str], value: str
) -> None:
    name = copy("99.0.0")
    assert run(aligning(interlock_home, "--version"), clean | {"CI": value}).stdout.strip() == name


def test_never_twice(interlock_home: Path, copy: Copy, clean: dict[str, str]) -> None:
    """The marker of this very process stops it; another's, inherited from a parent, does not. Children do not see it."""
    name = copy("99.0.0")
    then = f"print('self', {MARKER!r} in os.environ)"
    before = f"os.environ[{MARKER!r}] = str(os.getpid())"
    assert run(aligning(interlock_home, "--version", before=before, then=then), clean).stdout.strip() == "self False"
    assert run(aligning(interlock_home, "--version"), clean | {MARKER: "1"}).stdout.strip() == name


def test_the_home_copy_itself_goes_on(interlock_home: Path, copy: Copy, clean: dict[str, str]) -> None:
    """Also where a still newer one was laid meanwhile: that one runs from the next start on."""
    older = copy("98.0.0")
    copy("99.0.0")
    clean["PYTHONPATH"] = Places(interlock_home).lib(older)
    shown = run(aligning(interlock_home, "--version"), clean)
    assert (shown.stdout, shown.stderr) == ("self\n", "")


_UNFIT: dict[str, Callable[[Path], object]] = {
    "changed": lambda lib: (lib / "interlock" / "cli" / "main.py").write_text("raise SystemExit('foreign')"),
    "added": lambda lib: (lib / "json.py").write_text("raise SystemExit('foreign')"),
    "writable by others": lambda lib: lib.parent.chmod(0o777),
    "without a record": lambda lib: (lib.parent / "record.json").unlink(),
    "gone": lambda lib: lib.parent.rename(lib.parent.parent / "elsewhere"),
}


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@pytest.mark.parametrize("harm", _UNFIT.values(), ids=_UNFIT)
def test_a_foreign_copy_never_runs(
    interlock_home: Path, copy: Copy, clean: dict[str, str], harm: Callable[[Path], object]
) -> None:
    name = copy("99.0.0")
    harm(Path(Places(interlock_home).lib(name)))
    shown = run(aligning(interlock_home, "--version"), clean)
    assert shown.stdout == "self\n"
    assert f"home copy {name} is newer and is not run" in shown.stderr
    assert f"Going on as v{__version__}" in shown.stderr


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"v99.0.0+abc", b"../../x\nt\n/bin/sh\n", b"v99.0.0+a\nt\nrelative\n"]
)
def test_a_damaged_pointer_is_no_home_copy(
    interlock_home: Path, copy: Copy, clean: dict[str, str], content: bytes
) -> None:
    copy("99.0.0")
    Path(Places(interlock_home).current).write_bytes(content)
    assert run(aligning(interlock_home, "--version"), clean).stdout == "self\n"


def test_an_older_home_copy_is_replaced(interlock_home: Path, copy: Copy, clean: dict[str, str]) -> None:
    copy("0.0.1")
    shown = run(aligning(interlock_home), clean)
    assert shown.stdout == "self\n", "the start itself does not wait"
    assert "takes its place" in shown.stderr
    places = Places(interlock_home)
    until(lambda: (current := read_current(places)) is not None and current.name == build())
    assert run([places.launcher, "--version"], clean).stdout.strip() == build()


def test_a_project_folder_never_lends_it_a_module(
    interlock_home: Path, copy: Copy, clean: dict[str, str], tmp_path: Path
) -> None:
    """Hosts start us in a project's folder, and what lies there is not trusted."""
    project = tmp_path / "project"
    (project / "interlock").mkdir(parents=True)
    for name in ("interlock/__init__.py", "interlock/__main__.py", "json.py", "filelock.py"):
        (project / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    copy("0.0.1")
    code = aligning(interlock_home)[-1]
    command = [sys.executable, "-P", "-c", code]
    subprocess.run(command, env=clean, cwd=project, check=True, capture_output=True, timeout=60)
    places = Places(interlock_home)
    until(lambda: (current := read_current(places)) is not None and current.name == build())
    assert not (tmp_path / "ran").exists()


def test_a_version_that_was_taken_back_does_not_come_by_itself(
    interlock_home: Path, copy: Copy, clean: dict[str, str]
) -> None:
    name = copy("0.0.1")
    settings.keep(interlock_home, settings.Settings(held=__version__))
    shown = run(aligning(interlock_home), clean)
    assert (shown.stdout, shown.stderr) == ("self\n", "")
    current = read_current(Places(interlock_home))
    assert current is not None
    assert current.name == name


def test_the_same_version_built_differently_is_only_reported(
    interlock_home: Path, copy: Copy, clean: dict[str, str]
) -> None:
    name = copy(__version__, main="def main():\n    print('other')\n")
    shown = run(aligning(interlock_home), clean)
    assert shown.stdout == "self\n"
    assert name in shown.stderr
    assert build() in shown.stderr
    assert os.listdir(Places(interlock_home).app).count(name) == 1
