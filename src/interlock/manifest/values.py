"""Variables and headers as a manifest gives them: by reference, or a literal that may be no secret."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.manifest import secrets
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


def header_values(headers: View, path: str, report: Report) -> Iterator[HeaderValue]:
    """The headers of one table; names that Interlock makes itself, and secrets, are reported."""
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
        source, literal, prefix = _value(headers, name, where, at, report)
        if literal is not None and (not literal.isascii() or not literal.isprintable() or literal != literal.strip()):
            report.add("wrong-form", "A header's value is printable ASCII without outer spaces.", field=where, at=at)
        yield HeaderValue(name, source, literal, prefix)


def _value(
    table: View, name: str, where: str, at: tuple[int, int], report: Report
) -> tuple[str | None, str | None, str]:
    """(variable, literal, prefix) of an environment variable or header; secrets are reported."""
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
        return source, None, prefix
    example = f"{name}: {{fromEnv: {_variable(name)}}}"
    if prefix:
        report.add("contradiction", "`prefix` goes with `fromEnv`.", write=example, field=where, at=at)
    if secrets.placeholder(literal):
        report.add("placeholder", "Variables are not filled in here.", write=example, field=where, at=at)
        return None, literal, ""
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
    return None, literal, ""


def _variable(name: str) -> str:
    return (
        "".join(letter if letter.isalnum() and letter.isascii() else "_" for letter in name).upper().strip("_")
        or "NAME"
    )


def env_values(view: View, path: str, report: Report) -> Iterator[EnvValue]:
    """`env` and `envNames` of a child process."""
    table = view.inner("env")
    seen: set[str] = set()
    for name, at, node in table.names():
        source, literal, _prefix = _value(table, name, joined(f"{path}.env", name), at, report)
        if isinstance(node, Scalar) and literal is None:
            continue
        seen.add(name)
        yield EnvValue(name, source, literal)
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
