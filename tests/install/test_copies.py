"""Laying, verifying, switching and removing copies."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock import __version__
from interlock.build import build
from interlock.install import closure, launcher, laying, prune, record
from interlock.install.places import Places, is_copy_name, read_current

from .conftest import Copy, Tree, run

posix = pytest.mark.skipif(os.name != "posix", reason="modes and owners are POSIX's")


@pytest.fixture(scope="module")
def laid_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which this checkout was really laid, with everything that it needs."""
    home = tmp_path_factory.mktemp("laid") / ".interlock"
    laid = laying.lay_self(home)
    assert (laid.name, laid.before, laid.fresh) == (build(), None, True)
    return home


def test_a_laid_copy_is_whole_and_says_what_it_is(laid_home: Path) -> None:
    found = record.verify(Places(laid_home), build())
    base = getattr(sys, "_base_executable")  # noqa: B009
    assert (found.build, found.version, found.owner) == (build(), __version__, os.geteuid())
    assert (found.interpreter.path, found.interpreter.tag) == (base, sys.implementation.cache_tag)
    assert record.standing(laid_home) == record.Standing(build(), None, ())


def test_the_launcher_runs_the_copy_with_everything_it_needs(laid_home: Path, clean: dict[str, str]) -> None:
    del clean["PYTHONPATH"]
    shown = run([Places(laid_home).launcher, "--version"], clean)
    assert (shown.stdout.strip(), shown.stderr, shown.returncode) == (build(), "", 0)
    helped = run([Places(laid_home).launcher, "check", "--help"], clean)
    assert helped.returncode == 0, helped.stderr


