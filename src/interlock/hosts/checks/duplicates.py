"""The same server more than once: in several hosts, under two keys of one host, or both behind Interlock and past it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import urlsplit

from interlock.hosts.checks.codes import found
from interlock.hosts.checks.launching import launch, name_of, package
from interlock.hosts.checks.literals import masked
from interlock.hosts.checks.subject import Subject
from interlock.hosts.declaration import Declaration, Problem
from interlock.hosts.entry import Entry
from interlock.hosts.ours import ours

Identity = tuple[str, ...]
Told = Iterator[tuple[Declaration, Problem]]


def identity(entry: Entry) -> Identity | None:
    """What makes two entries the same server, whatever version, options or secrets each gives it."""
    if entry.url is not None and not entry.command:
        return _address(entry.url)
    fetched = package(entry.command)
    if fetched is not None and fetched.name == "mcp-remote":
        url = next((word for word in entry.command[fetched.index + 1 :] if "://" in word), None)
        return _address(url) if url is not None else None
    if fetched is not None:
        name = fetched.name.lower()
        if fetched.runner == "python":
            name = name.replace("_", "-")
        words = [word for word in entry.command[fetched.index + 1 :] if not word.startswith("-")]
        # Two file servers for two folders are two servers; what follows an image is for the server inside.
        return (fetched.runner, name, *(masked(tuple(words)) if fetched.runner != "container" else ()))
    start = launch(entry.command)
    if start is None:
        return None
    return ("command", name_of(start.program), *start.args)


def _address(url: str) -> Identity | None:
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:  # a variable in the place of the port, too
        return None
    if not parts.hostname:
        return None
    host = parts.hostname.lower()
    return ("url", f"{host}{port}", parts.path.rstrip("/"))


def across(subjects: Sequence[Subject]) -> Told:
    """One server in several hosts of one machine."""
    groups: dict[Identity, list[tuple[Subject, Entry]]] = {}
    for subject in subjects:
        entry = subject.declaration.runs
        if entry is None or subject.contributes or subject.declaration.state in ("broken", "never-read", "shadowed"):
            continue
        if ours(entry) == "connect":
            continue
        same = identity(entry)
        if same is not None:
            groups.setdefault(same, []).append((subject, entry))
    for group in groups.values():
        # One entry of one file that several hosts read is no copy.
        readers: dict[object, list[str]] = {}
        for subject, _ in group:
            readers.setdefault(_place(subject.declaration), []).append(subject.adapter.id)
        hosts = list(dict.fromkeys(subject.adapter.id for subject, _ in group))
        differs = differences([entry for _, entry in group], [subject.declaration for subject, _ in group])
        how = f"; they differ in {', '.join(differs)}" if differs else "; all say the same"
        for subject, _ in group:
            others = [host for host in hosts if host not in readers[_place(subject.declaration)]]
            if others:
                yield (
                    subject.declaration,
                    found("duplicate-server", f"Also in {', '.join(others)}{how}.", spot=subject.declaration.spot),
                )


def _place(declaration: Declaration) -> object:
    return declaration.file, declaration.spot.line, declaration.server


def differences(entries: Sequence[Entry], declarations: Sequence[Declaration]) -> list[str]:
    """In words, and without values."""
    found: list[str] = []
    pairs: list[tuple[str, set[object]]] = [
        ("name", {each.server for each in declarations}),
        ("on or off", {each.enabled and declaration.state != "disabled"
                       for each, declaration in zip(entries, declarations, strict=True)}),
        ("version", {fetched.version if (fetched := package(each.command)) is not None else None for each in entries}),
        ("options", {tuple(word for word in each.command if word.startswith("-") and word not in ("-y", "--yes"))
                     for each in entries}),
        ("names of variables", {frozenset((*each.env, *each.env_names)) for each in entries}),
        ("names of headers", {frozenset(name.lower() for name in (*each.headers, *each.header_names)) for each in entries}),
        ("values of variables", _clashing([each.env for each in entries])),
        ("tools allowed", {each.allow for each in entries}),
        ("tools denied", {each.deny for each in entries}),
    ]  # fmt: skip
    for what, values in pairs:
        if len(values) > 1:
            found.append(what)
    return found


def _clashing(tables: Sequence[Mapping[str, str]]) -> set[object]:
    """One element where all agree on the names that they share; the values stay here."""
    for name in {name for table in tables for name in table}:
        if len({table[name] for table in tables if name in table}) > 1:
            return {True, False}
    return {True}


def within(subjects: Sequence[Subject]) -> Told:
    """One command under two keys of one host: both run."""
    groups: dict[object, list[Subject]] = {}
    for subject in subjects:
        entry = subject.runs
        if entry is None or subject.declaration.state != "effective":
            continue
        what = entry.command or (entry.url,)
        if not any(what):
            continue
        key = (what, tuple(sorted(entry.env.items())), tuple(sorted(entry.headers.items())), entry.cwd)
        groups.setdefault(key, []).append(subject)
    for group in groups.values():
        names = list(dict.fromkeys(each.declaration.server for each in group))
        if len(names) < 2:
            continue
        for subject in group:
            others = ", ".join(f"`{name}`" for name in names if name != subject.declaration.server)
            yield (
                subject.declaration,
                found("same-command-twice", f"Exactly this also runs as {others}.", spot=subject.declaration.spot),
            )


def direct(subjects: Sequence[Subject], served: Mapping[str, Entry]) -> Told:
    """Entries of one host past the Interlock that the same host starts. `served`: what the manifest has, by key."""
    through = [each for each in subjects if (entry := each.runs) is not None and ours(entry) == "connect"]
    if not through or not served:
        return
    known = {same: key for key, entry in served.items() if (same := identity(entry)) is not None}
    for subject in subjects:
        entry = subject.runs
        if entry is None or ours(entry) == "connect":
            continue
        key = known.get(identity(entry) or ())
        if key is not None:
            yield (
                subject.declaration,
                found(
                    "also-direct",
                    f"Interlock serves this host the same server as `{key}`.",
                    spot=subject.declaration.spot,
                ),
            )
