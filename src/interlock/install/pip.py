"""Asking pip, in a process of its own with a deadline: which releases there are, and to put one into a folder.

pip's own configuration (files, PIP_* variables) says where packages come from; nothing here knows an address. pip may be
missing: then nothing is looked for, and `interlock update` says so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence

from interlock.install import record, release
from interlock.install.closure import DISTRIBUTION
from interlock.install.places import Places, read_current
from interlock.install.version import key

LOOK_SECONDS = 60.0
BUILD_SECONDS = 600.0
_ASK_SECONDS = 20.0
_LOWEST = (3, 11)

_WHO = (
    "import importlib.util as u, json, sys, sysconfig\n"
    "print(json.dumps([getattr(sys, '_base_executable', None) or sys.executable, list(sys.version_info[:3]),"
    " sys.implementation.cache_tag, sysconfig.get_config_var('SOABI') or sys.implementation.cache_tag,"
    " u.find_spec('pip') is not None]))"
)


class PipFailed(Exception):
    """pip is missing, or it could not do it. The text is for people, with pip's own last words."""


class Pip:
    """A Python that has pip, and what a copy built with it will run on."""

    def __init__(self, python: str, made_for: record.Interpreter) -> None:
        self.python = python
        self.made_for = made_for

    def newest(self, environ: Mapping[str, str]) -> str | None:
        """The newest release that suits this Python; None where there is none. Raises PipFailed. Takes seconds."""
        told = self._run(["index", "versions", "--disable-pip-version-check", DISTRIBUTION], environ, LOOK_SECONDS)
        if told.returncode != 0:
            last = _last_words(told)
            if "no matching distribution" in last.lower():
                return None
            raise PipFailed(f"pip could not look for releases: {last}")
        found = re.search(r"^Available versions:(.*)$", told.stdout, re.MULTILINE)
        versions = [part.strip() for part in found[1].split(",")] if found is not None else []
        ranked = sorted((sort, text) for text in versions if (sort := key(text)) is not None)
        return ranked[-1][1] if ranked else None

    def install(self, version: str, folder: str, environ: Mapping[str, str]) -> None:
        """Put that release and what it needs into `folder`. Raises PipFailed, or release.NotOurs. May take minutes.

        Its wheel is fetched alone first and looked through: an sdist, or what it asks for, would run code to be built.
        """
        with tempfile.TemporaryDirectory(prefix="interlock-release-") as fetched:
            self._must(
                f"fetch {DISTRIBUTION} {version}",
                ["download", "--no-deps", "--only-binary", ":all:", "--dest", fetched, f"{DISTRIBUTION}=={version}"],
                environ,
            )
            wheels = sorted(name for name in os.listdir(fetched) if name.endswith(".whl"))
            if len(wheels) != 1:
                raise release.NotOurs(f"pip fetched {len(wheels)} wheels where one was asked for")
            wheel = os.path.join(fetched, wheels[0])
            files = release.look_through(wheel, version)
            self._must(
                f"install {DISTRIBUTION} {version}",
                ["install", "--no-user", "--ignore-installed", "--target", folder, wheel],
                environ,
            )
        release.still_ours(folder, files)
        # Scripts would start another Python than the copy's; pip's --target puts them here.
        shutil.rmtree(os.path.join(folder, "bin"), ignore_errors=True)

    def _must(self, what: str, arguments: Sequence[str], environ: Mapping[str, str]) -> None:
        command, *rest = arguments
        told = self._run(
            [command, "--disable-pip-version-check", "--no-input", "--quiet", *rest], environ, BUILD_SECONDS
        )
        if told.returncode != 0:
            raise PipFailed(f"pip could not {what}: {_last_words(told)}")

    def _run(
        self, arguments: Sequence[str], environ: Mapping[str, str], seconds: float
    ) -> subprocess.CompletedProcess[str]:
        # -P: a file of the working directory is never imported in a module's place.
        command = [self.python, "-P", "-m", "pip", *arguments]
        inherited = {name: value for name, value in environ.items() if not name.startswith("PYTHON")}
        try:
            return subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds,
                env=inherited,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise PipFailed(f"pip did not finish within {seconds:.0f} s") from None
        except OSError as error:
            raise PipFailed(f"{self.python} cannot be started: {error.strerror or error}") from None


def find(home: str | os.PathLike[str], environ: Mapping[str, str]) -> Pip:
    """The first Python with pip among: ours, the one that laid the home copy, its base, and those on PATH. Raises PipFailed."""
    for python in _candidates(Places(home), environ):
        made_for = _ask(python)
        if made_for is not None:
            return Pip(python, made_for)
    raise PipFailed(
        f"no Python {_LOWEST[0]}.{_LOWEST[1]} or newer with pip was found: install pip, or install {DISTRIBUTION} "
        "in another way and run `interlock update --lay` from there"
    )


def _candidates(places: Places, environ: Mapping[str, str]) -> Iterable[str]:
    seen: set[str] = set()
    for python in _all_candidates(places, environ):
        if python and python not in seen and os.access(python, os.X_OK):
            seen.add(python)
            yield python


def _all_candidates(places: Places, environ: Mapping[str, str]) -> Iterable[str | None]:
    yield sys.executable
    current = read_current(places)
    if current is not None:
        try:
            laid = record.read(places.copy(current.name))
        except record.Foreign:
            pass
        else:
            yield laid.laid_by
            yield laid.interpreter.path
    for name in ("python3", "python"):
        yield shutil.which(name, path=environ.get("PATH"))


def _ask(python: str) -> record.Interpreter | None:
    """None where it is too old, has no pip, or does not answer."""
    try:
        # -I: an empty entry of PYTHONPATH is the working directory, which may be anybody's project.
        told = subprocess.run(
            [python, "-I", "-c", _WHO], stdin=subprocess.DEVNULL, capture_output=True, timeout=_ASK_SECONDS, check=True
        )
        path, version, tag, abi, has_pip = json.loads(told.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    if not has_pip or tuple(version[:2]) < _LOWEST:
        return None
    return record.Interpreter(str(path), ".".join(str(part) for part in version), str(tag), str(abi))


def _last_words(told: subprocess.CompletedProcess[str]) -> str:
    """The line that says what is wrong. pip may name an index with a password in its address: that is masked."""
    from interlock.journal.redact import redact

    lines = [line.strip() for line in told.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    last = (errors or lines or [f"exit code {told.returncode}"])[-1]
    return redact(last.removeprefix("ERROR:").strip())[:400]
