"""`interlock connect` is started by hosts again and again: importing the command line must load nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import pytest

_HEAVY = ("jsonschema", "mcp", "pydantic", "rich", "ruamel", "sqlite3", "email", "http.client", "urllib.request")


@pytest.mark.parametrize("command", ["connect", "up", "bridge"])
def test_reading_the_command_line_imports_nothing_heavy(command: str, child_environment: dict[str, str]) -> None:
    code = (
        f"import sys, interlock.cli.main as main; main.parser({command!r});"
        f"print([name for name in {_HEAVY!r} if name in sys.modules])"
    )
    run = [sys.executable, "-c", code]
    shown = subprocess.run(run, env=child_environment, check=True, capture_output=True, text=True, timeout=30)
    assert shown.stdout.strip() == "[]"


def test_a_bridge_greets_its_host_before_anything_heavy_is_imported(child_environment: dict[str, str]) -> None:
    code = (
        "import sys, interlock.cli.bridge as bridge, interlock.cli.main as main\n"
        "bridge.greet = lambda words: (_ for _ in ()).throw(SystemExit('asyncio' in sys.modules or 'httpx2' in sys.modules))\n"
        "main.main(['bridge', 'https://mcp.example.com/mcp'])"
    )
    run = [sys.executable, "-c", code]
    shown = subprocess.run(
        run, env=child_environment, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL
    )
    assert (shown.returncode, shown.stderr) == (0, "")


_IMPORT_ALL = """
import importlib, pkgutil, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"mcp", "pydantic", "jsonschema", "httpx", "httpx2", "anyio", "uvicorn"}:
            raise ModuleNotFoundError(f"{name} is not in the plain install")

sys.meta_path.insert(0, Refuse())
import interlock
for module in pkgutil.walk_packages(interlock.__path__, "interlock."):
    for_windows = module.name.startswith("interlock.upstream.windows") and sys.platform != "win32"
    if not for_windows and not module.name.startswith(("interlock.lab", "interlock.__main__")):
        importlib.import_module(module.name)
print("imported")
"""


def test_the_plain_install_needs_only_its_own_dependencies(child_environment: dict[str, str]) -> None:
    """Every module of the package but the lab's can be imported without the libraries of the test extra."""
    run = [sys.executable, "-c", _IMPORT_ALL]
    shown = subprocess.run(run, env=child_environment, capture_output=True, text=True, timeout=60)
    assert (shown.stdout.strip(), shown.returncode) == ("imported", 0), shown.stderr
