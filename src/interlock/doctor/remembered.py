"""What servers offered when they were last listed, read from Interlock's database without changing it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from interlock.catalog.naming import known_hosts
from interlock.catalog.snapshot import Snapshot, recall
from interlock.hosts.entry import Entry
from interlock.manifest.config import HttpTransport, ServerConfig, StdioTransport
from interlock.serve.runtime import config_digest
from interlock.store.interface import StoreError
from interlock.store.sqlite import SqliteStore


def recalled(home: Path, configs: Sequence[ServerConfig], host: str | None) -> dict[str, Snapshot]:
    """By server's key. Where nothing is kept, or the database cannot be read, a server is left out."""
    store = SqliteStore.for_reading(home)
    try:
        found = {}
        for config in configs:
            snapshot = _one(store, config, host)
            if snapshot is not None:
                found[config.key] = snapshot
        return found
    except StoreError:
        return {}
    finally:
        store.close()


def served(configs: Sequence[ServerConfig]) -> dict[str, Entry]:
    """What Interlock itself serves, in the words of hosts' entries, by key."""
    found = {}
    for config in configs:
        transport = config.transport
        if isinstance(transport, StdioTransport):
            found[config.key] = Entry(transport="stdio", command=tuple(transport.command))
        elif transport.endpoint is not None:
            found[config.key] = Entry(transport="http", url=transport.endpoint)
    return found


def _one(store: SqliteStore, config: ServerConfig, host: str | None) -> Snapshot | None:
    """What depends on who asks is kept by principal; the host's own comes first."""
    names = [] if host is None else [host, host.replace("-", "_")]
    names += [spelt for each in known_hosts() for spelt in (each, each.replace("_", "-"))]
    for principal in (
        *(f"host:{name}" for name in names[:2] if host),
        "",
        "local",
        *(f"host:{name}" for name in names),
    ):
        payload = store.load_catalogue(config.key, config_digest(config, principal))
        if payload is not None:
            return recall(config.key, payload, over_http=isinstance(config.transport, HttpTransport))
    return None
