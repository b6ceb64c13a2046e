"""`interlock demo`: the gateway on five example servers, one of them dead, seen from outside as a host sees it."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.exit_codes import CONFIGURATION, OK, TOOL_ERROR, USAGE

if TYPE_CHECKING:
    from rich.console import Console

    from interlock.lab.demo.client import JsonObject, LegacyClient, ModernClient
    from interlock.lab.demo.gateway import Interlock

RECORD_SECONDS = 10.0
_ABOUT = """Start the gateway on five example servers, one of them dead on purpose; list their tools, call some through
both protocol eras, and show the route of an allowed, a denied and a failed call. It brings its own manifest, and keeps
its state in a folder that it removes, unless --home names one."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("demo", help="run the demonstration on real servers", description=_ABOUT)
    parser.add_argument("--serve", action="store_true", help="stay up afterwards, and say how to connect a host")
    parser.add_argument("--port", type=int, default=0, help="port to serve on (default: a free one)")
    parser.add_argument(
        "--protected", action="store_true", help="only serve a remote server that wants a sign-in, to try the bridge on"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    import tempfile
    from importlib.util import find_spec

    from interlock.cli.output import complain, console
    from interlock.lab.demo.gateway import DemoError, Interlock

    if args.manifest or args.trusted_hash or args.json:
        complain("the demo brings its own manifest and is for reading: of the common options it takes only --home")
        return USAGE
    if args.protected:
        return _protected(args.port)
    missing = [name for name in ("mcp_server_git", "mcp_server_time") if find_spec(name) is None]
    if missing:
        complain(
            f"the demo runs real servers that are not installed ({', '.join(missing)}): pip install mcp-server-git mcp-server-time"
        )
        return CONFIGURATION
    # Being told to end, and Ctrl-C, both take the gateway and its servers along.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    screen = console()
    with tempfile.TemporaryDirectory(prefix="interlock-demo-") as folder:
        interlock = Interlock((args.home or Path(folder) / "home").absolute())
        try:
            _show(interlock, Path(folder), args, screen)
        except DemoError as error:
            complain(f"the demo cannot go on: {error}")
            return TOOL_ERROR
        except KeyboardInterrupt:
            screen.print()
    return OK


def _protected(port: int) -> int:
    """Serve an MCP server and its authorization server on loopback until told to end."""
    import asyncio

    from interlock.lab.auth.lab import AuthLab

    async def serve() -> None:
        stop = asyncio.Event()
        if sys.platform != "win32":
            for name in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(name, stop.set)
        # One origin for both: what was granted before a restart is asked for at the same address after it.
        async with AuthLab(era="both", port=port, one_origin=True) as lab:
            sys.stdout.write(
                f"A server that wants a sign-in: {lab.url}\nIts authorization server says yes to whoever asks. Ctrl-C ends both.\n"
            )
            sys.stdout.flush()
            await stop.wait()

    try:
        asyncio.run(serve())
    except OSError as error:
        sys.stderr.write(f"interlock: port {port}: {error.strerror}\n")
        return CONFIGURATION
    except KeyboardInterrupt:
        return OK
    return OK


def _show(interlock: Interlock, folder: Path, args: argparse.Namespace, screen: Console) -> None:
    from interlock.lab.demo.client import LegacyClient, ModernClient
    from interlock.lab.demo.gateway import MANIFEST, make_repository

    screen.print(f"The manifest: {MANIFEST}", markup=False, soft_wrap=True)
    credential = interlock.run("credential", "demo").strip()
    with interlock.serving(args.port) as (url, process):
        screen.print(f"The gateway: {url}\n", markup=False)
        _title(screen, "What the servers offer (interlock tools)")
        screen.print(interlock.run("tools", "--host", "demo", with_errors=True), markup=False, soft_wrap=True)
        legacy, modern = LegacyClient(url, credential), ModernClient(url, credential)
        _title(screen, "Calls through both protocol eras")
        _call_all(screen, legacy, modern, make_repository(folder / "repository"))
        _title(screen, "A call that the manifest denies, and one whose server dies on the way")
        _call(screen, modern, "issues/delete", {"number": 7})
        _call(screen, legacy, "notes/crash", {})
        _show_routes(screen, interlock)
        if args.serve:
            _invite(screen, interlock, url)
            process.wait()


def _call_all(screen: Console, legacy: LegacyClient, modern: ModernClient, repository: Path | None) -> None:
    _call(screen, legacy, "issues/search", {"query": "search"})
    _call(screen, modern, "notes/search", {"query": "signal"})
    _call(screen, legacy, "time/get_current_time", {"timezone": "Europe/Berlin"})
    if repository is None:
        screen.print("(no git on this machine, so no call to the git server)\n")
    else:
        _call(screen, modern, "git/git_log", {"repo_path": str(repository)})


def _call(screen: Console, client: LegacyClient | ModernClient, canonical: str, arguments: JsonObject) -> None:
    exposed = canonical.replace("/", "__")
    screen.print(f"[bold]{canonical}[/] as [cyan]{exposed}[/], asked by a {client.version} client")
    for line in _answer(client.call(exposed, arguments)).rstrip().splitlines():
        screen.print(f"  {line}", markup=False)
    screen.print()


def _answer(message: JsonObject) -> str:
    """The text of an answer, or the error with what Interlock says of the call's outcome."""
    error, result = message.get("error"), message.get("result")
    if isinstance(error, dict):
        return f"error {error.get('code')}: {error.get('message')}\n{json.dumps(error.get('data'))}"
    content = result.get("content") if isinstance(result, dict) else None
    texts = [
        str(block.get("text")) for block in content or [] if isinstance(block, dict) and block.get("type") == "text"
    ]
    return "\n".join(texts) or json.dumps(message)


def _show_routes(screen: Console, interlock: Interlock) -> None:
    """The records are written a moment after the answers: ask until they are there."""
    from interlock.lab.demo.gateway import DemoError

    wanted = {
        "allowed": ("notes/search", "ok"),
        "denied": ("issues/delete", "denied"),
        "failed": ("notes/crash", "outcome_unknown"),
    }
    end = time.monotonic() + RECORD_SECONDS
    while True:
        records = interlock.read("trace", "--last", "50")
        ids = {(str(record["name"]), str(record["status"])): str(record["id"]) for record in records}
        if all(call in ids for call in wanted.values()):
            break
        if time.monotonic() > end:
            raise DemoError(f"the calls are not on record as they should be: {sorted(ids)}")
        time.sleep(0.1)
    for word, call in wanted.items():
        _title(screen, f"The route of the {word} call (interlock trace)")
        screen.print(interlock.run("trace", ids[call]), markup=False, soft_wrap=True)


def _invite(screen: Console, interlock: Interlock, url: str) -> None:
    import shlex

    from interlock.install.launcher import again
    from interlock.lab.demo.gateway import MANIFEST

    home, manifest = shlex.quote(str(interlock.home)), shlex.quote(str(MANIFEST))
    program = " ".join(map(shlex.quote, again()))
    _title(screen, "Connect a host")
    for line in (
        "Over HTTP, with a credential that the host reads from its environment:",
        f'  export INTERLOCK_TOKEN="$({program} credential claude-code --home {home})"',
        f"  claude mcp add --transport http interlock {url} --header 'Authorization: Bearer ${{INTERLOCK_TOKEN}}'",
        "",
        "Or over stdio, with this command in the host's configuration:",
        f"  {program} connect --host claude-code --home {home} --manifest {manifest}",
        "",
        "Ctrl-C ends the demonstration.",
    ):
        screen.print(line, markup=False, soft_wrap=True)


def _title(screen: Console, text: str) -> None:
    screen.print(f"[bold reverse] {text} [/]\n")
