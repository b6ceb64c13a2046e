"""YAML: the value and where everything stands, from one pass over the parser's events. The library is imported when used."""

from __future__ import annotations

from interlock.hosts.text.decoding import Lines, decoded
from interlock.hosts.text.document import At, Document, Step


def parse(content: bytes) -> Document:
    """An empty file is an empty object; any other top level is given as it is. Raises Damaged."""
    from interlock.hosts.text.yaml_nodes import composed, places

    text, bom = decoded(content)
    root = composed(text)
    if root is None or (root.value is None and root.start == root.end):
        return Document({}, {}, bom=bom)
    lines = Lines(text)
    spots: dict[tuple[Step, ...], At] = {}
    doubled = []
    for path, offset in places(root, text):
        if path in spots:
            doubled.append((path, lines.at(offset)))
            for below in [each for each in spots if len(each) > len(path) and each[: len(path)] == path]:
                del spots[below]
        spots[path] = lines.at(offset)
    return Document(root.value, spots, bom=bom, duplicates=tuple(doubled))
