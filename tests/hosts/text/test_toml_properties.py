"""Any TOML file: read with every place, and changed in nothing but what was asked."""

from __future__ import annotations

import random
import re
import tomllib

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.hosts.text.random_toml import Writer
from tests.hosts.text.samples import ENTRY, NEW, drop, edits, files, is_subsequence, paths, put

from interlock.hosts.text import toml
from interlock.hosts.text.editing import edited
from interlock.hosts.text.steps import same

_CHANCES = st.integers(0, 2**32).map(random.Random)


def written(value: dict[str, object], chance: random.Random) -> bytes:
    content = Writer(chance).file(value)
    try:
        right = same(tomllib.loads(content.decode().removeprefix("\ufeff")), value)
    except tomllib.TOMLDecodeError:  # tables written in an order that TOML does not allow
        right = False
    assume(right)
    return content


@given(files(), _CHANCES)
def test_every_member_and_item_is_found_where_it_stands(value: dict[str, object], chance: random.Random) -> None:
    content = written(value, chance)
    document = toml.parse(content)
    assert same(document.value, value)
    lines = content.decode().removeprefix("\ufeff").split("\n")
    assert set(document.spots) == set(paths(value))
    for path, (line, column) in document.spots.items():
        here = lines[line - 1][column - 1 :]
        if isinstance(path[-1], str):
            plain = re.match(r"[A-Za-z0-9_-]+|\"(?:[^\"\\]|\\.)*\"", here)
            assert plain is not None
            assert tomllib.loads(f"{plain[0]} = 1") == {path[-1]: 1}


@given(files(), _CHANCES)
def test_what_is_added_and_removed_leaves_the_original_bytes(value: dict[str, object], chance: random.Random) -> None:
    content = written(value, chance)
    added = edited(content, edits("toml", put()))
    assert same(toml.parse(added).value, {**value, "servers": {**value["servers"], NEW: ENTRY}})  # type: ignore[dict-item]
    assert is_subsequence(content, added)
    assert edited(added, edits("toml", put())) == added
    assert edited(added, edits("toml", drop())) == content


@given(files(), _CHANCES, st.data())
def test_a_member_goes_and_nothing_else(value: dict[str, object], chance: random.Random, data: st.DataObject) -> None:
    content = written(value, chance)
    servers = value["servers"]
    assert isinstance(servers, dict)
    name = data.draw(st.sampled_from(sorted(servers)))
    left = edited(content, edits("toml", drop(name)))
    rest = {key: servers[key] for key in servers if key != name}
    found = toml.parse(left).value
    assert isinstance(found, dict)
    assert same({"servers": {}, **found}, {**value, "servers": rest})
    assert is_subsequence(left, content)
    assert edited(left, edits("toml", drop(name))) == left


@given(files(), _CHANCES, st.data())
def test_an_entry_changes_and_nothing_else(
    value: dict[str, object], chance: random.Random, data: st.DataObject
) -> None:
    content = written(value, chance)
    servers = value["servers"]
    assert isinstance(servers, dict)
    name = data.draw(st.sampled_from(sorted(servers)))
    keep = data.draw(st.booleans())
    after = edited(content, edits("toml", put(name, keep=keep)))
    assert isinstance(ENTRY, dict)
    wanted = {**servers[name], **ENTRY} if keep else ENTRY
    assert same(toml.parse(after).value, {**value, "servers": {**servers, name: wanted}})
    assert edited(after, edits("toml", put(name, keep=keep))) == after
    # What belongs to others: their lines are all there, in their order.
    others = edited(content, edits("toml", drop(name)))
    assert is_subsequence(others, after)
