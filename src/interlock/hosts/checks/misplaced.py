"""Right entries under a key that the host does not look under, such as `servers` where it reads `mcpServers`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from interlock.hosts.adapter import Adapter
from interlock.hosts.checks.codes import found
from interlock.hosts.declaration import Decision, Declaration, Spot
from interlock.hosts.entry import Entry
from interlock.hosts.reading import BadEntry, Reading, Seen

TABLES = ("mcpServers", "mcp_servers", "mcp-servers", "servers", "context_servers", "mcp", "extensions")
"""Where one host or another keeps its servers."""
_LAUNCHES = ("command", "cmd", "url", "serverUrl", "httpUrl", "uri")


def declarations(reading: Reading) -> Iterator[Declaration]:
    """Never read, one for each entry of such a table. What an adapter reports by itself is left to it."""
    known = {(each.file, each.spot.line, each.spot.column) for each in reading.declarations}
    done: set[str] = set()
    for seen in reading.seen:
        if seen.path in done or seen.document is None or not isinstance(seen.document.value, dict):
            continue
        if seen.place.known.value is False:
            continue  # another key would not help
        done.add(seen.path)
        read = {table[0] for each in reading.seen if each.path == seen.path for table in each.place.tables if table}
        if any(not table for each in reading.seen if each.path == seen.path for table in each.place.tables):
            continue  # the whole file is the table
        for table in TABLES:
            value = seen.document.value.get(table)
            if table in read or not isinstance(value, dict) or not value:
                continue
            entries = {str(name): raw for name, raw in value.items() if isinstance(raw, dict)}
            if not all(any(name in raw for name in _LAUNCHES) for raw in entries.values()) or not entries:
                continue
            right = next(iter(sorted(read)), "")
            for name, raw in entries.items():
                made = _never_read(reading.adapter, seen, table, right, name, raw)
                if (made.file, made.spot.line, made.spot.column) not in known:
                    yield made


def _never_read(
    adapter: Adapter, seen: Seen, table: str, right: str, name: str, raw: Mapping[str, object]
) -> Declaration:
    document = seen.document
    at = document.at(table, name) if document is not None else None
    head = document.at(table) if document is not None else None
    spot = Spot(seen.path, *(at or (0, 0)))
    entry: Entry | None
    try:
        entry = adapter.read(raw)
    except BadEntry:
        entry = None
    why = f"{adapter.label} looks under `{right}`, not under `{table}`."
    problem = found(
        "wrong-table", why, todo=f"Rename `{table}` to `{right}`.", field=table, spot=Spot(seen.path, *(head or (0, 0)))
    )
    spots = {}
    if document is not None:
        spots = {
            ".".join(str(step) for step in where[2:]): Spot(seen.path, *place)
            for where, place in document.spots.items()
            if len(where) > 2 and where[:2] == (table, name)
        }
    return Declaration(
        host=adapter.id, scope=seen.place.scope, place=seen.place, spot=spot, server=name, raw=raw, entry=entry, spots=spots,
        state="never-read", decided_by=Decision("wrong-file", spot, why), problems=[problem],
    )  # fmt: skip
