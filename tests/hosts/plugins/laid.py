"""A fake machine with files on it, for any platform."""

from __future__ import annotations

import json
from pathlib import Path

from interlock.hosts.machine import Machine, Platform

HOME = {"linux": "/home/ada", "macos": "/Users/ada", "windows": "C:\\Users\\ada"}


def machine(folder: Path, platform: Platform = "linux", **environ: str) -> Machine:
    home = HOME[platform]
    made = Machine(
        platform=platform, home=home, folder=home + ("\\code" if platform == "windows" else "/code"), environ=environ,
        root=str(folder),
    )  # fmt: skip
    Path(made.real(made.join(made.folder, ".git"))).mkdir(parents=True)
    return made


def put(on: Machine, path: str, content: object) -> str:
    """`~/x` in the home, `./x` in the project; what is no text is written as JSON. Gives the logical path."""
    base = on.home if path.startswith("~") else on.folder
    logical = on.join(base, *path[2:].split("/")) if path[0] in "~." and path[1] == "/" else path
    real = Path(on.real(logical))
    real.parent.mkdir(parents=True, exist_ok=True)
    real.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8", newline="")
    return logical
