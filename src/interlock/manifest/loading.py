"""Manifests from their places to one Gateway: read, check, merge the scopes, and hold back what nobody trusted."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from interlock.manifest import trust
from interlock.manifest.checking import check
from interlock.manifest.config import Gateway, Origin, Scope, ServerConfig
from interlock.manifest.entry import build, default_key, denies, identity
from interlock.manifest.launch import launch_plan
from interlock.manifest.merge import Broken, Declared, merge
from interlock.manifest.nodes import MAX_BYTES, Chunk, Node, Table, chunks
from interlock.manifest.places import (
    FILE_NAME,
    MAX_FILES,
    files_of,
    find_project_manifest,
    managed_folder,
    platform_name,
)
from interlock.manifest.problems import Problem, Report
from interlock.manifest.transports import Context
from interlock.manifest.view import View

__all__ = ["Loaded", "find_project_manifest", "load"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found. `gateway.servers` holds the entries that are right, also those that may not start (`blocked`)."""

    gateway: Gateway
    problems: tuple[Problem, ...]
    trusts: tuple[trust.Trust, ...] = ()
    """The standing of each file that declares servers to serve."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.severity == "error")


@dataclass(frozen=True, slots=True)
class _Source:
    place: Path
    scope: Scope
    serve: bool = True
    asked: bool = False
    """Named by the person: then it is an error where it does not exist."""


@dataclass(slots=True)
class _Reading:
    """Everything read so far."""

    environ: Mapping[str, str]
    platform: str
    declared: list[Declared] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    contents: list[tuple[Path, bytes]] = field(default_factory=list)


def load(
    *,
    manifests: Sequence[Path],
    home: Path,
    project_root: Path | None,
    trusted_hashes: Collection[str] = (),
    environ: Mapping[str, str] | None = None,
    platform: str | None = None,
    managed_dir: Path | None = None,
) -> Loaded:
    """Read the named `manifests`, or, without any, the managed, project and user scope.

    `project_root` is where the search for the project's manifest begins (the working directory, as a rule); None: there
    is no project. `platform` is windows, linux or macos. Never raises for what stands in a file or for a file that
    cannot be read: that becomes a Problem, and everything else still loads.
    """
    environ = os.environ if environ is None else environ
    platform = platform_name() if platform is None else platform
    managed = managed_folder(environ, platform) if managed_dir is None else managed_dir
    reading = _Reading(environ, platform)
    seen: set[Path] = set()
    for source in _sources(manifests, home, project_root, managed):
        for file in _files(source, reading):
            real = Path(os.path.realpath(file))
            if real not in seen:
                seen.add(real)
                _read_file(file, source, reading)
    return _put_together(reading, home, trusted_hashes)


def _sources(manifests: Sequence[Path], home: Path, project_root: Path | None, managed: Path) -> Iterator[_Source]:
    user = Path(os.path.abspath(home / FILE_NAME))
    managed = Path(os.path.abspath(managed))
    for path in manifests:
        yield _Source(Path(os.path.abspath(path)), _scope_of(path, user, managed), asked=True)
    serve = not manifests
    yield _Source(managed, "managed", serve)
    if serve and project_root is not None:
        project = find_project_manifest(project_root)
        if project is not None and os.path.realpath(project) != os.path.realpath(user):
            yield _Source(project, "project")
    yield _Source(user, "user", serve)


def _scope_of(path: Path, user: Path, managed: Path) -> Scope:
    """A manifest named by `--manifest` that is the user's or the administrator's own keeps that standing."""
    real = Path(os.path.realpath(path))
    if real.is_relative_to(os.path.realpath(managed)):
        return "managed"
    return "user" if real.is_relative_to(os.path.realpath(user)) else "named"


def _files(source: _Source, reading: _Reading) -> Iterable[Path]:
    report = Report(source.place)
    try:
        exists = source.place.exists()
        files = files_of(source.place) if exists else []
    except OSError as fault:
        report.add("unreadable", f"This cannot be read: {fault.strerror or type(fault).__name__}.")
        reading.problems += report.problems
        reading.broken.append(Broken(source.scope, Origin(source.place, 0), None, None, None, source.serve))
        return ()
    if not exists and source.asked:
        report.add("not-found", "There is no such file or folder.", write="the path of a manifest (interlock.yaml)")
    elif source.asked and not files:
        report.add(
            "not-found",
            "There is no *.yaml or *.yml file in this folder.",
            write="one file for each server, or one interlock.yaml",
        )
    if len(files) > MAX_FILES:
        report.add("too-many", f"There are more than {MAX_FILES} files here; the others are not read.")
        reading.broken.append(Broken(source.scope, Origin(source.place, 0), None, None, None, source.serve))
    reading.problems += report.problems
    return files[:MAX_FILES]


def _read_file(file: Path, source: _Source, reading: _Reading) -> None:
    report = Report(file)
    content = _content(file, report)
    if content is not None:
        reading.contents.append((file, content))
    text = None if content is None else _decoded(content, report)
    if text is None:
        # Nobody knows what it says, so it may hold denies.
        reading.broken.append(Broken(source.scope, Origin(file, 0), None, None, None, source.serve))
    else:
        any_document = False
        for chunk in chunks(text):
            any_document = True
            _read_document(chunk, file, source, report, reading)
        if not any_document:
            report.add(
                "no-document",
                "This file declares no server.",
                write="schemaVersion: agent-routing/v1 ...",
                severity="warning",
            )
    if not source.serve:
        # The files that were named are what this run is about; the others only lend their denies.
        report.problems = [
            replace(problem, severity="warning") if problem.severity == "error" else problem
            for problem in report.problems
        ]
    reading.problems += report.problems


def _content(file: Path, report: Report) -> bytes | None:
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            report.add("unreadable", "This is not a regular file.")
            return None
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except OSError as fault:
        report.add("unreadable", f"This cannot be read: {fault.strerror or type(fault).__name__}.")
        return None
    if len(content) > MAX_BYTES:
        report.add(
            "too-large",
            f"This file is larger than {MAX_BYTES // 1024} KiB.",
            write="a folder with several smaller files",
        )
        return None
    return content


def _decoded(content: bytes, report: Report) -> str | None:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        line = content.count(b"\n", 0, fault.start) + 1
        report.add("not-utf8", "This file is not UTF-8 text.", write="the same text, saved as UTF-8", at=(line, 1))
        return None


def _read_document(chunk: Chunk, file: Path, source: _Source, report: Report, reading: _Reading) -> None:
    from interlock.manifest.parsing import parse  # here, because it imports the YAML library

    before, listed = report.errors, len(report.problems)
    parsed = parse(chunk)
    for fault in parsed.faults:
        report.add(fault.code, fault.what, write=fault.write, at=fault.at)
    root: Node | None = parsed.root
    if root is not None:
        check(root, report)
    elif not parsed.faults:
        return
    document = View(root if isinstance(root, Table) else None)
    config: ServerConfig | None = None
    if report.errors == before:
        config = build(document, Context(file, source.scope, reading.platform, reading.environ), report)
    if config is not None:
        reading.declared.append(Declared(config, source.serve))
        return
    key, integration_id = identity(document) if root is not None else _guessed_identity(chunk.text)
    rules = denies(document, file) if root is not None and not parsed.faults else None
    if not _may_deny(chunk.text):
        rules = ()
    elif not rules and any(problem.code == "unknown-field" for problem in report.problems[listed:]):
        rules = None  # the misspelt field may be the one that denies
    reading.broken.append(
        Broken(source.scope, Origin(file, chunk.first_line), key, integration_id, rules, source.serve)
    )


def _may_deny(text: str) -> bool:
    """Whether a document may hold a deny, however it is spelt: `denny`, or written with escapes."""
    return "den" in text.lower() or "\\" in text


def _guessed_identity(text: str) -> tuple[str | None, str | None]:
    """Of a document that is not YAML: what names it, where the line stands plainly."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        word = value.split(" #")[0].strip().strip("\"'")
        if colon and name in ("key", "integrationId") and word:
            found.setdefault(name, word)
    integration_id = found.get("integrationId")
    return found.get("key") or (default_key(integration_id) if integration_id else None), integration_id


