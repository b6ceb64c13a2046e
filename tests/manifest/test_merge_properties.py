"""Properties of putting scopes together: who wins, which denies hold, and that order is immaterial."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from interlock.manifest.config import HttpTransport, Origin, Rule, Scope, ServerConfig
from interlock.manifest.merge import Broken, Declared, merge

RANK = {"managed": 0, "named": 1, "project": 1, "user": 2}
SCOPES: tuple[Scope, ...] = ("managed", "project", "user")
KEYS = st.sampled_from(["a", "b", "c"])
IDS = st.sampled_from(["acme.a", "acme.b", "acme.c"])
GLOBS = st.lists(st.sampled_from(["x", "y.*", "*"]), max_size=2)


@st.composite
def entries(draw: st.DrawFn) -> list[Declared]:
    made = []
    places = draw(st.lists(st.tuples(st.sampled_from(SCOPES), KEYS), max_size=8, unique=True))
    for line, (scope, key) in enumerate(places, start=1):
        origin = Origin(Path(f"/{scope}.yaml"), line)
        deny = tuple(Rule(glob, origin) for glob in draw(GLOBS))
        config = ServerConfig(
            key, draw(IDS), scope, origin, HttpTransport(endpoint="https://x"), deny=deny, enabled=draw(st.booleans())
        )
        made.append(Declared(config))
    return made


@given(entries())
def test_the_highest_scope_wins_each_key_as_a_whole(declared: list[Declared]) -> None:
    merged = merge(declared, ())
    assert list(merged.servers) == sorted({entry.config.key for entry in declared})
    for key, winner in merged.servers.items():
        best = min(
            (entry.config for entry in declared if entry.config.key == key), key=lambda config: RANK[config.scope]
        )
        assert (winner.origin, winner.enabled, winner.integration_id) == (
            best.origin,
            best.enabled,
            best.integration_id,
        )
        assert winner.blocked is None


@given(entries())
def test_every_deny_of_user_and_managed_scope_holds(declared: list[Declared]) -> None:
    for winner in merge(declared, ()).servers.values():
        for entry in declared:
            other = entry.config
            related = other.key == winner.key or (
                other.integration_id == winner.integration_id and other.scope != winner.scope
            )
            if other.scope in ("user", "managed") and related:
                assert set(other.deny) <= set(winner.deny)
        foreign = {
            rule
            for entry in declared
            if entry.config.scope == "project" and entry.config.origin != winner.origin
            for rule in entry.config.deny
        }
        assert not foreign & set(winner.deny)


@given(entries(), st.randoms(use_true_random=False))
def test_order_is_immaterial_where_keys_are_unique_in_a_scope(declared: list[Declared], random: object) -> None:
    shuffled = list(declared)
    random.shuffle(shuffled)
    one, two = merge(declared, ()).servers, merge(shuffled, ()).servers
    assert list(one) == list(two)
    for key in one:
        assert one[key].origin == two[key].origin
        assert set(one[key].deny) == set(two[key].deny)


@given(entries())
def test_each_replacement_is_said(declared: list[Declared]) -> None:
    merged = merge(declared, ())
    losers = len(declared) - len(merged.servers)
    assert [problem.code for problem in merged.problems] == ["replaced"] * losers


@given(entries(), st.sampled_from(SCOPES), st.none() | KEYS, st.none() | GLOBS)
def test_a_broken_entry_only_ever_tightens(
    declared: list[Declared], scope: Scope, key: str | None, globs: list[str] | None
) -> None:
    origin = Origin(Path("/broken.yaml"), 1)
    rules = None if globs is None else tuple(Rule(glob, origin) for glob in globs)
    before = merge(declared, ()).servers
    after = merge(declared, [Broken(scope, origin, key, None, rules)]).servers
    assert list(before) == list(after)
    for name, config in after.items():
        assert config.origin == before[name].origin
        assert set(before[name].deny) <= set(config.deny)
        unrelated = (key is not None and name != key) or config.scope == scope
        if unrelated:
            assert config == before[name]
        elif scope != "project" and rules is None and config.scope == "project":
            assert config.blocked is not None


@given(entries())
def test_what_only_lends_its_denies_is_not_served(declared: list[Declared]) -> None:
    lent = [Declared(entry.config, serve=entry.config.scope == "project") for entry in declared]
    merged = merge(lent, ())
    assert {config.scope for config in merged.servers.values()} <= {"project"}
    assert merged.problems == ()
