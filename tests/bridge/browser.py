"""A browser that opens nothing: a command for the BROWSER variable that writes down which URLs it was told to open."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FakeBrowser:
    """Its record is a file of one URL a line; programs of a whole machine may share one."""

    folder: Path

    @property
    def command(self) -> Path:
        return self.folder / "browser"

    @property
    def record(self) -> Path:
        return self.folder / "tabs.txt"

    def install(self) -> FakeBrowser:
        """Write the command. One `printf` with O_APPEND, so that lines of several processes do not mix."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.command.write_text(
            f"#!/bin/sh\nprintf '%s\\n' \"$1\" >> {shlex.quote(str(self.record))}\n", encoding="utf-8"
        )
        self.command.chmod(0o700)
        return self

    def environment(self) -> dict[str, str]:
        """For the bridge: `BROWSER` is what Python's `webbrowser` and `xdg-open` (npm `open`) look at first."""
        return {"BROWSER": str(self.command), "DISPLAY": "", "WAYLAND_DISPLAY": ""}

    def tabs(self) -> list[str]:
        """Every URL opened so far, in order, repeats included."""
        return self.record.read_text(encoding="utf-8").splitlines() if self.record.exists() else []
