"""What starting through the home copy's launcher costs beside the environment that it was made from.

    python benchmarks/launcher_start.py [--runs 40] [--json FILE]

Both are run in turn, so that whatever else the machine does hits both. The figure is the difference of the medians; the
goal is less than 15 ms. Also measured: what `align` takes where there is no home copy, and where the home copy is current.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

from harness.processes import REPOSITORY
from harness.report import machine_line

sys.path.insert(0, str(REPOSITORY / "src"))

from interlock.install import laying
from interlock.install.places import Places

GOAL_MS = 15.0
ALIGN_GOAL_MS = 3.0
_COMMAND = ("bridge", "--help")
_ALIGN = (
    "import os, sys, time, typing; begun = time.perf_counter(); from interlock.install.align import align; "
    "align(sys.argv[1], ['bridge'], os.environ); print((time.perf_counter() - begun) * 1000)"
)


def main() -> int:
    """Exit code 1 where a goal was missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--json", type=Path, default=None)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="interlock-launcher-") as name:
        home = Path(name) / "home"
        laying.lay_self(home)
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src")}
        plain = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "CI")}
        own = [sys.executable, "-c", "from interlock.cli.main import main; raise SystemExit(main())", *_COMMAND]
        through = [Places(home).launcher, *_COMMAND]
        for command, environ in ((own, environment), (through, plain)):
            _timed(command, environ)
        pairs = [(_timed(own, environment), _timed(through, plain)) for _ in range(args.runs)]
        figures = {
            "environment_ms": median(pair[0] for pair in pairs),
            "launcher_ms": median(pair[1] for pair in pairs),
            "align_without_copy_ms": _align(Path(name) / "empty", environment),
            "align_in_copy_ms": _align_in_copy(home, plain),
        }
    figures["difference_ms"] = figures["launcher_ms"] - figures["environment_ms"]
    print(machine_line())
    for label, value in figures.items():
        print(f"{label:24} {value:8.2f}")
    if args.json is not None:
        args.json.write_text(json.dumps(figures, indent=2))
    late = figures["align_without_copy_ms"] >= ALIGN_GOAL_MS or figures["align_in_copy_ms"] >= ALIGN_GOAL_MS
    return 1 if figures["difference_ms"] >= GOAL_MS or late else 0


def _timed(command: Sequence[str], environ: Mapping[str, str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, env=dict(environ), stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begun) * 1000


def _align(home: Path, environ: Mapping[str, str], runs: int = 15) -> float:
    """Median of the import and the call, in milliseconds."""
    command = [sys.executable, "-c", _ALIGN, str(home)]
    environ = {key: value for key, value in environ.items() if key not in ("CI", "INTERLOCK_NO_UPDATE")}
    told = [
        subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout for _ in range(runs)
    ]
    return median(float(one) for one in told)


def _align_in_copy(home: Path, environ: Mapping[str, str]) -> float:
    from interlock.build import build

    return _align(home, {**environ, "PYTHONPATH": Places(home).lib(build())})


if __name__ == "__main__":
    raise SystemExit(main())
