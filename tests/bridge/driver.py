"""Drives one bridge as a host would, and writes down everything: `python -m tests.bridge.driver [OPTIONS] URL`.

As the client command of the conformance suite it plays the scenario that the environment names
(MCP_CONFORMANCE_SCENARIO, _CONTEXT, _PROTOCOL_VERSION). Without one it opens a session, lists tools and calls the first.

    python -m tests.bridge.driver --bridge interlock --click-after 1.5 http://127.0.0.1:3000/mcp
    python -m tests.bridge.driver --bridge mcp-remote --cache DIR --record run.json URL
    python -m tests.bridge.driver some-bridge --flag URL

Exit code 0: the session went as it should. 1: it did not; standard error says what failed, and what the bridge said.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from . import bridges, scenarios
from .browser import FakeBrowser
from .person import Person
from .session import Session

_NO_SCENARIO = "auth/any"


def chosen_bridge(name: str | None, cache: Path, words: list[str]) -> bridges.Bridge:
    """The bridge that the command line names; exits with a message where it is not installed."""
    if words:
        return bridges.Other(words)
    if name in ("mcp-remote", "mcp-remote-defaults"):
        rival = bridges.mcp_remote(cache)
        if rival is None:
            raise SystemExit(f"mcp-remote is not in {cache}: run benchmarks/setup_rivals.py")
        return bridges.McpRemote(rival.node, rival.entry, defaults=name.endswith("defaults"), name=name)
    return bridges.Interlock()


async def drive(
    bridge: bridges.Bridge, url: str, home: Path, arguments: argparse.Namespace, context: dict[str, Any]
) -> tuple[Session, Person, str]:
    """One session from start to end; the text says what was unmet, or is empty."""
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", _NO_SCENARIO)
    revision = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2026-07-28")
    browser = FakeBrowser(home / "browser").install()
    launch = bridge.launch(url, home / "state", scenarios.settings_for(scenario, context, revision))
    person = Person(after=arguments.click_after)
    session = await Session.start(
        launch.command,
        environment=bridges.environment_of(launch, home, browser.environment()),
        era=arguments.era,
        answerer=scenarios.answer,
        capabilities=scenarios.capabilities_for(scenario),
        on_url=person.notice,
    )
    unmet = ""
    try:
        await scenarios.play(scenario, scenarios.Visitor(session, person, context))
    except scenarios.Unmet as failure:
        unmet = str(failure)
    finally:
        await session.close(seconds=arguments.leave_within)
    return session, person, unmet


def record_of(session: Session, person: Person, unmet: str) -> dict[str, Any]:
    """The whole session as plain data; query strings, which may hold codes, are cut from where clicks ended."""
    return {
        "unmet": unmet,
        "replies": [
            {
                "method": reply.method,
                "state": reply.state,
                "sent": round(reply.sent, 3),
                "seconds": None if reply.seconds is None else round(reply.seconds, 3),
                "verdict": reply.verdict,
                "error": reply.error,
                "isError": bool((reply.result or {}).get("isError")),
            }
            for reply in session.replies
        ],
        "unanswered": [reply.method for reply in session.replies if reply.state in ("unanswered", "ended")],
        "published": [{"url": one.url, "at": round(one.at, 3), "surface": one.surface} for one in session.published],
        "clicks": [
            {"at": click.clicked, "landing": click.visit.landing if click.visit else None} for click in person.clicks
        ],
        "noise": session.noise[:20],
        "exit": {"code": session.exit_code, "seconds": session.exit_seconds},
        "stderr": [text for _, text in session.stderr[-200:]],
    }


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bridge.driver", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--bridge", choices=("interlock", "mcp-remote", "mcp-remote-defaults"), default="interlock")
    parser.add_argument("--click-after", type=float, default=0.0, metavar="S", help="from the URL to the click")
    parser.add_argument("--era", choices=("legacy", "modern"), default="legacy", help="of the host on the pipes")
    parser.add_argument("--home", type=Path, help="keep grants here; default: a new folder that is removed again")
    parser.add_argument("--leave-within", type=float, default=3.0, metavar="S", help="after the end of its input")
    parser.add_argument("--cache", type=Path, default=bridges.rival_cache(), help="where other bridges are installed")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the whole session as JSON")
    parser.add_argument("words", nargs="+", metavar="[COMMAND...] URL")
    return parser.parse_args()


def main() -> int:
    arguments = parse()
    *words, url = arguments.words
    bridge = chosen_bridge(arguments.bridge, arguments.cache, words)
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory(prefix="bridge-driver-", ignore_cleanup_errors=True) as folder:
        home = arguments.home or Path(folder)
        session, person, unmet = asyncio.run(drive(bridge, url, home, arguments, context))
    record = record_of(session, person, unmet)
    if arguments.record is not None:
        arguments.record.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({key: record[key] for key in ("unmet", "unanswered", "clicks", "exit")}))
    if unmet:
        print(f"{unmet}\n{session.tail()}", file=sys.stderr)
    return 1 if unmet else 0


if __name__ == "__main__":
    raise SystemExit(main())
