"""Scopes put together: the highest scope's whole entry wins a key, and a deny of user or managed scope always holds.

No I/O here. Everything that cannot be read is taken at its worst: an entry is not started where a higher scope's entry
for its key is broken, or where a deny that should hold cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from interlock.manifest.config import Origin, Rule, Scope, ServerConfig
from interlock.manifest.problems import Problem, Severity

_RANK: Mapping[Scope, int] = {"managed": 0, "named": 1, "project": 1, "user": 2}
_GUARDED = frozenset[Scope](("managed", "user"))
"""Scopes whose denies always hold."""


@dataclass(frozen=True, slots=True)
class Declared:
    """An entry as it stands in one file. `serve` False: only its denies count (`--manifest` names other files)."""

    config: ServerConfig
    serve: bool = True


@dataclass(frozen=True, slots=True)
class Broken:
    """A document with errors, and what could be read of it. `denies` None: there may be some that nobody can read."""

    scope: Scope
    origin: Origin
    key: str | None
    integration_id: str | None
    denies: tuple[Rule, ...] | None
    serve: bool = True


@dataclass(frozen=True, slots=True)
class Merged:
    servers: Mapping[str, ServerConfig]
    """In key order."""
    problems: tuple[Problem, ...]


def merge(declared: Sequence[Declared], broken: Sequence[Broken]) -> Merged:
    """`declared` in the order of files and documents: within one scope the first of a key stays."""
    problems: list[Problem] = []
    winners: dict[str, ServerConfig] = {}
    for entry in sorted((entry for entry in declared if entry.serve), key=lambda entry: _RANK[entry.config.scope]):
        config = entry.config
        winner = winners.get(config.key)
        if winner is None:
            winners[config.key] = config
        elif _RANK[winner.scope] == _RANK[config.scope]:
            problems.append(_duplicate(winner, config))
        else:
            problems.append(_replaced(winner, config))
    servers = {key: _guarded(winners[key], declared, broken) for key in sorted(winners)}
    return Merged(servers, tuple(problems))


def _duplicate(winner: ServerConfig, other: ServerConfig) -> Problem:
    if winner.integration_id == other.integration_id:
        what = f"`{other.integration_id}` is declared twice; the first is at {winner.origin}."
        write = "one of the two"
    else:
        what = f"The key `{other.key}` is taken by `{winner.integration_id}` at {winner.origin}."
        write = f"key: {other.integration_id.replace('/', '.').replace('.', '-')}"
    return Problem(other.origin.file, other.origin.line, 1, "key", what, write, "error", "duplicate-key")


def _replaced(winner: ServerConfig, other: ServerConfig) -> Problem:
    same = winner.integration_id == other.integration_id
    what = f"The {winner.scope} entry `{winner.key}` replaces the {other.scope} entry at {other.origin} as a whole" + (
        "." if same else f", although that one is another server (`{other.integration_id}`)."
    )
    write = "" if same else "a `key` in one of the two, if both are wanted"
    severity: Severity = "note" if same or winner.scope == "managed" else "warning"
    return Problem(winner.origin.file, winner.origin.line, 1, "key", what, write, severity, "replaced")


def _guarded(config: ServerConfig, declared: Iterable[Declared], broken: Iterable[Broken]) -> ServerConfig:
    """The winner with all denies that hold for it, blocked where they or its own standing cannot be known."""
    rules = list(config.deny)
    reasons = [config.blocked] if config.blocked else []
    for entry in declared:
        other = entry.config
        if other.scope not in _GUARDED or other is config:
            continue
        # In one scope two entries of one id are two on purpose (two accounts, say), each with its own denies.
        if other.key == config.key or (other.scope != config.scope and other.integration_id == config.integration_id):
            rules += other.deny
    for lost in broken:
        anonymous = lost.key is None and lost.integration_id is None
        if lost.scope == config.scope:
            continue
        if anonymous:
            if (
                lost.scope in _GUARDED
                and lost.denies is None
                and (_RANK[lost.scope] < _RANK[config.scope] or config.scope not in _GUARDED)
            ):
                reasons.append(f"{_at(lost.origin)} cannot be read, and it may deny tools of this server")
            continue
        if not _same(config, lost.key, lost.integration_id):
            continue
        if lost.serve and lost.key == config.key and _RANK[lost.scope] < _RANK[config.scope]:
            reasons.append(
                f"the {lost.scope} entry for `{config.key}` at {_at(lost.origin)} has errors, and it comes first"
            )
        if lost.scope in _GUARDED:
            if lost.denies is None:
                reasons.append(f"the denies of the {lost.scope} entry at {_at(lost.origin)} cannot be read")
            else:
                rules += lost.denies
    unique = dict.fromkeys(rules)
    return replace(config, deny=tuple(unique), blocked="; ".join(dict.fromkeys(reasons)) or None)


def _same(config: ServerConfig, key: str | None, integration_id: str | None) -> bool:
    """By key or by id: a new key must not be a way around a deny."""
    return config.key == key or config.integration_id == integration_id


def _at(origin: Origin) -> str | Path:
    return f"{origin.file}:{origin.line}" if origin.line else origin.file
