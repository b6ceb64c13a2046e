"""Values and edits that the property tests of all three formats share."""

from __future__ import annotations

from hypothesis import strategies as st

from interlock.hosts.place import Format
from interlock.hosts.text.document import Step
from interlock.hosts.writing import REMOVE, Edit, FileEdits, Json

NEW = "interlock"
ENTRY: Json = {"command": "/bin/interlock", "args": ["connect", "--host", "x y"], "env": {"A_B": "${A}"}, "on": True}
TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufeff\u2028\u2029"), max_size=12)
KEYS = st.one_of(
    st.from_regex(r"[a-z][a-z_-]{0,8}", fullmatch=True), st.sampled_from(["a.b", "with space", 'quote"', "ключ", ""])
).filter(lambda key: key != NEW)
SCALARS = st.booleans() | st.integers(-(2**60), 2**60) | TEXTS
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
SERVERS = st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=4), min_size=1, max_size=4)
OTHERS = st.dictionaries(KEYS.filter(lambda key: key != "servers"), VALUES, max_size=3)


@st.composite
def files(draw: st.DrawFn) -> dict[str, object]:
    """A file's value with `servers` at a random place among the others."""
    members = list(draw(OTHERS).items())
    members.insert(draw(st.integers(0, len(members))), ("servers", draw(SERVERS)))
    return dict(members)


def edits(format: Format, *given: Edit, comments: bool = True, list_key: str | None = None) -> FileEdits:
    return FileEdits(file="/f", format=format, comments=comments, edits=given, list_key=list_key)


def put(name: str = NEW, value: Json = ENTRY, *, keep: bool = False) -> Edit:
    return Edit(("servers", name), value, keep=keep)


def drop(name: str = NEW) -> Edit:
    return Edit(("servers", name), REMOVE)


def is_subsequence(small: bytes, large: bytes) -> bool:
    """Every byte of the one stands in the other, in the same order."""
    rest = iter(large)
    return all(byte in rest for byte in small)


def paths(value: object, path: tuple[Step, ...] = ()) -> list[tuple[Step, ...]]:
    """Of every member and item, in the order of the file."""
    inner: list[tuple[Step, object]] = []
    if isinstance(value, dict):
        inner = list(value.items())
    elif isinstance(value, list):
        inner = list(enumerate(value))
    return [each for step, below in inner for each in [(*path, step), *paths(below, (*path, step))]]