def _put_together(reading: _Reading, home: Path, trusted_hashes: Collection[str]) -> Loaded:
    merged = merge(reading.declared, reading.broken)
    stored = trust.Stored({})
    if any(entry.serve and entry.config.scope in ("named", "project") for entry in reading.declared):
        stored = trust.read(home)
    problems = reading.problems + list(merged.problems)
    if stored.fault is not None:
        problems.append(
            Problem(
                home / trust.STORE_NAME, 0, 0, "", f"This is ignored: {stored.fault}.", "", "warning", "trust-store"
            )
        )
    trusts = tuple(_trusts(reading, stored, trusted_hashes))
    reasons = {each.file: each.reason for each in trusts}
    servers = {key: _blocked(config, reasons.get(config.origin.file)) for key, config in merged.servers.items()}
    enabled = [config for config in servers.values() if config.enabled]
    for config in enabled:
        if config.names == "verbatim" and len(enabled) > 1:
            what = f"`verbatim` is possible for a single server only, and {len(enabled)} are enabled."
            problems.append(
                Problem(
                    config.origin.file,
                    config.origin.line,
                    1,
                    "names",
                    what,
                    "names: prefixed",
                    "error",
                    "verbatim-with-others",
                )
            )
            servers[config.key] = _blocked(config, "`names: verbatim` is possible for a single server only")
    problems.sort(key=lambda problem: (str(problem.file), problem.line, problem.column))
    notes = [f"{problem.file}:{problem.line}: {problem.what}" for problem in problems if problem.code == "replaced"]
    notes += [
        f"{config.key}: accepted but not enforced in this release: {', '.join(config.unenforced)}"
        for config in servers.values()
        if config.unenforced
    ]
    files = tuple(file for file, _content in reading.contents)
    gateway = Gateway(servers, files, trust.configuration_digest(reading.contents), tuple(notes))
    return Loaded(gateway, tuple(problems), trusts)


def _trusts(reading: _Reading, stored: trust.Stored, trusted_hashes: Collection[str]) -> Iterator[trust.Trust]:
    """One for each file, over all of its enabled entries: also over those that a higher scope replaces."""
    by_file: dict[Path, list[ServerConfig]] = {}
    for entry in reading.declared:
        if entry.serve:
            by_file.setdefault(entry.config.origin.file, []).append(entry.config)
    for file, configs in by_file.items():
        plans = [launch_plan(config, reading.environ) for config in configs if config.enabled]
        yield trust.standing(file, configs[0].scope, plans, stored, trusted_hashes)


def _blocked(config: ServerConfig, reason: str | None) -> ServerConfig:
    if reason is None:
        return config
    return replace(config, blocked="; ".join(filter(None, (config.blocked, reason))))
