"""Versions are ordered as PEP 440 orders them; `packaging` is the judge."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from interlock.install.version import key, newer

_NUMBERS = st.integers(0, 99)
_VERSIONS = st.builds(
    lambda release, pre, post, dev: release + pre + post + dev,
    st.lists(_NUMBERS, min_size=1, max_size=4).map(lambda parts: ".".join(map(str, parts))),
    st.one_of(st.just(""), st.builds("{}{}".format, st.sampled_from(["a", "b", "rc", ".beta", "-alpha"]), _NUMBERS)),
    st.one_of(st.just(""), st.builds(".post{}".format, _NUMBERS), st.builds("-{}".format, _NUMBERS)),
    st.one_of(st.just(""), st.builds(".dev{}".format, _NUMBERS)),
)


@given(_VERSIONS, _VERSIONS)
def test_the_order_is_that_of_pep_440(one: str, other: str) -> None:
    assert newer(one, other) == (Version(one) > Version(other))


@pytest.mark.parametrize(("one", "other"), [("0.1.0", "0.1"), ("1.0", "v1.0.0"), ("1.2.3+abc", "1.2.3+def")])
def test_equal_versions_are_not_newer(one: str, other: str) -> None:
    assert not newer(one, other)
    assert not newer(other, one)


@pytest.mark.parametrize(
    "text", ["", "newest", "1.2.x", "1..2", "9" * 5000, "1.0+" + "a" * 100, "1.0\n2.0", "\u0661.\u0662"]
)
def test_what_is_no_version_is_never_newer(text: str) -> None:
    assert key(text) is None
    assert not newer(text, "0.0.1")
    assert not newer("99.0", text)


@given(st.text(max_size=40))
def test_any_text_is_taken(text: str) -> None:
    assert key(text) is None or isinstance(key(text), tuple)
