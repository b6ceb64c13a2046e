"""What every command that starts servers does first: load the manifests, say what is wrong, choose the event loop."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, TypeVar

from interlock.cli.output import complain

if TYPE_CHECKING:
    from interlock.manifest.loading import Loaded

T = TypeVar("T")


def run_loop(main: Coroutine[object, object, T]) -> T:
    """Run on uvloop where it is there (not on Windows), else on asyncio's own loop."""
    import asyncio

    if sys.platform != "win32":
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main)
    return asyncio.run(main)


def report_problems(loaded: Loaded, *, notes: bool = False) -> bool:
    """Print problems to standard error. True where an error is among them."""
    failed = False
    for problem in loaded.problems:
        if problem.severity == "error":
            failed = True
        if problem.severity != "note" or notes:
            complain(str(problem))
    return failed


def announce(loaded: Loaded) -> None:
    """Say aloud what a person should know before calls are made: blocked servers, fields that are not enforced."""
    if not loaded.gateway.servers:
        complain("no manifest declares a server here, so hosts will see no tools; `interlock check` shows a first one")
    for config in loaded.gateway.servers.values():
        if config.blocked is not None:
            complain(f"{config.key} will not run: {config.blocked}")
    for note in loaded.gateway.notes:
        complain(note)


def load(args: argparse.Namespace) -> Loaded:
    from interlock.cli.common import load_from

    return load_from(args)
