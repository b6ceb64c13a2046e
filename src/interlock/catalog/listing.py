"""Asking one server for everything that it offers: all pages of all lists, each list on its own."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Final

from interlock.catalog.snapshot import KINDS, MEMBERS, METHODS, Kind, Snapshot, build
from interlock.manifest.config import HttpTransport
from interlock.model.fault import Fault
from interlock.upstream.contract import Caller, Outgoing
from interlock.upstream.server import Server
from interlock.wire import bounds, codes, messages, translate
from interlock.wire.messages import Raw, RawMap

LARGE_BYTES: Final = 256 * 1024
"""Lists larger than this are looked through beside the event loop."""
_CAPABILITY: dict[Kind, str] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "templates": "resources",
}


async def list_server(
    server: Server, caller: Caller
) -> tuple[Snapshot, dict[Kind, list[RawMap]], str, frozenset[Kind]]:
    """A fresh snapshot, the pages it was made of, the binding of the session that gave it, and the lists that failed.

    Raises Fault where the server cannot be reached at all. One list that fails is reported in the snapshot's problems and
    hides nothing else.
    """
    session = await server.session(caller)
    wanted = [kind for kind in KINDS if _CAPABILITY[kind] in session.capabilities]
    seconds = server.config.policy.startup_timeout_seconds
    problems: list[str] = []
    failed: set[Kind] = set()
    lists = await asyncio.gather(*(_pages(server, caller, kind, seconds, problems, failed) for kind in wanted))
    pages = dict(zip(wanted, lists, strict=True))
    make = partial(
        build,
        server.key,
        session.era,
        pages,
        capabilities=session.capabilities,
        instructions=session.instructions,
        server_info=bytes(session.server_info) if session.server_info is not None else None,
        over_http=isinstance(server.config.transport, HttpTransport),
        problems=problems,
        at=time.monotonic(),
    )
    # Thousands of definitions take a second to look through: other servers' calls go on meanwhile.
    size = sum(len(value) for each in lists for page in each for value in page.values())
    snapshot = make() if size < LARGE_BYTES else await asyncio.to_thread(make)
    return snapshot, pages, session.binding, frozenset(failed)


async def _pages(
    server: Server, caller: Caller, kind: Kind, seconds: float, problems: list[str], failed: set[Kind]
) -> list[RawMap]:
    pages: list[RawMap] = []
    items = 0
    cursor: Raw | None = None
    seen: set[bytes] = set()
    method = METHODS[kind]
    while True:
        params: RawMap = {} if cursor is None else {"cursor": cursor}
        try:
            reply = await server.request(Outgoing(method, params, caller, seconds))
        except Fault as fault:
            problems.append(f"{server.key}: {method} failed: {fault.message}")
            failed.add(kind)
            return pages
        result = messages.try_map(reply.body)
        if reply.is_error or result is None:
            code = translate.error_code(reply.body) if reply.is_error else None
            if code != codes.METHOD_NOT_FOUND:
                problems.append(f"{server.key}: {method} failed" + (f" with error {code}" if code is not None else ""))
                failed.add(kind)
            return pages
        # The pages outlive the buffer that they were read from.
        pages.append({key: Raw(bytes(value)) for key, value in result.items()})
        items += len(messages.try_list(result.get(MEMBERS[kind])) or [])
        cursor = result.get("nextCursor")
        if cursor is None or messages.try_str(cursor) is None:
            return pages
        text = bytes(cursor)
        if text in seen or len(pages) >= bounds.MAX_LIST_PAGES or items >= bounds.MAX_LIST_ITEMS:
            problems.append(f"{server.key}: {method} does not end; the first {items} items are used")
            return pages
        seen.add(text)
        cursor = Raw(text)
