"""python -m interlock.lab.auth [--port PORT] [--era modern|legacy|both] [--set NAME=JSON]...

Prints one line of JSON with its URLs when it is ready, and serves until a signal or the end of its input.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import threading

from interlock.lab.auth.lab import AuthLab


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m interlock.lab.auth", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="of the MCP server; 0 takes a free one")
    parser.add_argument("--era", choices=["modern", "legacy", "both"], default="modern")
    parser.add_argument("--issuer-path", default="", metavar="PATH", help="a path of the issuer, as /tenant")
    parser.add_argument("--one-origin", action="store_true", help="authorization server at the MCP server's origin")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=JSON", help="a setting of behaviour.py; repeatable"
    )
    parser.add_argument("--stay", action="store_true", help="do not stop when standard input ends")
    arguments = parser.parse_args()
    settings: dict[str, object] = {}
    for given in arguments.set:
        name, equals, text = given.partition("=")
        if not equals:
            parser.error(f"--set {given}: NAME=JSON is needed")
        try:
            settings[name] = json.loads(text)
        except ValueError:
            settings[name] = text  # a bare word is a string
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(arguments, settings))


async def _serve(arguments: argparse.Namespace, settings: dict[str, object]) -> None:
    lab = AuthLab(
        era=arguments.era, port=arguments.port, issuer_path=arguments.issuer_path, one_origin=arguments.one_origin
    )
    async with lab:
        await lab.control({"set": settings})
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for name in ("SIGINT", "SIGTERM"):
            loop.add_signal_handler(getattr(signal, name), stop.set)
        if not arguments.stay:
            # Whoever started this holds the other end: when that goes, however it goes, nothing stays behind.
            threading.Thread(target=_watch_input, args=(loop, stop), daemon=True).start()
        print(json.dumps(lab.described()), flush=True)
        await stop.wait()


def _watch_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    while os.read(sys.stdin.fileno(), 4096):
        pass
    with contextlib.suppress(RuntimeError):  # the loop may be gone already
        loop.call_soon_threadsafe(stop.set)


if __name__ == "__main__":
    main()
