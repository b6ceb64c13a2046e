"""One tree of nodes against the table of fields: every mistake in it, with the line and what to write."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from interlock.manifest import secrets
from interlock.manifest.fields import APPROVALS, DOCUMENT
from interlock.manifest.login_fields import LOGIN
from interlock.manifest.nodes import Items, Node, Scalar, Table
from interlock.manifest.problems import Report
from interlock.manifest.shapes import (
    EitherField,
    Field,
    FlagField,
    ListField,
    LiteralField,
    MapField,
    NumberField,
    RecordField,
    TextField,
)
from interlock.manifest.showing import joined, showable, shown

# Words of other programs for an approval, and ours; none where it is not an approval at all.
_APPROVAL_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("allow", "allowed", "always-allow", "always_allow", "none"), "auto"),
    **dict.fromkeys(("ask", "confirm", "manual"), "prompt"),
    **dict.fromkeys(("deny", "denied", "never", "no", "yes"), ""),
}
_KNOWN_MISTAKES: Mapping[str, str] = {
    "args": "`command` takes the arguments too: command: [npx, -y, some-mcp-server]",
    "cmd": "command: [npx, -y, some-mcp-server]",
    "url": "endpoint: https://mcp.example.com/mcp",
    "serverUrl": "endpoint: https://mcp.example.com/mcp",
    "httpUrl": "transports: {http: {endpoint: https://mcp.example.com/mcp}}",
    "type": "transports: {http: ...} or transports: {stdio: ...}; the name of the transport is its type",
    "disabled": "enabled: false",
    "id": "integrationId: acme.issue-search",
    "name": "integrationId: acme.issue-search, or key: issues for a short name",
    "environment": "env: {LOG_LEVEL: info}",
    "timeout": "policy: {toolTimeoutSeconds: 60}",
    "streamable-http": "http: {endpoint: https://mcp.example.com/mcp}",
    "mcpServers": "one document for each server: schemaVersion: agent-routing/v1, integrationId, transports",
}


def check(node: Node, report: Report) -> None:
    """Report everything that is wrong with one document's structure and values."""
    _check(node, DOCUMENT, "", report)


def _check(node: Node, shape: Field, path: str, report: Report) -> None:
    match shape:
        case TextField():
            _text(node, shape, path, report)
        case NumberField():
            _number(node, shape, path, report)
        case FlagField():
            if not isinstance(node, Scalar) or not isinstance(node.value, bool):
                _wrong(node, "true or false", shape, path, report)
        case LiteralField():
            _literal(node, shape, path, report)
        case ListField():
            _list(node, shape, path, report)
        case MapField():
            _map(node, shape, path, report)
        case RecordField():
            _record(node, shape, path, report)
        case EitherField():
            if isinstance(node, Table):
                _record(node, shape.table, path, report)
            else:
                _literal(node, shape.literal, path, report)


def _wrong(node: Node, wanted: str, shape: Field, path: str, report: Report) -> None:
    what = f"This must be {wanted}, not {_kind(node)}."
    write = shape.example
    if isinstance(shape, TextField) and isinstance(node, Scalar) and node.value is not None and showable(node.text):
        write = f'{path.rsplit(".", 1)[-1]}: "{node.text}"' if "[" not in path.rsplit(".", 1)[-1] else f'"{node.text}"'
    report.add("wrong-type", what, write=write, field=path, at=node.at)


def _kind(node: Node) -> str:
    if isinstance(node, Items):
        return "a list"
    if isinstance(node, Table):
        return "a table"
    if node.value is None:
        return "empty"
    if isinstance(node.value, bool):
        return "true or false"
    return "a number" if isinstance(node.value, int | float) else "a text"


def _text(node: Node, shape: TextField, path: str, report: Report) -> None:
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        choices = f"one of {', '.join(shape.choices)}" if shape.choices else "a text"
        return _wrong(node, choices, shape, path, report)
    kind = secrets.known_format(node.value)
    if kind:
        return report.add(
            "literal-secret",
            f"A secret must not stand in a manifest, and this looks like {kind}.",
            write="the name of an environment variable that holds it (endpointEnv, fromEnv or envNames), and "
            "replace the secret: it may have been seen",
            field=path,
            at=node.at,
        )
    if shape.choices:
        if node.value not in shape.choices:
            near = _meant(node.value, shape.choices)
            meant = f"; did you mean `{near[0]}`?" if near else "."
            what = f"{shown(node.value)} is not one of {', '.join(shape.choices)}{meant}"
            write = _written(path, near[0]) if near else shape.example
            if shape.choices == APPROVALS and node.value in ("deny", "denied"):
                write = "the tool's name in capability: {tools: {deny: [...]}}"
            report.add("wrong-word", what, write=write, field=path, at=node.at)
        return None
    if len(node.value) < shape.least:
        return report.add("empty", "This must not be empty.", write=shape.example, field=path, at=node.at)
    if len(node.value) > shape.most:
        return report.add(
            "too-long", f"This is {len(node.value)} characters long; the limit is {shape.most}.", field=path, at=node.at
        )
    if not pattern(shape.pattern).match(node.value):
        report.add("wrong-form", f"This must be {shape.rule}.", write=shape.example, field=path, at=node.at)
    return None


