"""Variables and headers as a manifest gives them: by reference, or a literal that may be no secret."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from interlock.manifest import logical, secrets
from interlock.manifest.config import EnvValue, HeaderValue
from interlock.manifest.nodes import Scalar
from interlock.manifest.problems import Report
from interlock.manifest.showing import joined
from interlock.manifest.view import View

NO_LITERAL = "a secret must not stand in a manifest; replace it, it may have been seen"
_OUR_HEADERS = frozenset(
    (
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "accept",
        "accept-encoding",
        "te",
        "upgrade",
        "trailer",
        "keep-alive",
        "expect",
        "last-event-id",
    )
)


def header_values(headers: View, path: str, folder: Path, report: Report) -> Iterator[HeaderValue]:
    """The headers of one table, of a manifest in `folder`; names that Interlock makes itself, and secrets, are reported."""
    seen: dict[str, str] = {}
    for name, at, _node in headers.names():
        where = joined(path, name)
        lower = name.lower()
        if lower in _OUR_HEADERS or lower.startswith("mcp-"):
            report.add(
                "our-header",
                f"Interlock makes `{name}` itself.",
                write="the entry without this header",
                field=where,
                at=at,
            )
            continue
        if lower in seen:
            report.add("duplicate-field", f"`{name}` and `{seen[lower]}` are the same header.", field=where, at=at)
            continue
        seen[lower] = name
        source, file, literal, prefix = _value(headers, name, where, at, folder, report)
        if literal is not None and (not literal.isascii() or not literal.isprintable() or literal != literal.strip()):
            report.add("wrong-form", "A header's value is printable ASCII without outer spaces.", field=where, at=at)
        yield HeaderValue(name, source, literal, prefix, file)


class _Value(NamedTuple):
    source: str | None
    file: Path | None
    literal: str | None
    prefix: str


def _value(
    table: View, name: str, where: str, at: tuple[int, int], folder: Path, report: Report, *, paths: bool = False
) -> _Value:
    """What an environment variable's or header's value is made of; secrets are reported. `paths`: a literal may begin
    with `${projectRoot}`."""
    inner = table.inner(name)
    source, prefix = inner.text("fromEnv"), inner.text("prefix") or ""
    literal = inner.literal("literal") if inner.table is not None else table.literal(name)
    if literal is None:
        if prefix and secrets.known_format(prefix):
            report.add(
                "literal-secret",
                f"The prefix is refused: {NO_LITERAL}.",
                write='prefix: "Bearer "',
                field=where,
                at=at,
            )
        file = None
        if inner.has("fromFile"):
            file = secret_file(inner, f"{where}.fromFile", f"{name}: {{fromEnv: {_variable(name)}}}", folder, report)
        return _Value(source, file, None, prefix)
    example = f"{name}: {{fromEnv: {_variable(name)}}}"
    if prefix:
        report.add("contradiction", "`prefix` goes with `fromEnv` or `fromFile`.", write=example, field=where, at=at)
    path_like = paths and logical.begins(literal)
    if secrets.placeholder(literal[len(logical.PROJECT_ROOT) :] if path_like else literal):
        report.add("placeholder", "Variables are not filled in here.", write=example, field=where, at=at)
        return _Value(None, None, literal, "")
    allowed = inner.flag("notSecret") and not secrets.known_format(literal)
    reason = None if allowed else secrets.named_literal(name, literal)
    if reason:
        what = f"This literal is refused because {reason}: {NO_LITERAL}."
        write = (
            example
            if secrets.known_format(literal)
            else f"{example}; or, where it is public, {name}: {{literal: ..., notSecret: true}}"
        )
        report.add("literal-secret", what, write=write, field=where, at=at)
    return _Value(None, None, literal, "")


def secret_file(table: View, path: str, instead: str, folder: Path, report: Report) -> Path | None:
    """The `fromFile` of a table. What the file is at this moment is only warned of: it may come later, or be another
    one where the manifest is used."""
    file, at = table.text("fromFile"), table.at("fromFile")
    if file is None:
        return None
    if secrets.placeholder(file):
        what = "Variables are not filled in here."
        report.add("placeholder", what, write="fromEnv: NAME, or a path", field=path, at=at)
    elif secrets.looks_random(file) or secrets.known_format(file):
        what = f"This looks like a secret and not like a path: {NO_LITERAL}."
        report.add("literal-secret", what, write=instead, field=path, at=at)
    place = Path(os.path.normpath(folder / os.path.expanduser(file)))
    try:
        mode = place.stat().st_mode
    except (OSError, ValueError):
        if not table.has("fromEnv"):
            report.add("no-file", "There is no such file here.", field=path, at=at, severity="warning")
        return place
    if not stat.S_ISREG(mode):
        report.add("no-file", "This is no regular file.", field=path, at=at, severity="warning")
    elif sys.platform != "win32" and mode & 0o077:
        what = "Others on this machine can read this file."
        report.add("wide-file", what, write="chmod 600", field=path, at=at, severity="warning")
    return place


def _variable(name: str) -> str:
    return (
        "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name).upper().strip("_")
        or "NAME"
    )


def env_values(view: View, path: str, folder: Path, report: Report, root: Path) -> Iterator[EnvValue]:
    """`env` and `envNames` of a child process; `root` is the project's."""
    table = view.inner("env")
    seen: set[str] = set()
    for name, at, node in table.names():
        where = joined(f"{path}.env", name)
        source, file, literal, _prefix = _value(table, name, where, at, folder, report, paths=True)
        if isinstance(node, Scalar) and literal is None:
            continue
        seen.add(name)
        if literal is not None and logical.begins(literal):
            yield EnvValue(name, source, logical.expanded(literal, root), file, literal)
        else:
            yield EnvValue(name, source, literal, file)
    for index, (name, at) in enumerate(view.texts("envNames") or ()):
        if name in seen:
            report.add(
                "duplicate-field",
                f"`{name}` is declared twice.",
                write="one of the two",
                field=f"{path}.envNames[{index}]",
                at=at,
            )
            continue
        seen.add(name)
        yield EnvValue(name, source=name)
