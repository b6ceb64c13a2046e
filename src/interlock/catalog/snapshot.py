"""What one session of one server offers, as it was last listed: every page, repaired tool by tool, order kept."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from interlock.catalog.entry_repair import repair_entry
from interlock.catalog.header_params import HeaderParam, header_params
from interlock.catalog.schema_repair import keep_first, repair_tool
from interlock.model.names import CanonicalName
from interlock.wire import bounds, messages
from interlock.wire.eras import OWNED, Era
from interlock.wire.messages import Raw, RawMap

Kind = Literal["tools", "prompts", "resources", "templates"]
KINDS: tuple[Kind, ...] = ("tools", "prompts", "resources", "templates")
METHODS: dict[Kind, str] = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "templates": "resources/templates/list",
}
MEMBERS: dict[Kind, str] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "templates": "resourceTemplates",
}
IDENTITY: dict[Kind, str] = {"tools": "name", "prompts": "name", "resources": "uri", "templates": "uriTemplate"}
_KNOWN = frozenset({"nextCursor", "ttlMs", "cacheScope", "resultType"})


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool, prompt, resource or template. `raw` is its definition as it may be published."""

    canonical: CanonicalName
    raw: bytes
    headers: tuple[HeaderParam, ...] = ()
    read_hint: bool | None = None
    destructive_hint: bool | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """One list of one server. `extras` are result members that we know nothing of."""

    entries: dict[str, Entry] = field(default_factory=dict)
    ttl_ms: int = 0
    public: bool = False
    extras: RawMap = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One server as one session saw it. Two snapshots with the same `digest` offer the same."""

    server: str
    era: Era
    listings: dict[Kind, Listing]
    capabilities: RawMap
    instructions: str | None
    server_info: bytes | None
    problems: tuple[str, ...]
    digest: str
    at: float
    """When it was listed, on the monotonic clock; 0 for one kept from an earlier run."""
    remembered: bool = False

    @property
    def tools(self) -> dict[str, Entry]:
        return self.listings["tools"].entries


class _Hints(msgspec.Struct):
    readOnlyHint: bool | None = None
    destructiveHint: bool | None = None


class _Kept(msgspec.Struct):
    """A snapshot on disk."""

    era: str
    capabilities: dict[str, msgspec.Raw]
    instructions: str | None
    server_info: msgspec.Raw
    """`null` where there is none: msgspec reads no `Raw | None`."""
    pages: dict[str, list[msgspec.Raw]]


def build(
    server: str,
    era: Era,
    pages: dict[Kind, list[RawMap]],
    *,
    capabilities: RawMap,
    instructions: str | None,
    server_info: bytes | None,
    over_http: bool,
    problems: list[str],
    at: float,
    remembered: bool = False,
) -> Snapshot:
    """Turn the raw pages of all lists into a snapshot. Never raises for what a server sent: it reports it."""
    digest = hashlib.sha256()
    listings: dict[Kind, Listing] = {}
    for kind in KINDS:
        results = pages.get(kind, [])
        items: list[Raw] = []
        for result in results:
            items.extend(messages.try_list(result.get(MEMBERS[kind])) or [])
        if len(items) > bounds.MAX_LIST_ITEMS:
            problems.append(
                f"{server}: {METHODS[kind]} has {len(items)} items; the first {bounds.MAX_LIST_ITEMS} are used"
            )
            del items[bounds.MAX_LIST_ITEMS :]
        if kind == "tools":
            entries = _tools(server, items, "http" if over_http and era is Era.MODERN else "stdio", problems)
        else:
            entries = _others(server, kind, items, problems)
        ttls = [_ttl(result) for result in results]
        scopes = [messages.try_str(result.get("cacheScope")) == "public" for result in results]
        listings[kind] = Listing(
            entries, min(ttls, default=0), bool(scopes) and all(scopes), _extras(results[0], kind) if results else {}
        )
        for entry in entries.values():
            digest.update(entry.raw)
        digest.update(b"\0")
    digest.update((instructions or "").encode())
    return Snapshot(
        server,
        era,
        listings,
        capabilities,
        instructions,
        server_info,
        tuple(problems),
        digest.hexdigest(),
        at,
        remembered,
    )


def _ttl(result: RawMap) -> int:
    value = messages.try_json(result.get("ttlMs"))
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _extras(result: RawMap, kind: Kind) -> RawMap:
    extras = {key: value for key, value in result.items() if key not in _KNOWN and key != MEMBERS[kind]}
    meta = messages.try_map(extras.pop("_meta", None))
    if meta:
        kept = {key: value for key, value in meta.items() if key not in OWNED}
        if kept:
            extras["_meta"] = Raw(messages.write_map(kept))
    return {key: Raw(bytes(value)) for key, value in extras.items()}


def _tools(server: str, items: list[Raw], upstream: Literal["http", "stdio"], problems: list[str]) -> dict[str, Entry]:
    kept, withheld = keep_first(repair_tool(bytes(item), upstream) for item in items)
    for tool in (*withheld, *(each for each in kept if each.problems)):
        problems.extend(f"{server}/{tool.name or '(unnamed)'}: {problem}" for problem in tool.problems)
    entries: dict[str, Entry] = {}
    for tool in kept:
        if tool.raw is None:
            continue
        members = messages.try_map(tool.raw) or {}
        schema = bytes(members.get("inputSchema", b"{}"))
        read, destructive = _hints(members.get("annotations"))
        entries[tool.name] = Entry(CanonicalName(server, tool.name), tool.raw, header_params(schema), read, destructive)
    return entries


def _hints(raw: Raw | None) -> tuple[bool | None, bool | None]:
    if raw is None:
        return None, None
    try:
        hints = msgspec.json.decode(raw, type=_Hints)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None, None
    return hints.readOnlyHint, hints.destructiveHint


def _others(server: str, kind: Kind, items: list[Raw], problems: list[str]) -> dict[str, Entry]:
    assert kind != "tools"
    kept, withheld = keep_first(repair_entry(kind, bytes(item)) for item in items)
    for entry in (*withheld, *(each for each in kept if each.problems)):
        problems.extend(
            f"{server}/{entry.name or '(unnamed)'} of {METHODS[kind]}: {problem}" for problem in entry.problems
        )
    return {entry.name: Entry(CanonicalName(server, entry.name), entry.raw) for entry in kept if entry.raw is not None}


def keep(snapshot: Snapshot, pages: dict[Kind, list[RawMap]]) -> bytes:
    """The snapshot as it is stored for the next run."""
    return msgspec.json.encode(
        _Kept(
            snapshot.era.value,
            snapshot.capabilities,
            snapshot.instructions,
            Raw(snapshot.server_info if snapshot.server_info is not None else b"null"),
            {kind: [Raw(messages.write_map(page)) for page in each] for kind, each in pages.items()},
        )
    )


def recall(server: str, payload: bytes, *, over_http: bool) -> Snapshot | None:
    """A stored snapshot, or None where it cannot be read."""
    try:
        kept = msgspec.json.decode(payload, type=_Kept)
        era = Era(kept.era)
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    pages: dict[Kind, list[RawMap]] = {
        kind: [messages.try_map(page) or {} for page in kept.pages.get(kind, [])] for kind in KINDS
    }
    return build(
        server,
        era,
        pages,
        capabilities=kept.capabilities,
        instructions=kept.instructions,
        server_info=info if (info := bytes(kept.server_info)) != b"null" else None,
        over_http=over_http,
        problems=[],
        at=0.0,
        remembered=True,
    )
