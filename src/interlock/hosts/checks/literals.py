"""Secrets that stand in a file as plain text, and placeholders that were never filled in. No value leaves this module."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from interlock.hosts.checks import exposure
from interlock.hosts.checks.codes import found
from interlock.hosts.checks.references import references, without
from interlock.hosts.checks.subject import ENV, HEADERS, URL, Subject
from interlock.hosts.declaration import Problem, Spot
from interlock.hosts.entry import Entry
from interlock.manifest import secrets

MASK = "****"
_PLACEHOLDER = re.compile(
    r"<[^<>]*>|\[[A-Z_ -]+\]|(?:your|my|insert|enter|replace|change|put|add|paste)[-_ ]?(?:your|me|here|this|own|in|the)?[-_ ].*"
    r"|(?:your|replace|change)[-_]?me|changeit|todo|fixme|x{3,}(?:[-_]x+)*|\.{3,}|\*{3,}|…+"
    r"|.*your[-_ ]?(?:api|access|secret|auth|github|personal|token|key).*|(?:gh[pousr]_|sk-|xox[a-z]-)(?:x+|\.+|\*+|your.*)",
    re.IGNORECASE,
)
_DUMMY = frozenset(
    ("dummy", "test", "example", "placeholder", "none", "empty", "local", "dev", "development", "na", "n/a", "unused",
     "not-needed", "no-key", "ollama", "password", "postgres", "anonymous", "guest", "default", "auto", "file", "keyring", "env")
)  # fmt: skip
_HEADER = re.compile(r"([A-Za-z][A-Za-z0-9-]*):\s*(\S.*)\Z", re.DOTALL)


def check(subject: Subject) -> Iterator[Problem]:
    """For every entry, also of those that do not run or cannot be read: the secret stands there all the same."""
    entry, stands = subject.declaration.entry, _as_it_stands(subject.declaration.raw)
    # What the host passes over stands in the file too.
    entry = (
        replace(entry, env={**stands.env, **entry.env}, headers={**stands.headers, **entry.headers})
        if entry
        else stands
    )
    for field, spot, reason in literals(subject, entry):
        if reason is None:
            yield found("placeholder-left", f"`{field}` still holds an example's placeholder.", field=field, spot=spot)
            continue
        worse = exposure.of(subject.machine, subject.declaration.file)
        yield found(
            "literal-secret",
            f"`{field}` holds a secret as plain text ({MASK}): {reason}.",
            why=worse or "Whatever reads the file, backups too, has it.",
            field=field, spot=spot, severity="problem" if worse else None,
        )  # fmt: skip


def _as_it_stands(raw: Mapping[str, object]) -> Entry:
    """Of an entry that the host cannot read, or that only adds to another: whatever is text in the usual fields."""

    def table(names: tuple[str, ...]) -> dict[str, str]:
        tables = [value for name in names if isinstance(value := raw.get(name), dict)]
        return {str(name): value for each in tables for name, value in each.items() if isinstance(value, str)}

    command, args = raw.get("command", raw.get("cmd", "")), raw.get("args")
    words = command if isinstance(command, list) else [command, *(args if isinstance(args, list) else [])]
    url = next((value for name in URL if isinstance(value := raw.get(name), str)), None)
    return Entry(
        transport=None, command=tuple(word if isinstance(word, str) else "" for word in words), url=url, env=table(ENV),
        headers=table(HEADERS),
    )  # fmt: skip


def literals(subject: Subject, entry: Entry) -> Iterator[tuple[str, Spot, str | None]]:
    """(field, place, reason in words); the reason is None for a placeholder."""
    plain = Subject(subject.adapter, subject.machine, replace(subject.declaration, merged=None))
    for name, value in entry.env.items():
        yield from _one(*plain.env(name), value, _named(name, value))
    for name, value in entry.headers.items():
        yield from _one(*plain.header(name), value, _named(name, value))
    if entry.url is not None:
        yield from _one(*plain.url(), entry.url, secrets.url(without(entry.url)))
    for index, word in enumerate(entry.command):
        reason = argument(entry.command[index - 1], word) if index else secrets.argument(None, word)
        yield from _one(*plain.word(index), word, reason)


def _one(field: str, spot: Spot, value: str, reason: str | None) -> Iterator[tuple[str, Spot, str | None]]:
    if reason is None:
        return
    core = _core(value)
    if _PLACEHOLDER.fullmatch(core):
        yield field, spot, None
    elif core.lower() not in _DUMMY:
        yield field, spot, reason


def _core(value: str) -> str:
    """The part that would be the secret: without `NAME=`, `--flag=`, `Header:` and `Bearer`."""
    text = re.sub(r"\A-{0,2}[A-Za-z_][A-Za-z0-9_-]*=", "", value.strip())
    header = _HEADER.match(text)
    if header is not None and "//" not in text[: header.start(2) + 2]:
        text = header[2]
    return re.sub(r"\A(?:bearer|basic|token)\s+", "", text, flags=re.IGNORECASE).strip().strip("\"'")


def _named(name: str, value: str) -> str | None:
    literal = without(value)
    if literal != value:
        # What is left of `Bearer ${TOKEN}` is no secret by its name; by its form it may be.
        return f"it looks like {kind}" if (kind := secrets.known_format(literal)) else None
    if re.match(r"[./~]|[A-Za-z]:\\", value.strip()) and secrets.known_format(value) is None:
        return None  # a path to where the secret is
    return secrets.named_literal(name, value)


def argument(before: str | None, word: str) -> str | None:
    """Why one argument is, or holds, a secret."""
    literal = without(word)
    if literal != word:
        return f"it looks like {kind}" if (kind := secrets.known_format(literal)) else None
    if "://" in word and (reason := secrets.url(word.partition("=")[2] if word.startswith("-") else word)):
        return reason
    header = _HEADER.match(word.partition("=")[2] if word.startswith(("--header=", "-H=")) else word)
    if header is not None and (before in ("--header", "-H", "--headers") or word.startswith(("--header=", "-H="))):
        return secrets.named_literal(header[1], header[2])
    reason = secrets.argument(before, word)
    if reason is None and " " in word:
        inner = word.split()
        reason = next(filter(None, map(secrets.argument, [None, *inner], inner)), None)
    if reason is None and secrets.looks_random(word):
        reason = "it looks like a random key"
    return reason


def covered(text: str) -> str:
    """Any text in which something from a file may stand: a key, a name, a path. Secrets known by their form are masked."""
    return secrets.without_known(text, MASK)


def masked(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command as it may be shown: whatever is, or may be, a secret is `****`."""
    shown: list[str] = []
    for index, word in enumerate(command):
        before = command[index - 1] if index else None
        reason = argument(before, word) if index else secrets.argument(None, word)
        if reason is not None:
            line = _line(word)
            shown.append(_covered(word) if argument(before, line.replace(MASK, "")) is not None else line)
        elif index == 0:
            shown.append(word)
        elif "://" in word:
            shown.append(masked_url(word))
        else:
            shown.append(word)
    return tuple(shown)


