"""Which manifests a person has trusted to start things, and with which plans: `trust.json` in Interlock's home."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from interlock.manifest.config import Scope
from interlock.manifest.launch import LaunchPlan, plan_hash
from interlock.manifest.places import kept_by_owner

How = Literal["scope", "packaged", "hash", "stored", "empty", "changed", "never", "writable"]
"""Why a file is trusted (scope, packaged, hash, stored, empty) or is not (changed, never, writable)."""

STORE_NAME = "trust.json"


@dataclass(frozen=True, slots=True)
class Trust:
    """One manifest file's standing. `plans` are of its enabled entries; `hash` covers them all."""

    file: Path
    hash: str
    plans: tuple[LaunchPlan, ...]
    how: How

    @property
    def trusted(self) -> bool:
        return self.how in ("scope", "packaged", "hash", "stored", "empty")

    @property
    def reason(self) -> str | None:
        """Why its servers may not start, and what to do; None where they may."""
        look = f"look at it with `interlock trust {self.file}`"
        if self.how == "never":
            return f"its manifest is not trusted yet: {look}"
        if self.how == "changed":
            return f"what {self.file} would run has changed since it was trusted: {look}"
        if self.how == "writable":
            return f"{self.file} or its folder can be changed by other users: own it, and take away `o+w`"
        return None


@dataclass(frozen=True, slots=True)
class Record:
    """What trust.json holds of one manifest: the hash, each server's own, and when."""

    hash: str
    servers: Mapping[str, str]
    at: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of trust.json. `fault` says why nothing in it counts."""

    records: Mapping[str, Record]
    fault: str | None = None


def server_hash(plan: LaunchPlan) -> str:
    """The hash of one server's plan alone, to say later which of a file's servers changed."""
    return plan_hash([plan])


def read(home: Path) -> Stored:
    """Never raises. A file that is broken, or that others can write, counts as empty."""
    path = home / STORE_NAME
    try:
        if not path.exists():
            return Stored({})
        if not kept_by_owner(path):
            return Stored({}, "other users can change it or its folder, so nothing in it counts")
        content: object = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as fault:
        return Stored({}, f"it cannot be read ({type(fault).__name__}), so nothing in it counts")
    manifests = content.get("manifests") if isinstance(content, dict) and content.get("version") == 1 else None
    if not isinstance(manifests, dict):
        return Stored({}, "it is not in the form of this release, so nothing in it counts")
    records: dict[str, Record] = {}
    for name, value in manifests.items():
        if isinstance(name, str) and isinstance(value, dict) and isinstance(value.get("hash"), str):
            servers = value.get("servers")
            pairs = servers.items() if isinstance(servers, dict) else ()
            records[name] = Record(
                value["hash"], {k: v for k, v in pairs if isinstance(v, str)}, str(value.get("at", ""))
            )
    return Stored(records)


def standing(
    file: Path, scope: Scope, plans: Sequence[LaunchPlan], stored: Stored, trusted_hashes: Collection[str]
) -> Trust:
    """Whether this file's servers may start. `file` is absolute."""
    digest = plan_hash(plans)
    return Trust(file, digest, tuple(plans), _how(file, scope, digest, bool(plans), stored, trusted_hashes))


def _how(file: Path, scope: Scope, digest: str, any_plan: bool, stored: Stored, trusted_hashes: Collection[str]) -> How:
    if not any_plan:
        return "empty"
    if digest in trusted_hashes:
        return "hash"
    if packaged(file):
        return "packaged"
    if scope in ("managed", "user"):
        try:
            return "scope" if kept_by_owner(file) else "writable"
        except OSError:
            return "writable"
    record = stored.records.get(str(file))
    if record is None:
        return "never"
    return "stored" if record.hash == digest else "changed"


def packaged(file: Path) -> bool:
    """Whether the file came with Interlock itself (the demo's manifest): then it is as trusted as the program."""
    import interlock

    return file.resolve().is_relative_to(Path(interlock.__file__).resolve().parent)


def remember(home: Path, trusts: Sequence[Trust]) -> Path:
    """Write these files' plans as trusted. Atomic, 0600, and safe beside another `interlock trust`.

    A trust.json that cannot be read is kept aside under another name first. Raises OSError where it cannot be written.
    """
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = home / STORE_NAME
    with _locked(home / "trust.lock"):
        stored = read(home)
        if stored.fault is not None and path.exists():
            path.replace(home / f"{STORE_NAME}.unreadable-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}")
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        records = dict(stored.records)
        for trust in trusts:
            records[str(trust.file)] = Record(trust.hash, {plan.key: server_hash(plan) for plan in trust.plans}, now)
        manifests = {
            name: {"hash": record.hash, "servers": dict(record.servers), "at": record.at}
            for name, record in sorted(records.items())
        }
        _write(path, json.dumps({"version": 1, "manifests": manifests}, indent=2) + "\n")
    return path


def _write(path: Path, text: str) -> None:
    # mkstemp makes the file 0600 from the start; the rename replaces the old one in one step.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(handle, msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def configuration_digest(contents: Sequence[tuple[Path, bytes]]) -> str:
    """SHA-256 over all files and their content, each with its length so that no two sets are written the same."""
    digest = hashlib.sha256()
    for file, content in contents:
        name = os.fsencode(file)
        digest.update(b"%d %d\n" % (len(name), len(content)))
        digest.update(name)
        digest.update(content)
    return digest.hexdigest()
