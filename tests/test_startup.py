"""`interlock connect` is started by hosts again and again: importing the command line must load nothing heavy."""

from __future__ import annotations

import subprocess
import sys

_HEAVY = ("jsonschema", "mcp", "pydantic", "rich", "ruamel", "sqlite3", "email", "http.client", "urllib.request")


def test_importing_the_command_line_loads_nothing_heavy() -> None:
    code = f"import sys, interlock.cli.main; print([name for name in {_HEAVY!r} if name in sys.modules])"
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, check=True, capture_output=True, text=True, timeout=30)
    assert shown.stdout.strip() == "[]"


def test_the_plain_install_needs_only_its_own_dependencies() -> None:
    """Every module of the package except the lab's imports with the test extra's libraries out of reach."""
    code = """
import importlib, pkgutil, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"mcp", "pydantic", "jsonschema", "httpx", "httpx2", "anyio", "uvicorn", "starlette"}:
            raise ModuleNotFoundError(f"{name} is not in the plain install")

sys.meta_path.insert(0, Refuse())
import interlock
for module in pkgutil.walk_packages(interlock.__path__, "interlock."):
    if not module.name.startswith(("interlock.lab", "interlock.__main__")):
        importlib.import_module(module.name)
print("imported")
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (shown.stdout.strip(), shown.returncode) == ("imported", 0), shown.stderr
