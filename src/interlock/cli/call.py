"""`interlock call SERVER/TOOL '{"json":"args"}'`: one call through all the gates, from the terminal."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from interlock.cli.common import home_from
from interlock.cli.exit_codes import CONFIGURATION, DENIED, NEEDS_APPROVAL, OF_VERDICT, OK, TOOL_ERROR, USAGE
from interlock.cli.output import complain, console, print_json, safe
from interlock.cli.starting import load, report_problems, run_loop

if TYPE_CHECKING:
    from interlock.catalog.view import View
    from interlock.cli.inside import Approve
    from interlock.manifest.loading import Loaded
    from interlock.model.decision import Decision
    from interlock.model.names import CanonicalName
    from interlock.wire.messages import Raw, RawMap

_EXAMPLE = """write them in single quotes, as in '{"query": "x"}'"""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("call", help="call one tool", description=__doc__)
    parser.add_argument("tool", metavar="SERVER/TOOL", help="the tool's canonical name, as `interlock tools` shows it")
    parser.add_argument(
        "arguments", nargs="?", default="{}", metavar="JSON", help="a JSON object; `-` reads standard input"
    )
    parser.add_argument("--trace", action="store_true", help="show the route that the call took")
    parser.add_argument(
        "--yes", action="store_true", help="say yes to what would be asked, but never where the manifest says always"
    )
    parser.add_argument("--host", default=None, metavar="NAME", help="call as this AI host would")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.model.names import CanonicalName

    try:
        name = CanonicalName.parse(args.tool)
    except ValueError as error:
        complain(f"usage: {error}; `interlock tools` lists them")
        return USAGE
    try:
        arguments = _read_arguments(sys.stdin.read() if args.arguments == "-" else args.arguments)
    except ValueError as error:
        complain(f"usage: {error}")
        return USAGE
    loaded = load(args)
    failed = report_problems(loaded)
    config = loaded.gateway.servers.get(name.server)
    if config is None:
        known = ", ".join(loaded.gateway.servers) or "none (`interlock check` shows a first manifest)"
        complain(f"{name} was not called: no server is called {name.server!r} here; there are: {known}")
        return CONFIGURATION if failed or not loaded.gateway.servers else DENIED
    # A caller over the wire learns nothing of these; the person whose configuration it is should.
    if config.blocked is not None:
        complain(f"{name} was not called: {config.key} may not run: {config.blocked}")
        return CONFIGURATION
    if not config.enabled:
        complain(f"{name} was not called: {config.key} is switched off ({config.origin})")
        return DENIED
    return run_loop(_call(args, loaded, home_from(args), name, arguments))


def _read_arguments(text: str) -> bytes:
    """The arguments as they go to the server, spelled as they were given. Raises ValueError."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
        given = text.encode()
    except RecursionError:
        raise ValueError("the arguments are nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("the arguments are not valid UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the arguments are not JSON ({error}): {_EXAMPLE}") from None
    if not isinstance(value, dict):
        raise ValueError(f"the arguments must be a JSON object: {_EXAMPLE}")
    return given


async def _call(
    args: argparse.Namespace, loaded: Loaded, home: Path, canonical: CanonicalName, arguments: bytes
) -> int:
    import contextlib

    from interlock.catalog.naming import exposed_name, profile_for
    from interlock.cli.inside import Inside
    from interlock.journal.printable import printable
    from interlock.journal.trace import render, to_json
    from interlock.wire import messages
    from interlock.wire.messages import Raw, WireError

    async with Inside(loaded.gateway, home, args.host) as inside:
        pipeline = inside.runtime.pipeline
        name = str(canonical)
        verbatim = pipeline.verbatim == canonical.server
        exposed = canonical.item if verbatim else exposed_name(canonical, profile_for(args.host))
        # The host itself is not here, so it cannot ask.
        inside.client.asking_host = None
        inside.client.approve = _approver(args)
        with contextlib.ExitStack() as stack:
            status = None
            if not args.json and sys.stderr.isatty() and not sys.stdin.isatty():
                status = stack.enter_context(console(stderr=True).status(f"calling {name}"))

            def heard(method: str, params: RawMap) -> None:
                if method == "notifications/progress" and status is not None:
                    status.update(f"{name}: {messages.try_str(params.get('message')) or 'working'}")
                elif method == "notifications/message":
                    complain(printable(f"[{canonical.server}] {messages.try_json(params.get('data'))}"))

            exchange = inside.exchange(
                "tools/call", {"name": messages.raw(exposed), "arguments": Raw(arguments)}, heard
            )
            try:
                body, is_error = await pipeline.call(exchange)
            except WireError as error:
                body, is_error = messages.error_body(error.code, error.message), True
        traces = pipeline.journal.recent(1)
        trace = traces[0] if traces else None
        code = _exit_code(body, is_error, denied=trace is not None and trace.slug == "unknown-name")
        if args.json:
            shown: dict[str, object] = {"error" if is_error else "result": json.loads(body)}
            if args.trace and trace is not None:
                shown["trace"] = to_json(trace)
            print_json(shown)
        else:
            if code == DENIED and trace is not None and trace.slug == "unknown-name":
                meant = "" if trace.name is not None else _meant(name, pipeline.view(exchange))
                complain(
                    f"{name} was not called: it is denied here, or there is no such tool.{meant} `interlock tools` lists what there is."
                )
            else:
                _show(body, is_error)
            if args.trace and trace is not None:
                sys.stderr.write("\n" + render(trace) + "\n")
            elif code not in (OK, TOOL_ERROR) and trace is not None:
                meaning = f"{trace.verdict}, see docs/errors.md#{trace.slug}; " if trace.slug else ""
                complain(f"{meaning}the route it took: interlock trace {trace.id}")
        return code


def _meant(name: str, view: View) -> str:
    """The listed tool that looks most like a name that is not: what somebody who mistyped it needs to read."""
    import difflib

    near = difflib.get_close_matches(
        name, [str(route.entry.canonical) for route in view.routes["tools"].values()], 1, 0.7
    )
    return f" Did you mean {near[0]}?" if near else ""


def _approver(args: argparse.Namespace) -> Approve:
    async def approve(name: str, decision: Decision, arguments: Raw | None) -> bool | None:
        from interlock.journal.printable import printable

        if args.yes and not decision.always:
            return True
        if not sys.stdin.isatty() or not sys.stderr.isatty():
            return None
        shown = printable(bytes(arguments or b"{}").decode("utf-8", "replace"))
        sys.stderr.write(f"{printable(name)} with {shown}\n({decision.reason})\nCall it? [y/N] ")
        sys.stderr.flush()
        return (await _typed()).strip().lower() in ("y", "yes")

    return approve


async def _typed() -> str:
    """One line from the terminal; empty at its end. No thread waits for it, so Ctrl-C is heard at once."""
    import asyncio
    import os

    if sys.platform == "win32":
        return await asyncio.to_thread(sys.stdin.readline)
    loop = asyncio.get_running_loop()
    line: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not line.done():
            line.set_result(os.read(0, 4096))

    loop.add_reader(0, read)
    try:
        return (await line).decode("utf-8", "replace")
    finally:
        loop.remove_reader(0)


def _exit_code(body: bytes, is_error: bool, denied: bool) -> int:
    value = json.loads(body)
    facts = value.get("data" if is_error else "_meta")
    if isinstance(facts, dict) and "interlock" in facts and "verdict" in facts:
        if facts.get("error") == "needs-approval":
            return NEEDS_APPROVAL
        if denied or facts.get("error") in ("unknown-name", "declined", "server-disabled"):
            return DENIED
        return OF_VERDICT.get(str(facts["verdict"]), TOOL_ERROR)
    if is_error or value.get("isError") is True:
        return TOOL_ERROR
    return OK


def _show(body: bytes, is_error: bool) -> None:
    value = json.loads(body)
    if is_error:
        complain(safe(sys.stderr, f"error {value.get('code')}: {value.get('message')}"))
        return
    stream = sys.stderr if value.get("isError") is True else sys.stdout
    for item in value.get("content") or []:
        if isinstance(item, dict) and item.get("type") == "text":
            stream.write(safe(stream, f"{item.get('text', '')}\n"))
        else:
            stream.write(json.dumps(item, ensure_ascii=False) + "\n")
    if not value.get("content") and "structuredContent" in value:
        stream.write(json.dumps(value["structuredContent"], ensure_ascii=False, indent=2) + "\n")
