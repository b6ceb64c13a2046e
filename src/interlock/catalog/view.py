"""The catalogue as one client sees it: admitted entries under exposed names, ready to be listed and to be routed by."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from interlock.catalog.naming import NamingProfile, exposed_name
from interlock.catalog.schema_repair import for_legacy
from interlock.catalog.snapshot import IDENTITY, KINDS, MEMBERS, Entry, Kind, Snapshot
from interlock.catalog.uris import expose_uri, rewrite_resource
from interlock.manifest.config import ServerConfig
from interlock.model.decision import Answer, Decision
from interlock.wire import codes, messages
from interlock.wire.eras import Era
from interlock.wire.messages import Raw, RawMap, WireError

Admit = Callable[[ServerConfig, Kind, Entry], Decision]
"""The one admission function that list and call share; `pipeline` owns it."""
PAGE_ITEMS = 1000
"""Items on one page of ours. Hosts that do not follow cursors still see this many."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where an exposed name leads, and what admission says of it."""

    server: str
    kind: Kind
    entry: Entry
    decision: Decision


@dataclass(slots=True)
class Lists:
    """One list, ready to be sent: `items` are final bytes in order; the rest is for its result."""

    items: list[bytes] = field(default_factory=list)
    ttl_ms: int = 0
    public: bool = False
    extras: RawMap = field(default_factory=dict)


@dataclass(slots=True)
class View:
    """Built for one client's naming profile and era from one set of snapshots."""

    routes: dict[Kind, dict[str, Route]]
    hidden: dict[Kind, dict[str, Route]]
    """What admission denied, for the local trace only: clients get the same answer as for an unknown name."""
    lists: dict[Kind, Lists]
    complete: bool
    """False while servers are missing that may still appear: then nothing may be cached by the client."""
    verbatim: str | None
    """The one server whose names and URIs are passed as they are, or None."""
    instructions: str | None
    capabilities: RawMap
    generation: int
    collisions: tuple[str, ...] = ()


def build_view(
    configs: Mapping[str, ServerConfig],
    snapshots: Sequence[Snapshot],
    *,
    profile: NamingProfile,
    era: Era,
    admit: Admit,
    complete: bool,
    generation: int,
) -> View:
    """Deterministic: entries come in the order of server keys, then of the server's own list."""
    verbatim = next((key for key, config in configs.items() if config.names == "verbatim"), None)
    routes: dict[Kind, dict[str, Route]] = {kind: {} for kind in KINDS}
    hidden: dict[Kind, dict[str, Route]] = {kind: {} for kind in KINDS}
    lists: dict[Kind, Lists] = {kind: Lists() for kind in KINDS}
    collisions: list[str] = []
    ordered = sorted(snapshots, key=lambda snapshot: snapshot.server)
    for kind in KINDS:
        table, listed = routes[kind], lists[kind]
        ttls: list[int] = []
        scopes: list[bool] = []
        for snapshot in ordered:
            config = configs[snapshot.server]
            listing = snapshot.listings[kind]
            ttls.append(0 if snapshot.remembered else listing.ttl_ms)
            scopes.append(listing.public)
            for entry in listing.entries.values():
                decision = admit(config, kind, entry)
                exposed = _exposed(kind, entry, profile, verbatim == snapshot.server)
                if decision.answer is Answer.DENY:
                    hidden[kind].setdefault(exposed, Route(snapshot.server, kind, entry, decision))
                    continue
                if exposed in table:
                    # A collision of hashes: the first in canonical order stays, and the loss is told.
                    collisions.append(
                        f"{entry.canonical}: withheld, because another {kind[:-1]} is exposed as {exposed} already"
                    )
                    continue
                table[exposed] = Route(snapshot.server, kind, entry, decision)
                listed.items.append(_published(kind, entry, exposed, config, era, verbatim == snapshot.server))
        listed.ttl_ms = min(ttls, default=0) if complete else 0
        # Which tools are listed depends on the credential's host and the manifest: public only where nothing was filtered.
        listed.public = complete and verbatim is not None and bool(scopes) and all(scopes)
        if verbatim is not None and len(ordered) == 1:
            listed.extras = ordered[0].listings[kind].extras
    return View(
        routes,
        hidden,
        lists,
        complete,
        verbatim,
        _instructions(ordered, verbatim),
        _capabilities(ordered),
        generation,
        tuple(collisions),
    )


