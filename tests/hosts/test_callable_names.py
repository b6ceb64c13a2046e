"""What hosts call tools: the forms that real ones were seen to use, and what they lose on the way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from interlock.hosts.adapter import CallableNames
from interlock.hosts.callable_names import Collision, call

CLAUDE = CallableNames(form="mcp__{server}__{tool}", limit=128, overflow="dropped", clash="first")
CODEX = CallableNames(form="mcp__{server}__{tool}", keep="A-Za-z0-9_", limit=128, overflow="hash", clash="hash-both")
GEMINI = CallableNames(form="mcp_{server}_{tool}", keep="A-Za-z0-9_.:-", limit=63, overflow="middle", clash="last")
QWEN = CallableNames(
    form="mcp__{server}__{tool}", keep="A-Za-z0-9_.-", limit=63, overflow="middle", clash="last", filler="___", head=28
)
COPILOT = CallableNames(form="{server}-{tool}", replacement="-", limit=64, overflow="cut-number", clash="one-lost")
OPENCODE = CallableNames(form="{server}_{tool}", clash="last")
ZED = CallableNames(form="{server}_{tool}", limit=64, overflow="cut", clash="prefix", bare=True)
GOOSE = CallableNames(form="{server}__{tool}", dropped=r"\s", lower="server", tool_keep=r"\s\S", clash="later-skipped")
CLINE = CallableNames(form="{server}__{tool}", limit=64, overflow="hash", hash_digits=8)
ROO = CallableNames(form="mcp--{server}--{tool}", limit=64, overflow="cut")
CONTINUE = CallableNames(form="{server}_{tool}", keep="a-z0-9", lower="server", tool_keep=r"\s\S")
SMALL = CallableNames(form="{server}_{tool}", lower="all")
VSCODE = CallableNames(form="mcp_{server}_{tool}", limit=64, announced=True, lower="server", prefix_limit=18)


@pytest.mark.parametrize(
    ("rule", "server", "tool", "name"),
    [
        (CLAUDE, "aa", "search", "mcp__aa__search"),
        (CLAUDE, "aa", "issues.search", "mcp__aa__issues_search"),
        (CLAUDE, "aa", "t" * 70, "mcp__aa__" + "t" * 70),
        (CLAUDE, "aa", "n" * 128, None),
        (CLAUDE, "My Server.v2", "x", "mcp__My_Server_v2__x"),
        (CODEX, "aa", "search", "mcp__aa__search"),
        (CODEX, "aa", "a-b", "mcp__aa__a_b"),
        # Seen: 119 characters behind the namespace, twelve of them the hash.
        (CODEX, "aa", "n" * 140, "mcp__aa__" + "n" * 106 + "_" + "*" * 12),
        (GEMINI, "aa", "search", "mcp_aa_search"),
        (GEMINI, "aa", "issues.search", "mcp_aa_issues.search"),
        (GEMINI, "aa", "a" * 40 + "b" * 30, "mcp_aa_" + "a" * 23 + "..." + "b" * 30),
        (QWEN, "aa", "issues.search", "mcp__aa__issues.search"),
        (QWEN, "aa", "a" * 40 + "b" * 40, "mcp__aa__" + "a" * 19 + "___" + "b" * 32),
        (QWEN, "My Server.v2", "x", "mcp__My_Server.v2__x"),
        (COPILOT, "aa", "search", "aa-search"),
        (COPILOT, "aa", "issues.search", "aa-issues-search"),
        (COPILOT, "My Server.v2", "x", "My-Server-v2-x"),
        (COPILOT, "aa", "n" * 70, "aa-" + "n" * 61),
        (OPENCODE, "aa", "search", "aa_search"),
        (OPENCODE, "aa", "n" * 140, "aa_" + "n" * 140),
        (ZED, "aa", "search", "search"),
        (GOOSE, "aa", "search", "aa__search"),
        (CLINE, "aa", "n" * 70, "aa__" + "n" * 51 + "_" + "*" * 8),
        (ROO, "aa", "n" * 70, "mcp--aa--" + "n" * 55),
        (GOOSE, "My Server", "listIssues", "myserver__listIssues"),
        (GOOSE, "AA.b", "Issues.Search", "aa_b__Issues.Search"),
        (CONTINUE, "AA", "Search.All", "aa_Search.All"),
        (SMALL, "AA", "Search.All", "aa_search_all"),
        (VSCODE, "aa", "search", None),
    ],
)
def test_one_tool(rule: CallableNames, server: str, tool: str, name: str | None) -> None:
    called = call({server: [tool]}, rule)
    assert called.names == {(server, tool): name}
    assert called.collisions == ()


@pytest.mark.parametrize(
    ("rule", "tools", "names", "lost"),
    [
        (CLAUDE, {"s": ["a_b", "a.b"]}, ["mcp__s__a_b", None], [("s", "a.b")]),
        (CLAUDE, {"my.srv": ["t"], "my_srv": ["t"]}, ["mcp__my_srv__t", None], [("my_srv", "t")]),
        (CLAUDE, {"a": ["b__c"], "a__b": ["c"]}, ["mcp__a__b__c", None], [("a__b", "c")]),
        (OPENCODE, {"s": ["a_b", "a.b"]}, [None, "s_a_b"], [("s", "a_b")]),
        (CODEX, {"s": ["a_b", "a-b"]}, ["mcp__s__a_b_" + "*" * 12] * 2, []),
        (COPILOT, {"a-b": ["c"], "a": ["b-c"]}, ["a-b-c", "a-b-c"], None),
        (GOOSE, {"a": ["b__c"], "a__b": ["c"]}, ["a__b__c", None], [("a__b", "c")]),
        (CONTINUE, {"A": ["t"], "a": ["t"]}, ["a_t", "a_t"], None),
        (GEMINI, {"s": ["n" * 128, "n" * 140]}, [None, "mcp_s_" + "n" * 24 + "..." + "n" * 30], [("s", "n" * 128)]),
        (COPILOT, {"s": ["n" * 70, "n" * 80]}, ["s-" + "n" * 62, "s-" + "n" * 61 + "2"], []),
    ],
)
def test_two_that_meet(
    rule: CallableNames, tools: Mapping[str, Sequence[str]], names: list[str | None], lost: list[tuple[str, str]] | None
) -> None:
    called = call(tools, rule)
    assert list(called.names.values()) == names
    (collision,) = called.collisions
    assert collision.lost == (None if lost is None else tuple(lost))
    assert set(collision.keys) == set(called.names)


@pytest.mark.parametrize(
    ("rule", "tools"),
    [
        (CLAUDE, {"aa": ["search"], "bb": ["search"]}),
        (OPENCODE, {"a": ["b", "c"], "b": ["b"]}),
        (CODEX, {"s": ["n" * 128, "n" * 140]}),
        (CLAUDE, {"s": ["n" * 128, "n" * 128 + "m"]}),
        (VSCODE, {"a.b": ["t"], "a_b": ["t"]}),
        (CLAUDE, {"aa": ["search", "search"]}),
    ],
)
def test_what_does_not_meet(rule: CallableNames, tools: Mapping[str, Sequence[str]]) -> None:
    assert call(tools, rule).collisions == ()


def test_zed_puts_the_server_before_clashing_names_alone() -> None:
    called = call({"aa": ["search", "get"], "bb": ["search"]}, ZED)
    assert list(called.names.values()) == ["aa_search", "get", "bb_search"]
    assert called.collisions == ()


def test_zed_without_room_for_the_server_loses_one() -> None:
    tool = "t" * 63
    called = call({"aa": [tool], "bb": [tool]}, ZED)
    assert called.collisions == (Collision(tool, (("aa", tool), ("bb", tool)), (("aa", tool),)),)


def test_what_was_shortened_is_named() -> None:
    called = call({"aa": ["t" * 70, "short"]}, GEMINI)
    assert called.shortened == (("aa", "t" * 70),)
    assert called.full["aa", "t" * 70] == "mcp_aa_" + "t" * 70
