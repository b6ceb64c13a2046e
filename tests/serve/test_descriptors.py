"""The limit of open files is raised where that is allowed, and never lowered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(
    ("soft", "hard", "expected"),
    [(64, 256, 256), (256, 256, 256), (100, 400, 300), (350, 400, 350)],
    ids=["up to the hard limit", "nothing to gain", "no more than wanted", "never lowered"],
)
def test_limit_of_open_files(soft: int, hard: int, expected: int) -> None:
    code = (
        "import resource, interlock.serve.descriptors as d\n"
        f"resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))\n"
        "d.make_room(300)\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stdout.strip() == str(expected)
