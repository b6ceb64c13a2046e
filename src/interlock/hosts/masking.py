"""Text of a person's file with its secrets blacked out, for showing a change.

Two nets: what the file's own structure says (a variable called API_TOKEN), and what a text looks like by itself wherever it
stands, comments included. A reference such as `${TOKEN}` is no secret.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Collection, Iterable, Iterator

from interlock.hosts.place import Format
from interlock.hosts.reading import parse
from interlock.hosts.text.document import Damaged
from interlock.manifest import secrets

MASK = "****"

_REFERENCE = re.compile(r"\$\{|\$env:|\{(?:env|file):|\$\{\{|%[A-Za-z_][A-Za-z0-9_]*%|\$[A-Za-z_][A-Za-z0-9_]*\Z")
_PIECE = re.compile(r"[^\s\"'`,;()\[\]{}<>]{12,}")
_PAIR = re.compile(
    r"""(?P<name>[A-Za-z_][\w.-]*)["']?\s*[:=]\s*(?P<quote>["']?)(?P<value>[^"'\s,}\]#]{4,})(?P=quote)"""
)
_BEARER = re.compile(r"((?i:bearer|basic)\s+)([A-Za-z0-9._~+/=-]{8,})")


_NAMES = frozenset(("env_http_headers", "bearer_token_env_var", "env_vars", "env_keys", "envVars"))
"""Fields that hold names of variables and no values: what stands there is shown, whatever it is the name of."""


_TABLES = frozenset(("env", "environment", "envs", "headers", "http_headers"))
_LINES = frozenset(("command", "cmd", "headersHelper", "http_headers_helper"))
"""Texts that are a whole command line."""


def _may_be_secret(text: str) -> bool:
    """Of a variable's or a header's value, whatever it is called: letters and digits, and neither a place nor a sentence."""
    return (
        len(text) >= 8
        and not re.search(r"[\s/\\]", text)
        and re.search(r"[A-Za-z]", text) is not None
        and re.search(r"[0-9]", text) is not None
        and not is_reference(text)
    )


def is_reference(text: str) -> bool:
    return bool(_REFERENCE.search(text))


def secret_texts(value: object) -> Iterator[str]:
    """Every text in a parsed file that is or holds a secret, by its name, its neighbour or its form."""
    yield from _walk("", value)


def _walk(name: str, value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in _NAMES:
                continue
            if secrets.known_format(str(key)):
                yield str(key)
            if key in _TABLES and isinstance(inner, dict):
                yield from (text for text in inner.values() if isinstance(text, str) and _may_be_secret(text))
            yield from _walk(str(key), inner)
    elif isinstance(value, list):
        before: str | None = None
        for item in value:
            if isinstance(item, str):
                if not is_reference(item) and secrets.argument(before, item):
                    yield from _held(item)
                before = item
            else:
                before = None
            yield from _walk(name if not isinstance(item, dict) else "", item)
    elif isinstance(value, str) and value and not is_reference(value):
        reason = secrets.named_literal(name, value) or ("://" in value and secrets.url(value))
        if reason or (name in _LINES and secrets.argument(None, value)):
            yield from _held(value)


def _held(text: str) -> Iterator[str]:
    """The secret alone where it stands behind `=` or a word such as `Bearer`, so that the rest stays readable."""
    name, equals, value = text.partition("=")
    bearer = _BEARER.search(text)
    if bearer is not None:
        yield bearer[2]
    elif equals and value and "://" not in text and secrets.secret_name(name):
        yield value
    else:
        yield text


def _variable_names(value: object, inside: bool = False) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _variable_names(inner, inside or key in _NAMES)
    elif isinstance(value, list):
        for item in value:
            yield from _variable_names(item, inside)
    elif inside and isinstance(value, str) and not secrets.known_format(value):
        yield value


def of_file(content: bytes | None, format: Format) -> tuple[set[str], set[str]]:
    """The secrets of a file, and its names of variables. Of one that cannot be parsed none: `masked` looks at its text."""
    if not content:
        return set(), set()
    try:
        value = parse(content, format).value
        return set(secret_texts(value)), set(_variable_names(value))
    except (Damaged, RecursionError):
        return set(), set()


def masked(line: str, known: Iterable[str] = (), names: Collection[str] = ()) -> str:
    """One line with everything secret replaced by `****`; `names` are names of variables."""
    for secret in sorted(known, key=len, reverse=True):
        for form in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
            if form:
                line = line.replace(form, MASK)
    line = _BEARER.sub(lambda found: found[1] + MASK if not is_reference(found[2]) else found[0], line)
    line = _PAIR.sub(lambda found: found[0] if found["value"] in names else _pair(found), line)
    return _PIECE.sub(_piece, line)


def _pair(found: re.Match[str]) -> str:
    value = found["value"]
    if is_reference(value) or MASK in value or secrets.named_literal(found["name"], value) is None:
        return found[0]
    start = found.start("value") - found.start()
    return found[0][:start] + MASK + found[0][start + len(value) :]


def _piece(found: re.Match[str]) -> str:
    text = found[0]
    if is_reference(text) or MASK in text:
        return text
    if secrets.known_format(text) or ("://" in text and secrets.url(text)):
        return MASK
    value = text.rpartition("=")[2]
    return text[: len(text) - len(value)] + MASK if value and secrets.looks_random(value) else text


def difference(file: str, before: bytes | None, after: bytes, format: Format) -> list[str]:
    """A unified diff without secrets. What the two have alike is compared before it is masked."""
    old_known, old_names = of_file(before, format)
    new_known, new_names = of_file(after, format)
    known, names = old_known | new_known, old_names | new_names
    old = (before or b"").decode("utf-8-sig", "replace").splitlines()
    new = after.decode("utf-8-sig", "replace").splitlines()
    lines = difflib.unified_diff(old, new, file if before is not None else "(no file)", file, lineterm="", n=2)
    return [line if line.startswith(("--- ", "+++ ", "@@")) else masked(line, known, names) for line in lines]
