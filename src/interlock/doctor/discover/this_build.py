"""Which Interlock is speaking, and on which Python."""

from __future__ import annotations

import os
import platform
import sys

from interlock.build import build
from interlock.doctor.case import Machine
from interlock.doctor.finding import Finding
from interlock.model.stage import Stage


async def check(machine: Machine) -> list[Finding]:
    import interlock

    version = build()
    unread = version.endswith("+unread")
    return [
        Finding(
            check="build",
            stage=Stage.DISCOVER,
            severity="warning" if unread else "ok",
            seen=f"interlock {version}, Python {platform.python_version()} ({sys.executable})",
            where=os.path.dirname(interlock.__file__),
            why="Its files cannot be read, so builds cannot be told apart." if unread else "",
            todo="Install it again." if unread else "",
        )
    ]
