"""Installs what the benchmarks run and compare with, in fixed versions, under a cache folder.

    python benchmarks/setup_rivals.py [--cache DIR] [--with-contextforge]

What is there already in the right version is left alone. Takes a few minutes the first time.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from harness.rivals import CONTEXTFORGE_MINIMUM, NODE, NPM_RIVALS, OPTIONAL, PYTHON_RIVALS, Rivals, default_cache

_LIMIT_SECONDS = 900


def install_python(rivals: Rivals, name: str) -> None:
    """One virtual environment; raises OSError or SubprocessError when it cannot be made."""
    requirements = PYTHON_RIVALS[name]
    found = rivals.versions()
    wanted = dict(requirement.split("==") for requirement in requirements)
    if all(found.get(f"{distribution} (PyPI)") == version for distribution, version in wanted.items()):
        return
    print(f"installing {', '.join(requirements)}", flush=True)
    python = _newer_python() if name == "contextforge" else sys.executable
    _run([python, "-m", "venv", "--clear", str(rivals.environment(name))])
    _run([str(rivals.python(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements])


def install_npm(rivals: Rivals) -> None:
    """All npm rivals in one prefix, with the Node that runs them."""
    found = rivals.versions()
    if all(found.get(f"{name} (npm)") == version for name, version in (spec.split("@") for spec in NPM_RIVALS)):
        return
    print(f"installing {', '.join(NPM_RIVALS)}", flush=True)
    rivals.prefix.mkdir(parents=True, exist_ok=True)
    (rivals.prefix / "package.json").write_text('{"private": true}\n')
    command = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", NODE, *NPM_RIVALS]
    _run(command, directory=rivals.prefix)


def install_all(rivals: Rivals, contextforge: bool) -> list[str]:
    """Installs everything that can be; returns what could not, each with the reason."""
    failures: list[str] = []
    for name in (*PYTHON_RIVALS, "npm"):
        if name in OPTIONAL and not contextforge:
            continue
        try:
            if name == "npm":
                install_npm(rivals)
            else:
                install_python(rivals, name)
        except (subprocess.SubprocessError, OSError) as error:
            failures.append(f"{name}: {error}")
    return failures


def _newer_python() -> str:
    if sys.version_info >= CONTEXTFORGE_MINIMUM:
        return sys.executable
    for name in ("python3.13", "python3.12"):
        path = shutil.which(name)
        if path and subprocess.run([path, "-V"], capture_output=True, check=False).returncode == 0:
            return path
    raise FileNotFoundError("needs Python 3.12 or 3.13 on PATH")


def _run(command: list[str], directory: Path | None = None) -> None:
    done = subprocess.run(command, cwd=directory, timeout=_LIMIT_SECONDS, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command[:4])} failed: {done.stderr.strip()[-500:]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--cache", type=Path, default=default_cache())
    parser.add_argument("--with-contextforge", action="store_true", help="also the largest one (some hundred MB)")
    arguments = parser.parse_args()
    rivals = Rivals(arguments.cache)
    failures = install_all(rivals, arguments.with_contextforge)
    for name, version in sorted(rivals.versions().items()):
        print(f"{name} {version}")
    for failure in failures:
        print(f"not installed: {failure}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main())
