"""JSON as peers spell it, for hypothesis: the same values with different numbers, escapes and white space."""

from __future__ import annotations

import itertools
import json

from hypothesis import strategies as st

SPACE = st.sampled_from(["", "", "", " ", "  ", "\t", "\n", "\r\n"])
LINE_SPACE = st.sampled_from(["", "", "", " ", "\t"])
CHARACTERS = st.characters(codec="utf-8")
NAMES = st.text(CHARACTERS, max_size=6)
NUMBERS = st.one_of(
    st.sampled_from(
        [
            "0",
            "-0",
            "1",
            "1.0",
            "1.50",
            "-0.0",
            "1e5",
            "1E+5",
            "1e-7",
            "1e999",
            "9007199254740993",
            "18446744073709551616",
        ]
    ),
    st.integers(-(2**80), 2**80).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr).filter(lambda text: "n" not in text),
)
ESCAPES = st.sampled_from(["\\n", "\\t", '\\"', "\\\\", "\\/", "\\u00e9", "\\u0000", "\\ud83d\\ude00", "\\u002F"])


def strings(space: st.SearchStrategy[str] = CHARACTERS) -> st.SearchStrategy[str]:
    """String literals, with escapes where they need not be."""
    plain = st.text(space, max_size=8).map(lambda text: json.dumps(text, ensure_ascii=False)[1:-1])
    return st.lists(st.one_of(plain, ESCAPES), max_size=4).map(lambda parts: '"' + "".join(parts) + '"')


def arrays(items: st.SearchStrategy[str], space: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.builds(
        lambda parts, one, two: "[" + one + ("," + two).join(parts) + two + "]",
        st.lists(items, max_size=4),
        space,
        space,
    )


def objects(
    values: st.SearchStrategy[str],
    space: st.SearchStrategy[str],
    names: st.SearchStrategy[str] = NAMES,
) -> st.SearchStrategy[str]:
    """Objects whose names are unique."""

    def write(members: dict[str, str], one: str, two: str) -> str:
        pairs = [f"{json.dumps(name, ensure_ascii=False)}{one}:{two}{value}" for name, value in members.items()]
        return "{" + one + ("," + two).join(pairs) + two + "}"

    return st.builds(write, st.dictionaries(names, values, max_size=4), space, space)


def values(space: st.SearchStrategy[str] = SPACE) -> st.SearchStrategy[str]:
    """Any JSON value as text."""
    return st.recursive(
        st.one_of(st.sampled_from(["null", "true", "false"]), NUMBERS, strings()),
        lambda inner: st.one_of(arrays(inner, space), objects(inner, space)),
        max_leaves=12,
    )


def any_object(space: st.SearchStrategy[str] = SPACE) -> st.SearchStrategy[str]:
    return objects(values(space), space)


def pieces(data: bytes) -> st.SearchStrategy[list[bytes]]:
    """`data` cut anywhere, also into empty pieces."""

    def cut(places: list[int]) -> list[bytes]:
        bounds = [0, *sorted(places), len(data)]
        return [data[start:end] for start, end in itertools.pairwise(bounds)]

    return st.lists(st.integers(0, len(data)), max_size=12).map(cut)
