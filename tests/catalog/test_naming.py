"""Exposed names: readable where nothing is lost, unique and legal everywhere, also after the host's own changes."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.catalog.naming import (
    CONSERVATIVE,
    ENTRY,
    HASH_LENGTH,
    NamingProfile,
    exposed_name,
    exposed_prompt_name,
    known_hosts,
    name_table,
    profile_for,
)
from interlock.model.names import CanonicalName

PROFILES = [CONSERVATIVE, *(profile_for(host) for host in known_hosts())]
by_profile = pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.host)


def name(text: str) -> CanonicalName:
    return CanonicalName.parse(text)


# What each host was seen to do, or does in its source, to a tool name of a server called `interlock`.
def _under(template: str, illegal: str, replacement: str) -> Callable[[str], str]:
    return lambda ours: re.sub(illegal, replacement, template.format(ours))


def _gemini(ours: str) -> str:
    full = re.sub(r"[^A-Za-z0-9_.:-]", "_", f"mcp_{ENTRY}_{ours}")
    return full if len(full) <= 63 else f"{full[:30]}...{full[-30:]}"


def _qwen(ours: str) -> str:
    full = f"mcp__{ENTRY}__{ours}"
    return full if len(full) <= 63 else f"{full[:28]}___{full[-32:]}"


def _continue(ours: str) -> str:
    return ours if ours.startswith(ENTRY) else f"{ENTRY}_{ours}"


def _roo(ours: str) -> str:
    kept = re.sub(r"-{2,}", "-", re.sub(r"[^A-Za-z0-9_.:-]", "", ours.replace(" ", "_")))
    return f"mcp--{ENTRY}--{'' if re.match('[A-Za-z_]', kept) else '_'}{kept}"[:64]


HOSTS: dict[str, Callable[[str], str]] = {
    "claude_code": _under(f"mcp__{ENTRY}__{{}}", r"[^A-Za-z0-9_-]", "_"),
    "codex": _under(f"mcp__{ENTRY}__{{}}", r"[^A-Za-z0-9_]", "_"),
    "gemini_cli": _gemini,
    "qwen": _qwen,
    "copilot_cli": lambda ours: re.sub(r"[^A-Za-z0-9]", "-", f"{ENTRY}-{ours}")[:64],
    "opencode": _under(f"{ENTRY}_{{}}", r"[^A-Za-z0-9_-]", "_"),
    "vscode": lambda ours: f"mcp_{ENTRY}_{ours}".replace(".", "_")[:64],
    "zed": lambda ours: ours[:64],
    "continue": _continue,
    "roo_code": _roo,
}

TRICKY = [
    name(text)
    for text in (
        "a/b__c",
        "a__b/c",
        "a/b_c",
        "a_/b",
        "a/_b",
        "a/__b",
        "a__/b",
        "_a/b",
        "a_b/c",
        "s/a.b",
        "s/a_b",
        "s/a-b",
        "s/a b",
        "s/a/b",
        "s/a:b",
        "s/a__b",
        "s/a_b_",
        "s/A_B",
        "My Server.v2/search",
        "My_Server_v2/search",
        "My-Server-v2/search",
        "my server.v2/search",
        f"s/{'n' * 128}",
        f"s/{'n' * 127}m",
        f"s/{'n' * 140}",
        f"s/{'n' * 64}",
        f"{'k' * 128}/t",
        f"{'k' * 127}j/t",
        f"{'k' * 128}/{'t' * 128}",
        "s/搜索",
        "s/検索",
        "搜索/s",
        "s/é",
        "s/ ",
        "s/_",
        "s/-",
        "s/.",
        "s/\ud800",
        "1password/search",
        "s1password/search",
        "interlock/search",
        "interlock_s/search",
        "s/search",
        "server/item",
    )
]
# Names that look like another's hashed name.
TRICKY += [
    CanonicalName(exposed.partition("__")[0] or "s", exposed.partition("__")[2] or "t")
    for profile in PROFILES
    for exposed in [exposed_name(other, profile) for other in TRICKY]
]


@by_profile
@pytest.mark.parametrize("text", ["github/search", "time/get_current_time", "git/git_status", "files/readFile"])
def test_plain_names_stay_readable(text: str, profile: NamingProfile) -> None:
    assert exposed_name(name(text), profile) == text.replace("/", "__")


@pytest.mark.parametrize(
    ("host", "text", "expected"),
    [
        ("gemini", "issues/issues.search", "issues__issues.search"),
        ("claude-code", "issues/issues.search", "issues__issues_search_17cffe5e4a"),
        ("Claude Code", "issue-search/find", "issue-search__find"),
        ("codex", "issue-search/find", "issue_search__find_a0f40c7f52"),
        ("copilot", "issue-search/find", "issue_search__find_a0f40c7f52"),
        (None, "issue-search/find", "issue_search__find_a0f40c7f52"),
        ("opencode", "My Server.v2/search", "My_Server_v2__search_21d19b7a78"),
        ("zed", "1password/search", "s1password__search_c5f78c618d"),
        ("claude", "1password/search", "1password__search"),
        ("claude", "s/搜索", "s__item_85559a7d78"),
        ("claude", f"github/{'n' * 128}", "github__nnnnnnnnnnnnnnnnnnnnnnnnnnnnn_3bfdb95494"),
        ("claude", f"{'k' * 60}/search", "kkkkkkkkkkkkkkkkkkkkkkkkkkkkk__search_435f5d2409"),
    ],
)
def test_names_are_stable_across_releases(host: str | None, text: str, expected: str) -> None:
    # Hosts' permission rules hold these names: a change here breaks what people have set up.
    assert exposed_name(name(text), profile_for(host)) == expected


@by_profile
def test_tricky_names_never_meet(profile: NamingProfile) -> None:
    distinct = set(TRICKY)
    table, lost = name_table(distinct, profile)
    assert lost == ()
    assert len(table) == len(distinct)
    assert all(table[exposed_name(each, profile)] == each for each in distinct)


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_hosts_keep_tricky_names_apart_and_whole(host: str) -> None:
    profile = profile_for(host)
    shown = [HOSTS[host](exposed_name(each, profile)) for each in set(TRICKY)]
    assert len(set(shown)) == len(shown)
    # The conservative names survive every host as well.
    cautious = [HOSTS[host](exposed_name(each, CONSERVATIVE)) for each in set(TRICKY)]
    assert len(set(cautious)) == len(cautious)


part = st.one_of(
    st.text(alphabet="ab_-. A/", min_size=1, max_size=6),
    st.text(alphabet="ab_", min_size=20, max_size=140),
    st.text(min_size=1, max_size=12),
)
keys = part.map(lambda text: text.replace("/", "_"))
names = st.builds(CanonicalName, keys, part)


@given(st.sets(names, max_size=40), st.sampled_from(PROFILES))
def test_any_set_of_names_is_kept_apart(canonical: set[CanonicalName], profile: NamingProfile) -> None:
    table, lost = name_table(canonical, profile)
    assert lost == ()
    assert set(table.values()) == canonical
    host = HOSTS.get(profile.host, lambda ours: ours)
    assert len({host(exposed) for exposed in table}) == len(table)


@given(names, st.sampled_from(PROFILES))
def test_every_name_is_legal_and_repeatable(canonical: CanonicalName, profile: NamingProfile) -> None:
    exposed = exposed_name(canonical, profile)
    assert re.fullmatch(f"[{profile.alphabet}]+", exposed)
    assert len(exposed) <= profile.limit
    assert profile.separator in exposed
    assert exposed == exposed_name(canonical, profile) == exposed_prompt_name(canonical, profile)
    if profile.letter_first:
        assert exposed[0].isalpha()
    if exposed == f"{canonical.server}__{canonical.item}":
        key, _, item = exposed.partition(profile.separator)
        assert (key, item) == canonical
    else:
        assert re.search(rf"_[0-9a-f]{{{HASH_LENGTH}}}\Z", exposed)


@given(names)
def test_conservative_names_are_legal_on_every_host(canonical: CanonicalName) -> None:
    exposed = exposed_name(canonical, CONSERVATIVE)
    for profile in PROFILES:
        assert re.fullmatch(f"[{profile.alphabet}]+", exposed)
        assert len(exposed) <= profile.limit


@by_profile
def test_there_is_room_for_a_readable_part(profile: NamingProfile) -> None:
    assert profile.limit >= 40
    assert profile.total <= 64
    assert ENTRY in profile.host_prefix


@pytest.mark.parametrize("host", [None, "", "no such host", "unknown"])
def test_unknown_hosts_get_the_conservative_profile(host: str | None) -> None:
    assert profile_for(host) is CONSERVATIVE


@pytest.mark.parametrize("host", ["antigravity", "claude-desktop", "jetbrains", "windsurf"])
def test_hosts_whose_names_are_unknown_say_so(host: str) -> None:
    profile = profile_for(host)
    assert profile.evidence == "unknown"
    assert profile.host != "unknown"
    assert profile.limit == CONSERVATIVE.limit


def test_a_collision_keeps_the_first_in_canonical_order_whoever_answers_first(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two hashes that meet cannot be had for a test, so the hash is taken away.
    monkeypatch.setattr("interlock.catalog.naming.exposed_name", lambda name, profile: "same")
    first, second = name("a/x"), name("b/x")
    assert name_table([second, first, second], CONSERVATIVE) == ({"same": first}, (second,))