def _line(text: str) -> str:
    """A whole command line in one word, with its secrets alone masked where they can be told from the rest."""
    words = tuple(text.split())
    return " ".join(masked(words)) if len(words) > 1 else text


def _covered(word: str) -> str:
    head = re.match(r"-{0,2}[A-Za-z_][A-Za-z0-9_-]*=|[A-Za-z][A-Za-z0-9-]*:\s", word)
    return f"{head[0] if head and secrets.known_format(head[0]) is None else ''}{MASK}"


def masked_url(url: str) -> str:
    """Without user, password, and the values of parameters; parts of the path that look random are masked."""
    match = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]*://)([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", url, re.DOTALL)
    if match is None:
        return MASK if secrets.known_format(url) or secrets.url(url) else url
    scheme, authority, path, query, _ = match.groups()
    _user, at, host = authority.rpartition("@")
    port = re.search(r"(?<=:)[^:\]\[]+\Z", host)
    if port is not None and not port[0].isdigit() and not list(references(port[0])):
        host = f"{host[: port.start()]}{MASK}"  # a password without its `@host`
    pieces = [
        MASK if not list(references(piece)) and (secrets.looks_random(piece) or secrets.known_format(piece)) else piece
        for piece in path.split("/")
    ]
    if secrets.known_format(without("/".join(pieces))):
        pieces = ["", MASK]
    shown = f"{scheme}{MASK + '@' if at else ''}{host}{'/'.join(pieces)}"
    if query:
        parts = [part.partition("=") for part in query[1:].split("&")]
        shown += "?" + "&".join(
            f"{name}{equals}{value if not value or _only_references(value) else MASK}" for name, equals, value in parts
        )
    return shown


def _only_references(text: str) -> bool:
    return without(text) == ""