def _number(node: Node, shape: NumberField, path: str, report: Report) -> None:
    value = node.value if isinstance(node, Scalar) else None
    wanted = f"a {'whole ' if shape.whole else ''}number from {shape.least:.12g} to {shape.most:.12g}"
    if isinstance(value, bool) or not isinstance(value, int | float) or (shape.whole and not isinstance(value, int)):
        return _wrong(node, wanted, shape, path, report)
    if not math.isfinite(value) or not shape.least <= value <= shape.most:
        report.add("out-of-range", f"This must be {wanted}.", write=shape.example, field=path, at=node.at)
    return None


def _literal(node: Node, shape: LiteralField, path: str, report: Report) -> None:
    if not isinstance(node, Scalar) or node.value is None:
        return _wrong(node, "a text, a number, or true or false", shape, path, report)
    if "\x00" in node.text or len(node.text) > 32768:
        report.add(
            "wrong-form", "This must be at most 32768 characters, without a NUL character.", field=path, at=node.at
        )
    return None


def _list(node: Node, shape: ListField, path: str, report: Report) -> None:
    if not isinstance(node, Items):
        _wrong(node, "a list", shape, path, report)
        return
    if not shape.least <= len(node.items) <= shape.most:
        what = (
            "This list must not be empty."
            if len(node.items) < shape.least
            else f"At most {shape.most} are possible here."
        )
        report.add("wrong-count", what, write=shape.example, field=path, at=node.at)
        return
    for index, item in enumerate(node.items):
        _check(item, shape.item, f"{path}[{index}]", report)


def _map(node: Node, shape: MapField, path: str, report: Report) -> None:
    if not isinstance(node, Table):
        _wrong(node, "a table", shape, path, report)
        return
    for name, entry in node.entries.items():
        _text(Scalar(name, name, entry.at), shape.key, f"{path} (name)", report)
        _check(entry.node, shape.value, joined(path, name), report)


def _record(node: Node, shape: RecordField, path: str, report: Report) -> None:
    if not isinstance(node, Table):
        if shape.secret and isinstance(node, Scalar) and node.value is not None:
            what = "A secret must not stand in a manifest, only where it is read; replace it, it may have been seen."
            report.add("literal-secret", what, write=shape.example, field=path, at=node.at)
            return
        _wrong(node, "a table", shape, path, report)
        return
    for name, entry in node.entries.items():
        known = shape.fields.get(name)
        if known is None:
            _unknown(name, entry.at, shape, path, report)
        else:
            _check(entry.node, known, joined(path, name), report)
    for name in shape.required:
        if name not in node.entries:
            report.add(
                "missing",
                f"`{name}` is missing.",
                write=shape.fields[name].example,
                field=joined(path, name),
                at=node.at,
            )
    present = [name for name in shape.only_one if name in node.entries]
    names = " and ".join(f"`{name}`" for name in shape.only_one)
    if shape.only_one and not present:
        report.add(
            "missing",
            f"One of {names} is needed here.",
            write=shape.fields[shape.only_one[0]].example,
            field=path,
            at=node.at,
        )
    elif len(present) > 1:
        report.add("contradiction", f"Only one of {names} is possible.", field=path, at=node.entries[present[1]].at)
    if shape.some and not any(name in node.entries for name in shape.some):
        what = f"At least one of {', '.join(f'`{name}`' for name in shape.some)} is needed here."
        report.add("missing", what, write=shape.example, field=path, at=node.at)
    _relations(node, shape, path, report)


