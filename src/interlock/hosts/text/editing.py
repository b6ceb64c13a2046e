"""Changes in a host's file as bytes to bytes: only what the edits name changes, and what comes out is proved by parsing it.

Where that cannot be done, nothing is: the file is reported as Damaged, with the line.
"""

from __future__ import annotations

from interlock.hosts.text import jsonc, steps, toml, yaml
from interlock.hosts.text.decoding import BOM, decoded
from interlock.hosts.text.document import Damaged, Document
from interlock.hosts.text.steps import Drop, Put
from interlock.hosts.writing import FileEdits

UNSAFE = "it is written in a way that cannot be changed safely; make this change by hand"


def edited(content: bytes, edits: FileEdits) -> bytes:
    """The identical bytes where the edits hold already. Raises Damaged."""
    document = parsed(content, edits)
    if not isinstance(document.value, dict):
        raise Damaged("it does not hold an object")
    value: object = document.value
    changes: list[Put | Drop] = []
    for edit in edits.edits:
        wanted = steps.steps(value, edit, edits.list_key)
        value = steps.applied(value, wanted)
        changes += wanted
    if not changes:
        return content
    changes = steps.joined(changes)
    try:
        after = _changed(content, edits, changes)
        right = _equal(_proof(after, edits), value, edits, changes)
    except (IndexError, AssertionError, AttributeError, ValueError, RecursionError):
        raise Damaged(UNSAFE) from None  # a way of writing that the editor was not made for
    if not right:
        raise Damaged(UNSAFE)
    return after


def _proof(after: bytes, edits: FileEdits) -> object:
    try:
        return parsed(after, edits).value
    except Damaged:
        raise Damaged(UNSAFE) from None


def parsed(content: bytes, edits: FileEdits) -> Document:
    """As the host reads it. Raises Damaged."""
    if edits.format == "toml":
        return toml.parse(content)
    if edits.format == "yaml":
        return yaml.parse(content)
    document = jsonc.parse(content)
    if not edits.comments:
        if document.comment is not None:
            raise Damaged(f"line {document.comment[0]} has a comment, which this host does not take", document.comment)
        if document.trailing_comma is not None:
            line = document.trailing_comma[0]
            raise Damaged(
                f"line {line} has a comma after the last member, which this host does not take", document.trailing_comma
            )
    return document


def _changed(content: bytes, edits: FileEdits, changes: list[Put | Drop]) -> bytes:
    if edits.format == "toml":
        from interlock.hosts.text import toml_edit

        text, bom = decoded(content)
        after = toml_edit.changed(text, changes)
    elif edits.format == "yaml":
        from interlock.hosts.text import yaml_edit

        text, bom = decoded(content)
        after = yaml_edit.changed(text, changes)
    else:
        from interlock.hosts.text import jsonc_edit

        read = jsonc.plain(content)
        bom = read.bom
        after = jsonc_edit.changed(read, changes)
    return (BOM if bom else b"") + after.encode("utf-8")


def _equal(after: object, wanted: object, edits: FileEdits, changes: list[Put | Drop]) -> bool:
    if edits.format == "toml":
        # A table that no line names any more is gone with its last member: in TOML that is the same as an empty one.
        for change in changes:
            if isinstance(change, Drop):
                after, wanted = _pruned(after, change.path[:-1]), _pruned(wanted, change.path[:-1])
    return steps.same(after, wanted)


def _pruned(value: object, path: steps.Where) -> object:
    """Without the tables on the path that are empty."""
    for depth in range(len(path), 0, -1):
        if steps.inside(value, path[:depth]) == {}:
            value = steps.applied(value, [Drop(path[:depth])])
    return value
