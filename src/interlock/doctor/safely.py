"""Runs one check so that it can neither break nor hold up the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

from interlock.doctor.finding import Finding
from interlock.model.stage import Stage


async def safely(name: str, stage: Stage, work: Awaitable[list[Finding]], seconds: float) -> list[Finding]:
    """Its findings; where it fails or takes longer than `seconds`, one that says so. Never raises."""
    try:
        async with asyncio.timeout(seconds):
            return await work
    except TimeoutError:
        seen = f"it took longer than {seconds:g} s"
    except Exception as error:
        # The error's own text may hold what was sent.
        seen = f"the check itself failed ({type(error).__name__})"
    todo = "Please report that it failed, with the version that `interlock --version` prints."
    return [Finding(check=name, stage=stage, severity="unknown", seen=seen, todo=todo if "failed" in seen else "")]
