"""`python -m benchmarks` from the repository's root: the same as `python benchmarks/run.py`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

_FOLDER = Path(__file__).resolve().parent

sys.path.insert(0, str(_FOLDER))
runpy.run_path(str(_FOLDER / "run.py"), run_name="__main__")
