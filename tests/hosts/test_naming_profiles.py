"""What naming assumes of a host (catalog/naming.py) and what its adapter states are one truth."""

from __future__ import annotations

import re

import pytest

from interlock.catalog.naming import CONSERVATIVE, ENTRY, NamingProfile, known_hosts, profile_for
from interlock.hosts import registry
from interlock.hosts.adapter import CallableNames
from interlock.hosts.callable_names import prefix

PROFILES = [profile_for(host) for host in known_hosts()]
CHARACTERS = [chr(code) for code in range(0x20, 0x250)]


def stated(profile: NamingProfile) -> CallableNames | None:
    """None where nobody knows how the host names tools."""
    adapter = registry.find("qwen-code" if profile.host == "qwen" else profile.host)
    assert adapter is not None, profile.host
    return adapter.names.value


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.host)
def test_a_profile_does_not_contradict_its_adapter(profile: NamingProfile) -> None:
    rule = stated(profile)
    if rule is None:
        # Naming may still go by what is told of a host; where nothing is, it is as careful as can be.
        assert profile.evidence in ("unknown", "third-party")
        return
    assert rule.limit is None or profile.total <= rule.limit
    if rule.bare:
        # Zed writes `<entry>_` before a name only where two servers share it: the room has to be left, and the beginning.
        assert (profile.host_prefix, profile.taken_prefix) == (f"{ENTRY}_", ENTRY)
    else:
        assert profile.host_prefix == prefix(ENTRY, rule)
    if rule.prefix_limit is not None:
        assert len(profile.host_prefix) <= rule.prefix_limit
        assert profile.total <= (rule.limit or profile.total) - (rule.prefix_limit - len(profile.host_prefix))
    if not rule.lower:  # what is made small is the server's part, which is the entry's and no tool's
        used = [each for each in CHARACTERS if re.match(f"[{profile.alphabet}]", each)]
        assert used
        assert [each for each in used if not re.match(f"[{rule.keep}]", each)] == []


def test_every_adapter_has_a_profile_or_the_careful_one() -> None:
    for adapter in registry.every():
        profile = profile_for(adapter.id)
        if adapter.names.value is not None:
            assert profile is not CONSERVATIVE, adapter.id
            assert profile.host != CONSERVATIVE.host
