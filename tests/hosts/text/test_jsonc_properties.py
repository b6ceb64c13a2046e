"""Any JSON file with comments: read with every place, and changed in nothing but what was asked."""

from __future__ import annotations

import json
import random
import re

from hypothesis import given
from hypothesis import strategies as st
from tests.hosts.text.random_jsonc import Writer
from tests.hosts.text.samples import ENTRY, NEW, drop, edits, files, is_subsequence, paths, put

from interlock.hosts.text import jsonc
from interlock.hosts.text.document import Step
from interlock.hosts.text.editing import edited
from interlock.hosts.text.steps import same

_CHANCES = st.integers(0, 2**32).map(random.Random)


def written(value: dict[str, object], chance: random.Random) -> tuple[bytes, Writer]:
    writer = Writer(chance, comments=chance.random() < 0.8)
    return writer.file(value), writer


def comments(content: bytes) -> set[int]:
    return {int(found) for found in re.findall(rb"(?://|/\*) (\d+), ", content)}


@given(files(), _CHANCES)
def test_every_member_and_item_is_found_where_it_stands(value: dict[str, object], chance: random.Random) -> None:
    content, _ = written(value, chance)
    document = jsonc.parse(content)
    assert same(document.value, value)
    lines = content.decode().removeprefix("\ufeff").split("\n")
    wanted = list(paths(value))
    assert list(document.spots) == wanted
    for path in wanted:
        line, column = document.spots[path]
        here = lines[line - 1][column - 1 :]
        if isinstance(path[-1], str):
            assert json.JSONDecoder().raw_decode(here)[0] == path[-1]
        else:
            assert here[0] == json.dumps(_at(value, path), ensure_ascii=False)[0]
        assert document.below(*path) == {
            each[len(path) :]: spot
            for each, spot in document.spots.items()
            if len(each) > len(path) and each[: len(path)] == path
        }


def _at(value: object, path: tuple[Step, ...]) -> object:
    for step in path:
        value = value[step]  # type: ignore[index]
    return value


@given(files(), _CHANCES)
def test_what_is_added_and_removed_leaves_the_original_bytes(value: dict[str, object], chance: random.Random) -> None:
    content, _ = written(value, chance)
    added = edited(content, edits("jsonc", put()))
    assert same(jsonc.parse(added).value, {**value, "servers": {**value["servers"], NEW: ENTRY}})  # type: ignore[dict-item]
    assert is_subsequence(content, added)
    assert edited(added, edits("jsonc", put())) == added
    assert edited(added, edits("jsonc", drop())) == content


@given(files(), _CHANCES, st.data())
def test_a_member_goes_and_every_comment_outside_of_it_stays(
    value: dict[str, object], chance: random.Random, data: st.DataObject
) -> None:
    content, writer = written(value, chance)
    servers = value["servers"]
    assert isinstance(servers, dict)
    name = data.draw(st.sampled_from(sorted(servers)))
    left = edited(content, edits("jsonc", drop(name)))
    assert same(jsonc.parse(left).value, {**value, "servers": {key: servers[key] for key in servers if key != name}})
    assert is_subsequence(left, content)
    first, last = writer.inside[("servers", name)]
    assert comments(content) - comments(left) <= set(range(first + 1, last + 1))
    assert edited(left, edits("jsonc", drop(name))) == left


@given(files(), _CHANCES, st.data())
def test_an_entry_changes_and_every_comment_outside_of_it_stays(
    value: dict[str, object], chance: random.Random, data: st.DataObject
) -> None:
    content, writer = written(value, chance)
    servers = value["servers"]
    assert isinstance(servers, dict)
    name = data.draw(st.sampled_from(sorted(servers)))
    keep = data.draw(st.booleans())
    after = edited(content, edits("jsonc", put(name, keep=keep)))
    assert isinstance(ENTRY, dict)
    wanted = {**servers[name], **ENTRY} if keep else ENTRY
    assert same(jsonc.parse(after).value, {**value, "servers": {**servers, name: wanted}})
    first, last = writer.inside[("servers", name)]
    assert comments(content) - comments(after) <= set(range(first + 1, last + 1))
    assert edited(after, edits("jsonc", put(name, keep=keep))) == after
