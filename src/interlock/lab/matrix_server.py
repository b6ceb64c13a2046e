"""The server of the behaviour matrix, in either era, over any transport, well or badly behaved.

python -m interlock.lab.matrix_server --era legacy|modern --stdio | --http PORT | --sse PORT [options]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from interlock.lab.faults import flood
from interlock.lab.launch import Launch, add_transport_arguments, launch_of, run
from interlock.lab.matrix import MatrixOptions, matrix_content
from interlock.lab.stdio import StdioPipe


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m interlock.lab.matrix_server", description=__doc__)
    parser.add_argument("--era", choices=["legacy", "modern"], required=True)
    add_transport_arguments(parser, None)
    size = parser.add_argument_group("what it offers")
    size.add_argument("--name", default="matrix", help="the server's own name")
    size.add_argument("--tools", type=int, default=0, metavar="N", help="add N numbered tools")
    size.add_argument("--prompts", type=int, default=0, metavar="N")
    size.add_argument("--resources", type=int, default=0, metavar="N")
    size.add_argument("--page-size", type=int, metavar="N", help="items a page; default: one page")
    size.add_argument(
        "--tool-name", action="append", default=[], metavar="NAME", help="add a tool of this name; repeatable"
    )
    size.add_argument("--malformed", action="store_true", help="also list tools with broken definitions")
    size.add_argument("--ttl-ms", type=int, default=1000)
    size.add_argument("--cache-scope", choices=["public", "private"], default="public")
    size.add_argument("--log-level", default="debug", metavar="LEVEL", help="legacy: from which level it logs unasked")
    size.add_argument("--journal", type=Path, metavar="FILE", help="write down each tool call that arrives")
    faults = parser.add_argument_group("how it misbehaves")
    faults.add_argument("--hang", action="store_true", help="take everything and answer nothing")
    faults.add_argument("--flood", type=int, metavar="N", help="send N unasked-for messages a second")
    faults.add_argument("--start-delay", type=float, default=0, metavar="SECONDS", help="wait before serving")
    faults.add_argument("--banner", metavar="TEXT", help="stdio: print a line that is no message first")
    faults.add_argument("--die", type=int, metavar="CODE", help="say why on standard error and exit at once")
    arguments = parser.parse_args()
    if arguments.era == "modern" and arguments.sse is not None:
        parser.error("HTTP+SSE belongs to the legacy era")
    if arguments.die is not None:
        print("fatal: this fixture was told to die", file=sys.stderr)
        raise SystemExit(arguments.die)
    time.sleep(arguments.start_delay)
    if arguments.banner is not None:
        print(arguments.banner, flush=True)
    run(_launch(arguments))


def _launch(arguments: argparse.Namespace) -> Launch:
    content = matrix_content(
        MatrixOptions(
            name=arguments.name,
            tools=arguments.tools,
            prompts=arguments.prompts,
            resources=arguments.resources,
            page_size=arguments.page_size,
            tool_names=arguments.tool_name,
            malformed=arguments.malformed,
            ttl_ms=arguments.ttl_ms,
            cache_scope=arguments.cache_scope,
            log_level=arguments.log_level,
            journal=arguments.journal,
        )
    )
    launch = launch_of(arguments, arguments.era, content)
    launch.silent = arguments.hang
    if arguments.flood is not None:

        async def background(pipe: StdioPipe | None) -> None:
            await flood(content, pipe, arguments.flood)

        launch.background = background
    return launch


if __name__ == "__main__":
    main()