def _relations(node: Table, shape: RecordField, path: str, report: Report) -> None:
    """What the presence of one field asks of the others."""
    together = [name for name in shape.at_most_one if name in node.entries]
    if len(together) > 1:
        names = " and ".join(f"`{name}`" for name in together)
        report.add("contradiction", f"Only one of {names} is possible.", field=path, at=node.entries[together[1]].at)
    for rule in shape.implies:
        found = node.entries.get(rule.field)
        if found is None or any(name in node.entries for name in rule.needs):
            continue
        value = found.node.value if isinstance(found.node, Scalar) else None
        if rule.values and value not in rule.values:
            continue
        named = f"`{rule.field}` names `{value}`" if rule.values else f"There is `{rule.field}`"
        report.add(
            "contradiction",
            f"{named}, but there is no {' or '.join(f'`{name}`' for name in rule.needs)} here.",
            write=shape.fields[rule.needs[0]].example,
            field=joined(path, rule.field),
            at=found.at,
        )
    for only in shape.only:
        entry, other = node.entries.get(only.field), node.entries.get(only.other)
        if entry is None or (
            other is not None and not _is_other_word(other.node, shape.fields[only.other], only.value)
        ):
            continue
        report.add(
            "contradiction",
            f"`{only.field}` is for `{only.other}: {only.value}` alone.",
            write=f"{only.other}: {only.value}, or the entry without `{only.field}`",
            field=joined(path, only.field),
            at=entry.at,
        )


def _is_other_word(node: Node, shape: Field, word: str) -> bool:
    """A value that is right and another one. What is wrong by itself has its own message and needs no second one."""
    if not isinstance(node, Scalar) or not isinstance(shape, TextField):
        return False
    return node.value in shape.choices and node.value != word


def _unknown(name: str, at: tuple[int, int], shape: RecordField, path: str, report: Report) -> None:
    near = difflib.get_close_matches(name, shape.fields, 1, 0.6) or [
        known for known in shape.fields if known.lower() == name.lower().replace("_", "").replace("-", "")
    ]
    elsewhere = [place for place in _places().get(name, ()) if place != path]
    what = f"There is no field {shown(name)}{' in `' + path + '`' if path else ''}"
    if name in LOGIN and path == "transports.stdio":
        # 2026-07-28, authorization: a stdio server takes its credentials from the environment.
        what = f"{what}: a child process gets its credentials from its environment."
        report.add("unknown-field", what, write="envNames: [ACME_TOKEN]", field=joined(path, name), at=at)
    elif near:
        report.add(
            "unknown-field", f"{what}; did you mean `{near[0]}`?", write=f"{near[0]}:", field=joined(path, name), at=at
        )
    elif elsewhere:
        inside = f"inside `{elsewhere[0]}`" if elsewhere[0] else "at the outermost level"
        write = f"{elsewhere[0]}.{name}" if elsewhere[0] else name
        report.add(
            "unknown-field", f"{what}; it belongs {inside}.", write=f"it as {write}", field=joined(path, name), at=at
        )
    elif name in _KNOWN_MISTAKES:
        report.add("unknown-field", f"{what}.", write=_KNOWN_MISTAKES[name], field=joined(path, name), at=at)
    else:
        known_names = ", ".join(sorted(shape.fields))
        report.add("unknown-field", f"{what}. Known here: {known_names}.", field=joined(path, name), at=at)


def _meant(word: str, choices: Sequence[str]) -> list[str]:
    """The choice that somebody means who writes this word, if it can be told. Never one of the opposite sense."""
    if choices == APPROVALS and word.lower() in _APPROVAL_WORDS:
        known = _APPROVAL_WORDS[word.lower()]
        return [known] if known else []
    return difflib.get_close_matches(word, choices, 1, 0.5)


def _written(path: str, word: str) -> str:
    name = path.rsplit(".", 1)[-1]
    return word if "[" in name else f"{name}: {word}"


@cache
def pattern(text: str) -> re.Pattern[str]:
    """A field's pattern, compiled. `$` in these means the very end, as in ECMA-262."""
    return re.compile(text[:-1] + r"\Z" if text.endswith("$") else text)


@cache
def _places() -> Mapping[str, list[str]]:
    """Each field's name to the paths of the tables that have it."""
    found: dict[str, list[str]] = {}
    for place, shape in records(DOCUMENT, ""):
        for name in shape.fields:
            found.setdefault(name, []).append(place)
    return found


def records(shape: Field, path: str) -> Iterator[tuple[str, RecordField]]:
    """Every table with known fields, with its path; a name of the author's choosing is shown as `*`."""
    if isinstance(shape, RecordField):
        yield path, shape
        for name, inner in shape.fields.items():
            yield from records(inner, f"{path}.{name}" if path else name)
    elif isinstance(shape, MapField):
        yield from records(shape.value, f"{path}.*")
    elif isinstance(shape, EitherField):
        yield from records(shape.table, path)
    elif isinstance(shape, ListField):
        yield from records(shape.item, f"{path}[]")