def test_the_copy_runs_isolated(laid_home: Path, clean: dict[str, str], tmp_path: Path) -> None:
    """Neither PYTHONPATH nor the working directory nor the user's own packages put another module in its place."""
    (tmp_path / "json.py").write_text("raise SystemExit('the wrong json')")
    (tmp_path / "interlock.py").write_text("raise SystemExit('the wrong interlock')")
    site = tmp_path / "site" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    (site / "sitecustomize.py").write_text("raise SystemExit('a foreign start')")
    clean |= {"PYTHONPATH": str(tmp_path), "PYTHONUSERBASE": str(tmp_path / "site"), "PYTHONHOME": "/nonexistent"}
    shown = subprocess.run(
        [Places(laid_home).launcher, "--version"], env=clean, cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (shown.stdout.strip(), shown.returncode) == (build(), 0), shown.stderr


def test_running_writes_nothing_into_the_copy(laid_home: Path, clean: dict[str, str]) -> None:
    run([Places(laid_home).launcher, "tools", "--help"], clean)
    run([Places(laid_home).launcher, "check"], clean)
    assert record.standing(laid_home).trouble is None


@posix
def test_only_the_user_can_look_into_it(laid_home: Path) -> None:
    places = Places(laid_home)
    folders = [places.app, places.bin, *(parent for parent, _, _ in os.walk(places.copy(build())))]
    assert {stat.S_IMODE(os.stat(folder).st_mode) for folder in folders} == {0o700}
    files = [os.path.join(parent, name) for parent, _, names in os.walk(places.copy(build())) for name in names]
    assert {stat.S_IMODE(os.stat(file).st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(os.stat(places.launcher).st_mode) == 0o700


def test_laying_the_same_again_changes_nothing(laid_home: Path) -> None:
    before = os.stat(Places(laid_home).copy(build())).st_ino
    laid = laying.lay_self(laid_home)
    assert (laid.name, laid.fresh, os.stat(Places(laid_home).copy(build())).st_ino) == (build(), False, before)


def test_a_copy_that_was_damaged_is_laid_anew(tmp_path: Path) -> None:
    laying.lay_self(tmp_path)
    places = Places(tmp_path)
    Path(places.lib(build()), "interlock", "build.py").unlink()
    assert record.standing(tmp_path).trouble is not None
    assert laying.lay_self(tmp_path).fresh
    assert record.standing(tmp_path) == record.Standing(build(), None, ())


def test_many_laying_at_once_leave_one_whole_copy(tmp_path: Path, clean: dict[str, str]) -> None:
    code = f"from interlock.install import laying; print(laying.lay_self({str(tmp_path)!r}).fresh)"
    running = [
        subprocess.Popen([sys.executable, "-c", code], env=clean, stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    said = sorted(process.communicate(timeout=60)[0].strip() for process in running)
    assert said == ["False", "False", "False", "True"]
    assert record.standing(tmp_path) == record.Standing(build(), None, ())


def test_killed_while_laying_leaves_the_old_copy_running(
    interlock_home: Path, copy: Copy, tree: Tree, clean: dict[str, str]
) -> None:
    old = copy("0.0.1")
    code = (
        "import os, signal\nfrom interlock.install import laying, record\n"
        "record.write = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"laying.lay_self({str(interlock_home)!r})"
    )
    ended = run([sys.executable, "-c", code], clean)
    assert ended.returncode == -9
    places = Places(interlock_home)
    assert run([places.launcher, "--version"], clean).stdout.strip() == old
    assert [name for name in os.listdir(places.app) if is_copy_name(name)] == [old]
    assert laying.lay_self(interlock_home).name == build(), "the lock died with its holder"


def test_only_newer_leaves_a_newer_copy(interlock_home: Path, copy: Copy) -> None:
    theirs = copy("99.0.0")
    laid = laying.lay_self(interlock_home, only_newer=True)
    assert (laid.name, laid.fresh) == (theirs, False)
    assert laying.lay_self(interlock_home).name == build()


def _change(file: Path) -> None:
    file.write_text(file.read_text() + "\n# more")


def _link(file: Path) -> None:
    elsewhere = file.parents[4] / "elsewhere.py"
    file.rename(elsewhere)
    file.symlink_to(elsewhere)


_TAMPERINGS: dict[str, tuple[Callable[[Path], object], str]] = {
    "changed": (_change, "was changed since"),
    "removed": (lambda file: file.unlink(), "was changed since"),
    "added": (lambda file: (file.parent / "more.py").touch(mode=0o600), "was changed since"),
    "a link": (_link, "is a symbolic link"),
    "file writable by others": (lambda file: file.chmod(0o666), "can be written by other users"),
    "folder writable by others": (lambda file: file.parent.chmod(0o770), "can be written by other users"),
    "app writable by others": (lambda file: file.parents[4].chmod(0o777), "can be written by other users"),
    "record gone": (lambda file: (file.parents[3] / record.NAME).unlink(), "record.json"),
    "record damaged": (lambda file: (file.parents[3] / record.NAME).write_text("{}"), "is damaged"),
}


@posix
@pytest.mark.parametrize(("tamper", "words"), _TAMPERINGS.values(), ids=_TAMPERINGS)
def test_a_changed_copy_is_known(
    interlock_home: Path, copy: Copy, tamper: Callable[[Path], object], words: str
) -> None:
    name = copy("1.0.0")
    places = Places(interlock_home)
    file = Path(places.lib(name), "interlock", "install", "places.py")
    assert record.verify(places, name).build == name
    tamper(file)
    with pytest.raises(record.Foreign, match=words):
        record.verify(places, name)


@posix
@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
def test_another_users_file_is_known(interlock_home: Path, copy: Copy) -> None:
    name = copy("1.0.0")
    places = Places(interlock_home)
    os.chown(os.path.join(places.lib(name), "interlock", "__init__.py"), 12345, -1)
    with pytest.raises(record.Foreign, match="another user"):
        record.verify(places, name)


def test_a_copy_under_another_name_is_known(interlock_home: Path, copy: Copy) -> None:
    places, name = Places(interlock_home), copy("1.0.0")
    os.rename(places.copy(name), places.copy("v2.0.0+0123456789ab"))
    with pytest.raises(record.Foreign, match="calls itself"):
        record.verify(places, "v2.0.0+0123456789ab")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../v1+a", "v1/../x+a", "v1.0.0", "v1.0.0+", "v1.0.0+a/b", "v+a", "x1+a", "v1\n+a", "v1+ü"]
)
def test_a_name_never_leads_elsewhere(name: str) -> None:
    assert not is_copy_name(name)


def test_old_copies_go_and_the_last_two_stay(interlock_home: Path, copy: Copy) -> None:
    names = [copy(f"1.0.{number}", laid_at=float(number)) for number in range(4)]
    assert sorted(prune.prune(Places(interlock_home))) == sorted(names[:2])
    assert [one.name for one in prune.copies(Places(interlock_home))] == [names[3], names[2]]


@posix
def test_a_copy_in_use_stays_until_its_process_ends(interlock_home: Path, copy: Copy, clean: dict[str, str]) -> None:
    places = Places(interlock_home)
    waiting = "import sys\ndef main():\n    print('up', flush=True)\n    sys.stdin.read()\n    return 0\n"
    old = copy("1.0.0", laid_at=1.0, main=waiting)
    with subprocess.Popen([places.launcher], env=clean, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"up\n"
        for number in range(1, 4):
            copy(f"1.0.{number}", laid_at=float(number + 1))
        prune.prune(places)
        assert os.path.isdir(places.copy(old))
        assert running.stdin is not None
        running.stdin.close()
        assert running.wait(10) == 0
    assert prune.prune(places) == [old]
    assert not os.path.exists(places.copy(old))


def test_what_a_killed_process_left_is_swept(interlock_home: Path, copy: Copy) -> None:
    places = Places(interlock_home)
    copy("1.0.0")
    old = Path(places.app, prune.UNFINISHED + "old")
    new = Path(places.app, prune.UNFINISHED + "new")
    for folder in (old, new):
        (folder / "lib").mkdir(parents=True)
    os.utime(old, (time.time() - 7200,) * 2)
    prune.prune(places)
    assert (old.exists(), new.exists()) == (False, True), "another may be laying right now"


def test_start_says_what_is_missing(interlock_home: Path, copy: Copy, clean: dict[str, str]) -> None:
    places, name = Places(interlock_home), copy("1.0.0")
    cases: list[tuple[Callable[[], object], str]] = [
        (lambda: Path(places.current).write_text(f"{name}\ncpython-10\n{laying.interpreter().path}\n"), "cpython-10"),
        (
            lambda: Path(places.current).write_text(f"../x\ncpython\n{laying.interpreter().path}\n"),
            "does not name a copy",
        ),
        (
            lambda: Path(places.current).write_text(
                f"v3+a\n{sys.implementation.cache_tag}\n{laying.interpreter().path}\n"
            ),
            "v3+a is gone",
        ),
        (lambda: Path(places.current).unlink(), "cannot be read"),
    ]
    for prepare, words in cases:
        prepare()
        ended = run([places.launcher, "--version"], clean)
        assert ended.returncode == 8
        assert ended.stdout == ""
        assert words in ended.stderr
        assert "update --lay" in ended.stderr, "it says what to do"
        assert ended.stderr.count("\n") == 1


@posix
def test_the_launcher_says_that_its_python_is_gone(interlock_home: Path, copy: Copy, clean: dict[str, str]) -> None:
    places = Places(interlock_home)
    copy("1.0.0")
    launcher.write(places, "/nonexistent/python")
    ended = run([places.launcher, "--version"], clean)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (8, "", 1)
    assert "/nonexistent/python, is gone" in ended.stderr
    assert "update --lay" in ended.stderr


@posix
@pytest.mark.parametrize("which", ["home", "app", "lib"])
def test_start_refuses_a_folder_that_others_can_write(
    which: str, interlock_home: Path, copy: Copy, clean: dict[str, str]
) -> None:
    places, name = Places(interlock_home), copy("1.0.0")
    os.chmod({"home": places.home, "app": places.app, "lib": places.lib(name)}[which], 0o777)
    ended = run([places.launcher, "--version"], clean)
    assert ended.returncode == 8
    assert "other users can write" in ended.stderr


@posix
def test_no_file_of_a_folder_names_what_is_started(interlock_home: Path, copy: Copy, clean: dict[str, str]) -> None:
    """What others may have written in `app` is looked at before any of it runs."""
    places, name = Places(interlock_home), copy("1.0.0")
    foreign = interlock_home.parent / "foreign"
    foreign.write_text("#!/bin/sh\necho foreign\n")
    foreign.chmod(0o755)
    Path(places.current).write_text(f"{name}\n{sys.implementation.cache_tag}\n{foreign}\n")
    assert run([places.launcher, "--version"], clean).stdout.strip() == name


@posix
def test_a_home_with_strange_letters_works(tmp_path: Path, clean: dict[str, str]) -> None:
    home = tmp_path / 'it\'s a "home" $HOME `x` ü'
    name = laying.lay_self(home).name
    assert run([Places(home).launcher, "--version"], clean).stdout.strip() == name


def test_the_launcher_works_through_a_symbolic_link(interlock_home: Path, copy: Copy, clean: dict[str, str]) -> None:
    name = copy("1.0.0")
    link = interlock_home.parent / "elsewhere"
    link.symlink_to(Places(interlock_home).launcher)
    assert run([str(link), "--version"], clean).stdout.strip() == name


def test_the_closure_holds_what_the_project_declares() -> None:
    found = closure.gather()
    tops = {part.name.partition("/")[0] for part in found.parts}
    assert {"interlock", "httptools", "msgspec", "rich", "pygments", "filelock", "httpx2"} <= tops
    assert {"httptools", "msgspec", "rich", "ruamel", "filelock", "httpx2"} <= set(found.imports)
    assert not any(part.name.endswith((".pyc", ".pth", "direct_url.json")) or ".." in part.name for part in found.parts)
    assert "pytest" not in tops, "nothing of an extra"


def test_the_closure_is_also_known_from_an_installed_distribution(tmp_path: Path, clean: dict[str, str]) -> None:
    """As pip leaves it: the package and its metadata side by side, no project file around."""
    folder = tmp_path / "site-packages"
    target = folder / "interlock"
    shutil.copytree(closure.package_root(), target, ignore=shutil.ignore_patterns("__pycache__"))
    info = folder / "interlock_gateway-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: interlock-gateway\nVersion: 0.1.0\nRequires-Dist: filelock\n"
        'Requires-Dist: absent-thing; sys_platform == "nowhere"\nRequires-Dist: pytest; extra == "test"\n'
    )
    clean["PYTHONPATH"] = str(folder)
    code = (
        "from interlock.install.closure import gather; found = gather();"
        "print(sorted({part.name.partition('/')[0] for part in found.parts} - {'typing_extensions.py'}), found.imports)"
    )
    shown = run([sys.executable, "-c", code], clean)
    assert shown.returncode == 0, shown.stderr
    assert "'filelock'" in shown.stdout
    assert "'interlock'" in shown.stdout
    assert "pytest" not in shown.stdout


def test_what_cannot_be_copied_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(closure, "_own_requirements", lambda: ("surely-not-there>=1",))
    with pytest.raises(closure.NotCopyable, match="surely-not-there is not installed"):
        laying.lay_self(tmp_path)
    assert read_current(Places(tmp_path)) is None


def test_the_same_files_in_any_place_are_the_same_build(laid_home: Path, clean: dict[str, str]) -> None:
    assert laying.reported_build(Places(laid_home).lib(build()), laying.interpreter().path, ()) == build()
