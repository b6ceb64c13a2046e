"""Which servers are asked for a name that nobody knows yet: the one that it is of, and not its neighbours."""

from __future__ import annotations

import pytest

from interlock.catalog.naming import exposed_name, known_hosts, profile_for
from interlock.model.names import CanonicalName
from interlock.routing import may_belong

KEYS = (
    "git", "github", "a--b", "a b", "\u043a\u043b\u044e\u0447", "\u043a\u043b\u044e\u04472", "_x", "x_", "9a", "a" * 12,
    "a" * 13, "a" * 11 + "_b", "interlock", "A Key With Spaces", "a__b", "b" * 200,
)  # fmt: skip
ITEMS = ("search", "x.y", "_", "i" * 120, "\u043f\u043e\u0438\u0441\u043a")


@pytest.mark.parametrize("key", KEYS)
def test_every_exposed_name_may_belong_to_its_server(key: str) -> None:
    for host in (None, *known_hosts()):
        for item in ITEMS:
            exposed = exposed_name(CanonicalName(key, item), profile_for(host))
            assert may_belong(exposed, key), exposed


@pytest.mark.parametrize(
    ("exposed", "key"), [("github__search", "git"), ("git__search", "github"), ("gitlab__x", "git"), ("a__b", "ab")]
)
def test_a_neighbour_is_not_asked(exposed: str, key: str) -> None:
    assert not may_belong(exposed, key)
