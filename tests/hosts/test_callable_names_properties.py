"""What holds of every host's names for tools, whatever servers and tools are called."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from interlock.hosts import registry
from interlock.hosts.callable_names import call, plain

RULES = {adapter.id: adapter.names.value for adapter in registry.every() if adapter.names.value is not None}
LETTERS = some.sampled_from("abAB01_-. /é:")
SERVERS = some.dictionaries(
    some.text(LETTERS, min_size=1, max_size=20),
    some.lists(some.text(LETTERS, min_size=1, max_size=150), min_size=1, max_size=6, unique=True),
    min_size=1,
    max_size=3,
)


@pytest.mark.parametrize("host", RULES)
@given(tools=SERVERS)
@settings(max_examples=40, deadline=None)
def test_every_host(host: str, tools: dict[str, list[str]]) -> None:
    rule = RULES[host]
    called = call(tools, rule)
    assert {*called.names} == {(server, tool) for server, each in tools.items() for tool in each}
    told = [name for name in called.names.values() if name is not None]
    if rule.limit is not None:
        assert all(len(name) <= rule.limit for name in told)
    if rule.tool_keep is None and not rule.bare:
        fixed = "".join(set(re.sub(r"\{\w+\}", "", rule.form)))
        more = re.escape(fixed + rule.replacement + rule.filler + "*")  # `*`: a digit of a hash
        allowed = re.compile(f"[{more}{rule.keep}]*")
        assert all(allowed.fullmatch(name) for name in told)
    alone = len(told) == 1 == len(called.names) and not called.shortened
    if alone and not rule.bare and not rule.announced:
        ((server, tool),) = called.names
        assert told == [plain(server, tool, rule)]
    assert not called.collisions or len(called.names) > 1


@pytest.mark.parametrize("host", RULES)
@given(tools=SERVERS)
@settings(max_examples=40, deadline=None)
def test_a_name_that_two_tools_have_is_told(host: str, tools: dict[str, list[str]]) -> None:
    rule = RULES[host]
    called = call(tools, rule)
    told = [name for name in called.names.values() if name is not None and "*" not in name]
    if len(set(told)) < len(told):
        assert called.collisions
