"""What `import` and `adopt` say of imported servers: differences, secrets, and what is not carried over; no value of a secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.hosts.declaration import Spot
    from interlock.hosts.importing import Import, Imported, Left
    from interlock.hosts.machine import Machine


def lines(made: Import, machine: Machine) -> Iterator[str]:
    """For people, a paragraph for each kind."""
    from interlock.hosts.shown_paths import shortened

    for line in _paragraphs(made):
        yield shortened(line, machine)


def _paragraphs(made: Import) -> Iterator[str]:
    if made.present:
        yield "In the manifest already:"
        for server in made.present:
            assert server.existing is not None
            yield f"  {server.key} ({server.existing.origin}): {_sources(server)}"
    if made.differences:
        yield "Differences, and what was taken:"
        yield from differences(made)
    if made.secrets:
        yield "Secrets:"
        for secret in made.secrets:
            yield f"  {secret.server}: {secret.todo}"
    if made.notes:
        yield "To know:"
        for server_name, host, note in dict.fromkeys(made.notes):
            yield f"  {server_name}, {note.field} ({note.spot or label(host)}): {note.text}"
    left = list(dict.fromkeys(made.left))
    if left:
        yield "Not carried over:"
        for one in left:
            yield f"  {told(one)}"


def differences(made: Import) -> Iterator[str]:
    for each in made.differences:
        yield f"  {each.server}, {each.field}: {each.taken}"
        for host, spot, shown in each.values:
            yield f"    {label(host)} {spot}: {shown}"


def told(left: Left) -> str:
    what = f"{left.server}, {left.field}" if left.field else left.server
    who = " ".join(part for part in (label(left.host), what) if part)
    more = f". {left.todo}" if left.todo else ""
    return f"{who} ({left.spot}): {left.why}{more}" if left.spot is not None else f"{who}: {left.why}{more}"


def label(host: str) -> str:
    from interlock.hosts import registry

    return registry.label(host)


def _sources(server: Imported) -> str:
    return ", ".join(f"{label(source.declaration.host)} {source.declaration.spot}" for source in server.sources)


def as_dict(made: Import) -> dict[str, object]:
    return {
        "servers": [_server(each) for each in made.servers],
        "present": [_server(each) for each in made.present],
        "differences": [
            {
                "server": each.server, "field": each.field, "taken": each.taken,
                "values": [{"host": host, **_spot(spot), "shown": shown} for host, spot, shown in each.values],
            }
            for each in made.differences
        ],
        "secrets": [
            {
                "server": each.server, "field": each.field, "variable": each.variable, "why": each.why,
                "set": each.is_set, "moved_to": None if each.file is None else str(each.file), **_spot(each.spot),
            }
            for each in made.secrets
        ],
        "notes": [
            {"server": server, "host": host, "field": note.field, "text": note.text, "mends": note.mends, **_spot(note.spot)}
            for server, host, note in dict.fromkeys(made.notes)
        ],
        "left": [
            {
                "host": each.host, "server": each.server, "field": each.field, "why": each.why, "problem": each.problem,
                "todo": each.todo, **_spot(each.spot),
            }
            for each in dict.fromkeys(made.left)
        ],
    }  # fmt: skip


def _server(server: Imported) -> Mapping[str, object]:
    return {
        "key": server.key,
        "document": server.document or None,
        "in_manifest": None if server.existing is None else str(server.existing.origin),
        "sources": [
            {
                "host": source.declaration.host, "scope": source.declaration.scope, "server": source.name,
                "state": source.declaration.state, **_spot(source.declaration.spot),
            }
            for source in server.sources
        ],
    }  # fmt: skip


def _spot(spot: Spot | None) -> dict[str, object]:
    return {"file": spot.file if spot else None, "line": spot.line if spot else None}
