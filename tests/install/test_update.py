"""Newer releases: looked for seldom and by one process, announced in a sentence, laid on request, and taken back."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock import __version__
from interlock.install import look, pip, settings
from interlock.install.notice import notice
from interlock.install.places import Places, read_current

from .conftest import Copy, Tree, run, until
from .index import Index, of_tree, packed, serving, wheel

YES = settings.Settings(updates=True)


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as made:
        yield made


@pytest.fixture
def asking(clean: dict[str, str], index: Index, interlock_home: Path, installed: Path) -> dict[str, str]:
    """Environment in which pip asks the test's index, and Interlock was installed from one."""
    environ = clean | index.environment() | {"PYTHONPATH": str(installed)}
    try:
        pip.find(interlock_home, environ)
    except pip.PipFailed as error:
        pytest.skip(str(error))
    return environ


def update(*arguments: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "interlock", "update", *arguments], environ, 120)


def current(home: Path) -> str | None:
    found = read_current(Places(home))
    return None if found is None else found.name


def test_the_newest_release_is_found(index: Index, asking: dict[str, str], interlock_home: Path) -> None:
    for version in ("0.9.0", "0.10.0", "0.2.0", "1.0.0rc1"):
        index.add(wheel("interlock-gateway", version, {}))
    assert pip.find(interlock_home, asking).newest(asking) == "0.10.0", "neither the last text nor a pre-release"


def test_no_release_is_no_fault(index: Index, asking: dict[str, str], interlock_home: Path) -> None:
    assert pip.find(interlock_home, asking).newest(asking) is None


def test_pip_that_does_not_end_is_left(index: Index, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    monkeypatch.setattr(pip, "LOOK_SECONDS", 0.2)
    made = pip.Pip(str(python), pip.record.Interpreter(str(python), "3.11", "t", "a"))
    with pytest.raises(pip.PipFailed, match="did not finish"):
        made.newest({})


def test_without_pip_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pip, "_ask", lambda python: None)
    with pytest.raises(pip.PipFailed, match="update --lay"):
        pip.find(tmp_path, {})


def test_pips_words_come_without_passwords(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(
        "#!/bin/sh\necho 'ERROR: no route to https://user:hunter2hunter2@packages.example/simple' >&2\nexit 1\n"
    )
    python.chmod(0o755)
    made = pip.Pip(str(python), pip.record.Interpreter(str(python), "3.11", "t", "a"))
    with pytest.raises(pip.PipFailed) as caught:
        made.newest({})
    assert "hunter2" not in str(caught.value)
    assert "packages.example" in str(caught.value)


@pytest.mark.parametrize(
    ("decided", "environ", "wanted"),
    [
        (None, {}, False), (False, {}, False), (True, {}, True), (True, {"CI": "true"}, False),
        (True, {"INTERLOCK_NO_UPDATE": "1"}, False), (True, {"CI": ""}, True),
    ],
)  # fmt: skip
def test_only_after_a_yes_and_never_in_ci(
    interlock_home: Path, from_index: None, decided: bool | None, environ: dict[str, str], wanted: bool
) -> None:
    settings.keep(interlock_home, settings.Settings(updates=decided))
    assert look.wanted(interlock_home, environ) is wanted


def test_every_six_hours(interlock_home: Path) -> None:
    then = 1_800_000_000.0
    assert look.due(interlock_home, then), "never looked yet"
    look.keep(Places(interlock_home), look.Seen(then, "1.0.0"))
    times = [then, then + 6 * 3600 - 1, then + 6 * 3600, then - 1]
    assert [look.due(interlock_home, now) for now in times] == [False, False, True, True], (
        "also after the clock was set back"
    )


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"at": "x"}', b'{"newest": "9"}', b"\xff"])
def test_a_damaged_state_is_none(interlock_home: Path, content: bytes) -> None:
    Path(Places(interlock_home).update).write_bytes(content)
    assert look.read(interlock_home) == look.Seen()
    Path(Places(interlock_home).settings).write_bytes(content)
    assert settings.read(interlock_home) == settings.Settings()


def test_many_processes_look_once(index: Index, asking: dict[str, str], interlock_home: Path) -> None:
    index.add(wheel("interlock-gateway", "99.0.0", {}))
    settings.keep(interlock_home, YES)
    code = f"import os; from interlock.install.look import look; look({str(interlock_home)!r}, os.environ)"
    running = [subprocess.Popen([sys.executable, "-c", code], env=asking) for _ in range(5)]
    assert [process.wait(60) for process in running] == [0] * 5
    assert index.asked == ["interlock-gateway"]
    assert look.read(interlock_home).newest == "99.0.0"


def test_a_look_goes_on_in_a_process_of_its_own(index: Index, asking: dict[str, str], interlock_home: Path) -> None:
    index.add(wheel("interlock-gateway", "99.0.0", {}))
    settings.keep(interlock_home, YES)
    code = f"import os; from interlock.install.look import look_if_due; print(look_if_due({str(interlock_home)!r}, os.environ))"
    assert run([sys.executable, "-c", code], asking).stdout == "True\n"
    until(lambda: look.read(interlock_home).newest == "99.0.0")
    assert run([sys.executable, "-c", code], asking).stdout == "False\n", "not again before six hours have passed"


