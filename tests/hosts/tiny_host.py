"""A host of two files whose rules a test chooses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from interlock.hosts import registry
from interlock.hosts.adapter import Adapter, Merge, Tolerance
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry, Reading, read
from interlock.hosts.shapes import flag, text

TOLERANCE = Tolerance(
    comments=unknown("t"), trailing_comma=unknown("t"), bom=unknown("t"), duplicate_keys=unknown("t"),
    fault=Fact("file", "O"), bad_entry=Fact("entry", "O"),
)  # fmt: skip
USER, PROJECT = "/u.json", "/p.json"


def _read(raw: Mapping[str, object]) -> Entry:
    command, url = text(raw, "command"), text(raw, "url")
    if command is not None and url is not None:
        raise BadEntry("`url` does not go with `command`", "url")
    if command is None and url is None:
        raise BadEntry("it has neither")
    return Entry(
        transport="stdio" if command else "http", command=(command,) if command else (), url=url,
        enabled=flag(raw, "enabled", True),
    )  # fmt: skip


def place(path: str, rank: int, **more: object) -> Place:
    values: dict[str, object] = {
        "scope": "project" if path == PROJECT else "user", "find": lambda machine: [path], "format": "jsonc",
        "tables": (("mcpServers",),), "rank": rank, "shown": path, "known": Fact(True, "O"), **more,
    }  # fmt: skip
    return Place(**values)  # type: ignore[arg-type]


def host(merge: Merge | None = "entry", **more: object) -> Adapter:
    base = registry.find("gemini-cli")
    assert base is not None
    values: dict[str, object] = {
        "places": (place(USER, 20), place(PROJECT, 30)), "tolerance": TOLERANCE, "read": _read, "judge": None, "admit": None,
        "merge": unknown("t") if merge is None else Fact(merge, "O"), "label": "Tiny", **more,
    }  # fmt: skip
    return replace(base, **values)  # type: ignore[arg-type]


def look(root: Path, adapter: Adapter, files: Mapping[str, str]) -> Reading:
    on = Machine(platform="linux", home="/home/ada", folder="/srv", environ={}, root=str(root))
    for path, content in files.items():
        file = Path(on.real(path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode())
    return read(adapter, on)


def states(reading: Reading) -> dict[str, str]:
    return {f"{each.server} {each.file}": each.state for each in reading.declarations}