def _exposed(kind: Kind, entry: Entry, profile: NamingProfile, verbatim: bool) -> str:
    name = entry.canonical
    if verbatim:
        return name.item
    if kind in ("tools", "prompts"):
        return exposed_name(name, profile)
    return expose_uri(name.server, name.item)


def _published(kind: Kind, entry: Entry, exposed: str, config: ServerConfig, era: Era, verbatim: bool) -> bytes:
    raw = entry.raw
    if kind in ("resources", "templates"):
        return raw if verbatim else rewrite_resource(raw, entry.canonical.server)
    if kind == "tools" and era is Era.LEGACY:
        raw = for_legacy(raw)
    hide_hint = kind == "tools" and entry.read_hint is True and not declared_read(config, entry.canonical.item)
    if exposed == entry.canonical.item and not hide_hint:
        return raw
    members = messages.read_map(raw)
    members[IDENTITY[kind]] = messages.raw(exposed)
    if hide_hint:
        # Some hosts run a tool on this hint alone, so it passes only where the manifest vouches for it.
        annotations = messages.read_map(members["annotations"])
        del annotations["readOnlyHint"]
        if annotations:
            members["annotations"] = Raw(messages.write_map(annotations))
        else:
            del members["annotations"]
    return messages.write_map(members)


def declared_read(config: ServerConfig, tool: str) -> bool:
    """True where the manifest declares the tool a read. A server's own hint never counts."""
    override = config.tools.get(tool)
    return override is not None and override.read is True


def _instructions(snapshots: Sequence[Snapshot], verbatim: str | None) -> str | None:
    """Each server's words under its own name, so that none can speak for another or for Interlock."""
    spoken = [(snapshot.server, snapshot.instructions) for snapshot in snapshots if snapshot.instructions]
    if verbatim is not None:
        return spoken[0][1] if spoken else None
    return "\n\n".join(f"# Server {key}\n{text}" for key, text in spoken) or None


def _capabilities(snapshots: Sequence[Snapshot]) -> RawMap:
    """Members of the servers' capabilities that we know nothing of, such as extensions; the first server's word stands."""
    merged: RawMap = {}
    for snapshot in snapshots:
        for key, value in snapshot.capabilities.items():
            if key not in ("tools", "prompts", "resources", "logging", "completions"):
                merged.setdefault(key, value)
    return merged


def page(view: View, kind: Kind, cursor: Raw | None, *, era: Era, server_info: bytes) -> bytes:
    """One page of a list as a result. Raises WireError (-32602) for a cursor that is not ours.

    The cursor holds a position and the list's name, so it stays good when the list changes a little; it names no server.
    """
    start = 0
    if cursor is not None:
        start = _position(cursor, kind)
    listed = view.lists[kind]
    items = listed.items[start : start + PAGE_ITEMS]
    parts = [b'{"', MEMBERS[kind].encode(), b'":[', b",".join(items), b"]"]
    end = start + len(items)
    if end < len(listed.items):
        parts.append(b',"nextCursor":' + messages.encode(_cursor(kind, end)))
    extras = listed.extras
    meta = extras.get("_meta")
    for key, value in extras.items():
        if key != "_meta":
            parts.append(b"," + messages.encode(key) + b":" + bytes(value))
    if era is Era.MODERN:
        scope = b"public" if listed.public else b"private"
        parts.append(b',"resultType":"complete","ttlMs":%d,"cacheScope":"%s"' % (listed.ttl_ms, scope))
        inner = bytes(meta)[1:-1] + b"," if meta is not None else b""
        parts.append(b',"_meta":{' + inner + b'"io.modelcontextprotocol/serverInfo":' + server_info + b"}")
    elif meta is not None:
        parts.append(b',"_meta":' + bytes(meta))
    parts.append(b"}")
    return b"".join(parts)


def _cursor(kind: Kind, position: int) -> str:
    return base64.urlsafe_b64encode(f"{kind}:{position}".encode()).decode("ascii").rstrip("=")


def _position(cursor: Raw, kind: Kind) -> int:
    text = messages.try_str(cursor)
    try:
        plain = base64.urlsafe_b64decode((text or "") + "=" * (-len(text or "") % 4)).decode("ascii")
        name, _, position = plain.partition(":")
        if (
            text is not None
            and name == kind
            and position.isdecimal()
            and len(position) < 10
            and text == _cursor(kind, int(position))
        ):
            return int(position)
    except (binascii.Error, UnicodeDecodeError, ValueError):
        pass
    raise WireError(codes.INVALID_PARAMS, "Invalid cursor: start again without one", slug="invalid-cursor")
