"""A program of the tests: adds its own entry to each of the given files, once the starting file is there.

python adding.py HOME ROOT START NAME FILE...
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from interlock.hosts.changes.applying import apply
from interlock.hosts.machine import Machine
from interlock.hosts.writing import Edit, FileEdits


def main() -> None:
    home, root, start, name, *files = sys.argv[1:]
    machine = Machine(platform="linux", home="/h", folder="/h", environ={}, root=root)
    edits = [
        FileEdits(file=f"/h/{file}", format="jsonc", comments=True, edits=(Edit(("m", name), {"command": name}),))
        for file in files
    ]
    while not Path(start).exists():
        time.sleep(0.005)
    apply(Path(home), machine, edits, command=name)


if __name__ == "__main__":
    main()