def test_an_index_that_is_away_is_remembered_as_such(asking: dict[str, str], interlock_home: Path) -> None:
    settings.keep(interlock_home, YES)
    look.keep(Places(interlock_home), look.Seen(1.0, "50.0.0"))
    found = look.look(interlock_home, asking | {"PIP_INDEX_URL": "http://127.0.0.1:1/simple"})
    assert found is not None
    assert found.newest == "50.0.0", "what is known stays known"
    assert time.time() - found.at < 60, "the next look is six hours away all the same"


def test_the_notice(interlock_home: Path, copy: Copy, from_index: None) -> None:
    assert notice(interlock_home, {}) is None
    look.keep(Places(interlock_home), look.Seen(time.time(), "99.0.0"))
    assert notice(interlock_home, {}) is None, "nobody said yes"
    settings.keep(interlock_home, YES)
    assert notice(interlock_home, {}) == f"Interlock {__version__} is behind: 99.0.0 is out; `interlock update`"
    assert notice(interlock_home, {"INTERLOCK_NO_UPDATE": "1"}) is None
    settings.keep(interlock_home, settings.Settings(updates=True, held="99.0.0"))
    assert notice(interlock_home, {}) is None, "it was taken back"
    look.keep(Places(interlock_home), look.Seen(time.time(), __version__))
    assert notice(interlock_home, {}) is None
    copy("98.0.0")
    assert (
        notice(interlock_home, {}) == f"Interlock {__version__} is behind: 98.0.0 is laid; restart this host to run it"
    )


def test_update_lays_the_newest_with_what_it_needs(
    index: Index, asking: dict[str, str], interlock_home: Path, tree: Tree, copy: Copy
) -> None:
    before = copy("0.0.1")
    index.add(of_tree(tree("99.0.0"), "99.0.0", ("filelock",)))
    index.add(packed("filelock"))
    refused = update(environ=asking)
    assert refused.returncode == 2
    assert "--yes" in refused.stderr
    assert current(interlock_home) == before
    done = update("--yes", environ=asking)
    assert done.returncode == 0, done.stderr
    name = current(interlock_home)
    assert name is not None
    assert name.startswith("v99.0.0+")
    assert name in done.stdout
    assert f"keep {before} until they restart" in done.stdout
    places = Places(interlock_home)
    assert run([places.launcher, "--version"], asking).stdout.strip() == name
    assert Path(places.lib(name), "filelock", "__init__.py").is_file()
    again = update("--yes", environ=asking)
    assert (again.returncode, "newest" in again.stdout) == (0, True)


def test_back_and_forth(index: Index, asking: dict[str, str], interlock_home: Path, tree: Tree, copy: Copy) -> None:
    old = copy("0.0.1", laid_at=1.0)
    new = copy("99.0.0", laid_at=2.0)
    shown = update("--back", "--yes", "--json", environ=asking)
    assert json.loads(shown.stdout)["laid"] == old
    assert current(interlock_home) == old
    assert settings.read(interlock_home).held == "99.0.0"
    assert update("--back", "--yes", environ=asking).returncode == 8, "nothing further back"
    index.add(of_tree(tree("99.0.0"), "99.0.0"))
    assert update("--yes", environ=asking).returncode == 0
    assert (current(interlock_home), settings.read(interlock_home).held) == (new, None)


def test_an_older_release_may_be_asked_for(
    index: Index, asking: dict[str, str], interlock_home: Path, tree: Tree, copy: Copy
) -> None:
    copy("99.0.0")
    index.add(of_tree(tree("98.0.0"), "98.0.0"))
    assert update("--version", "98.0.0", "--yes", environ=asking).returncode == 0
    assert (current(interlock_home) or "").startswith("v98.0.0+")
    assert update("--version", "newest", "--yes", environ=asking).returncode == 2


def test_a_release_that_does_not_start_is_not_laid(
    index: Index, asking: dict[str, str], interlock_home: Path, tree: Tree, copy: Copy, tmp_path: Path
) -> None:
    before = copy("0.0.1")
    broken = tmp_path / "broken"
    shutil.copytree(tree("99.0.0"), broken)
    (broken / "interlock" / "cli" / "main.py").write_text("raise SystemError('broken release')\n")
    index.add(of_tree(broken, "99.0.0"))
    done = update("--yes", environ=asking)
    assert done.returncode == 8
    assert "broken release" in done.stderr
    assert "Nothing was changed" in done.stderr
    assert current(interlock_home) == before
    assert [name for name in os.listdir(Places(interlock_home).app) if name.startswith(".laying")] == []


def test_a_release_that_is_not_what_it_says_is_not_laid(
    index: Index, asking: dict[str, str], interlock_home: Path, tree: Tree, copy: Copy
) -> None:
    before = copy("0.0.1")
    index.add(of_tree(tree("98.0.0"), "99.0.0"))
    done = update("--yes", environ=asking)
    assert (done.returncode, current(interlock_home)) == (8, before)
    assert "calls itself 98.0.0 in interlock/__init__.py, and 99.0.0 was asked for" in done.stderr
    assert "Nothing of it was run" in done.stderr


def test_an_index_that_is_away_changes_nothing(asking: dict[str, str], interlock_home: Path, copy: Copy) -> None:
    before = copy("0.0.1")
    done = update("--yes", environ=asking | {"PIP_INDEX_URL": "http://127.0.0.1:1/simple"})
    assert (done.returncode, current(interlock_home)) == (5, before)
    done = update("--version", "99.0.0", "--yes", environ=asking | {"PIP_INDEX_URL": "http://127.0.0.1:1/simple"})
    assert (done.returncode, current(interlock_home)) == (5, before)
