"""Any YAML file: read with every place, and changed in nothing but what was asked."""

from __future__ import annotations

import random

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.hosts.text.random_yaml import Writer
from tests.hosts.text.samples import ENTRY, KEYS, NEW, SCALARS, drop, edits, files, is_subsequence, paths, put

from interlock.hosts.text import yaml
from interlock.hosts.text.document import Damaged
from interlock.hosts.text.editing import edited
from interlock.hosts.text.steps import same

_CHANCES = st.integers(0, 2**32).map(random.Random)


def written(value: dict[str, object], chance: random.Random) -> bytes:
    content = Writer(chance).file(value)
    try:
        right = same(yaml.parse(content).value, value)
    except Damaged:  # a comment at a place where YAML takes none
        right = False
    assume(right)
    return content


@given(files(), _CHANCES)
def test_every_member_and_item_is_found_where_it_stands(value: dict[str, object], chance: random.Random) -> None:
    content = written(value, chance)
    document = yaml.parse(content)
    lines = content.decode().removeprefix("\ufeff").split("\n")
    assert list(document.spots) == paths(value)
    for path, (line, column) in document.spots.items():
        here = lines[line - 1][column - 1 :]
        if isinstance(path[-1], str):
            assert here[0] in "'\"" or here.startswith(f"{path[-1]}:")


@given(files(), _CHANCES)
def test_what_is_added_and_removed_leaves_the_original_bytes(value: dict[str, object], chance: random.Random) -> None:
    content = written(value, chance)
    added = edited(content, edits("yaml", put()))
    assert same(yaml.parse(added).value, {**value, "servers": {**value["servers"], NEW: ENTRY}})  # type: ignore[dict-item]
    assert is_subsequence(content, added)
    assert edited(added, edits("yaml", put())) == added
    assert edited(added, edits("yaml", drop())) == content


@given(files(), _CHANCES, st.data())
def test_a_member_goes_and_nothing_else(value: dict[str, object], chance: random.Random, data: st.DataObject) -> None:
    content = written(value, chance)
    servers = value["servers"]
    assert isinstance(servers, dict)
    name = data.draw(st.sampled_from(sorted(servers)))
    left = edited(content, edits("yaml", drop(name)))
    rest = {key: servers[key] for key in servers if key != name}
    assert same(yaml.parse(left).value, {**value, "servers": rest})
    if rest:
        assert is_subsequence(left, content)
    assert edited(left, edits("yaml", drop(name))) == left


@given(files(), _CHANCES, st.data())
def test_an_entry_changes_and_nothing_else(
    value: dict[str, object], chance: random.Random, data: st.DataObject
) -> None:
    content = written(value, chance)
    servers = value["servers"]
    assert isinstance(servers, dict)
    name = data.draw(st.sampled_from(sorted(servers)))
    keep = data.draw(st.booleans())
    after = edited(content, edits("yaml", put(name, keep=keep)))
    assert isinstance(ENTRY, dict)
    wanted = {**servers[name], **ENTRY} if keep else ENTRY
    assert same(yaml.parse(after).value, {**value, "servers": {**servers, name: wanted}})
    assert edited(after, edits("yaml", put(name, keep=keep))) == after
    if len(servers) > 1:
        others = edited(content, edits("yaml", drop(name)))
        assert is_subsequence(others, after)


def _first(entry: tuple[str, object]) -> str:
    return entry[0]


@given(
    st.lists(st.tuples(KEYS, st.dictionaries(KEYS, SCALARS, max_size=3)), min_size=1, max_size=4, unique_by=_first),
    _CHANCES,
)
def test_entries_in_a_list_of_maps(entries: list[tuple[str, dict[str, object]]], chance: random.Random) -> None:
    value: dict[str, object] = {
        "a": 1,
        "servers": [{**members, "name": name} for name, members in entries],
        "z": {"b": []},
    }
    content = written(value, chance)
    added = edited(content, edits("yaml", put(), list_key="name"))
    assert isinstance(ENTRY, dict)
    assert same(
        yaml.parse(added).value,
        {**value, "servers": [*value["servers"], {"name": NEW, **ENTRY}]},  # type: ignore[misc]
    )
    assert is_subsequence(content, added)
    assert edited(added, edits("yaml", drop(), list_key="name")) == content
    name = chance.choice(entries)[0]
    left = edited(content, edits("yaml", drop(name), list_key="name"))
    rest = [{**members, "name": other} for other, members in entries if other != name]
    assert same(yaml.parse(left).value, {**value, "servers": rest})
    assert not rest or is_subsequence(left, content)
