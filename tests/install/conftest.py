"""Homes with copies in them, and Interlocks of any version, made in a moment from this checkout."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from interlock import __version__
from interlock.install import launcher, laying, origin, record
from interlock.install.places import Places, write_whole

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "interlock"

Tree = Callable[[str], Path]
Copy = Callable[..., str]


def make_tree(folder: Path, version: str) -> Path:
    """The folder for PYTHONPATH of a checkout like this one that calls itself `version`."""
    source = folder / version / "src"
    shutil.copytree(PACKAGE, source / "interlock", ignore=shutil.ignore_patterns("__pycache__", "lab", "demo"))
    init = source / "interlock" / "__init__.py"
    init.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', init.read_text(encoding="utf-8")))
    shutil.copy(ROOT / "pyproject.toml", folder / version)
    return source


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Tree:
    """`tree(version)`: a source tree of that version; made once."""
    folder = tmp_path_factory.mktemp("trees")

    def made(version: str) -> Path:
        place = folder / version / "src"
        return place if place.is_dir() else make_tree(folder, version)

    return made


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder for PYTHONPATH of this checkout as pip leaves it when it took it from an index."""
    return as_installed(tmp_path_factory.mktemp("installed") / "site-packages")


def as_installed(folder: Path) -> Path:
    """Make that folder."""
    shutil.copytree(PACKAGE, folder / "interlock", ignore=shutil.ignore_patterns("__pycache__", "lab", "demo"))
    info = folder / f"interlock_gateway-{__version__}.dist-info"
    info.mkdir()
    requires = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    lines = ["Metadata-Version: 2.4", "Name: interlock-gateway", f"Version: {__version__}"]
    (info / "METADATA").write_text("\n".join([*lines, *(f"Requires-Dist: {one}" for one in requires)]) + "\n")
    (info / "INSTALLER").write_text("pip\n")
    files = sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    (info / "RECORD").write_text("".join(f"{name},,\n" for name in files))
    return folder


@pytest.fixture
def from_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """This very process counts as an Interlock that was installed from an index."""
    monkeypatch.setattr(origin, "here", lambda: origin.Origin("index"))


@pytest.fixture
def copy(interlock_home: Path, tree: Tree) -> Copy:
    """`copy(version)`: lays that version, without what it depends on, in the test's home; its build comes back."""

    def made(version: str, *, current: bool = True, laid_at: float | None = None, main: str | None = None) -> str:
        places = Places(interlock_home)
        for folder in (places.app, places.bin):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        unnamed = os.path.join(places.app, ".being-made")
        lib = os.path.join(unnamed, "lib")
        shutil.copytree(tree(version), lib)
        if main is not None:
            Path(lib, "interlock", "cli", "main.py").write_text(main)
        made_for = laying.interpreter()
        name = laying.reported_build(lib, made_for.path, ())
        laying._restrict(unnamed)
        total, files = record.digest(lib)
        laid = time.time() if laid_at is None else laid_at
        record.write(
            unnamed, record.Record(name, version, record.owner(), total, files, made_for, laid, sys.executable)
        )
        Path(unnamed, record.IN_USE).touch(mode=0o600)
        os.rename(unnamed, places.copy(name))
        if current:
            launcher.write(places, made_for.path)
            write_whole(places.current, f"{name}\n{made_for.tag}\n{made_for.path}\n".encode())
        return name

    return made


@pytest.fixture
def clean(child_environment: dict[str, str]) -> dict[str, str]:
    """Environment of a child process that may align and look for updates, as on a person's machine."""
    return {name: value for name, value in child_environment.items() if name not in ("CI", "INTERLOCK_NO_UPDATE")}


def aligning(home: Path, *argv: str, then: str = "print('self')", before: str = "") -> list[str]:
    """A process that aligns as a long-lived start does, and says `self` where it goes on itself."""
    lines = ["import os, sys", before, "from interlock.install.align import align"]
    code = "\n".join([*lines, f"align({str(home)!r}, {list(argv)!r}, os.environ)", then])
    return [sys.executable, "-c", code]


def run(command: Sequence[str], environ: dict[str, str], seconds: float = 60) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False
    )


def until(condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for what another process does; the test fails where it does not."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
