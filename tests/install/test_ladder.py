"""The ladder's choice, rung by rung, and the names of entries."""

from __future__ import annotations

import pytest

from interlock.install import hosts, ladder, naming
from interlock.install.entries import Found
from interlock.install.ladder import Machine, Rung, choose

_PLUGIN = Found("/h/.claude/plugins/x/.mcp.json", "x", (), "interlock", "https://x.example/mcp")


@pytest.mark.parametrize(
    ("host", "machine", "rung", "words"),
    [
        ("claude-code", Machine(_PLUGIN, None), Rung.PLUGIN, "carries the bridge already"),
        ("claude-code", Machine(_PLUGIN, "no space"), Rung.PLUGIN, "carries the bridge already"),
        ("claude-code", Machine(None, None), Rung.BRIDGE, "the launcher runs here"),
        ("claude-code", Machine(None, "no space is left"), Rung.NATIVE, "no space is left"),
        ("windsurf", Machine(None, "no space is left"), Rung.NONE, "is not known"),
        ("junie", Machine(None, "no space is left"), Rung.NONE, "takes no URL"),
        ("claude-desktop", Machine(None, "no space is left"), Rung.NONE, "by hand (Settings, Connectors"),
        ("roo-code", Machine(None, None), Rung.BRIDGE, "the launcher runs here"),
        ("qwen-code", Machine(None, "no space is left"), Rung.NATIVE, "no space is left"),
        ("continue", Machine(None, "no space is left"), Rung.NONE, "is not known"),
        ("claude-ai", Machine(None, None), Rung.NONE, "starts no local process"),
    ],
)
def test_the_first_rung_that_fits(host: str, machine: Machine, rung: Rung, words: str) -> None:
    found = hosts.find(host)
    assert found is not None
    choice = choose(found, machine)
    assert choice.rung is rung
    assert any(words in reason for reason in choice.reasons)
    passed_over = {Rung.NATIVE: choice.reasons[1:-1], Rung.NONE: choice.reasons[1:]}.get(rung, ())
    assert choice.passed_over() == passed_over, "a person reads of what is worse than usual, and of nothing else"
    assert (choice.price == ladder.PRICE) == (rung is Rung.NATIVE), "the price is named where it is paid"


@pytest.mark.parametrize("host", hosts.HOSTS, ids=lambda host: host.id)
def test_every_host_gets_some_answer(host: hosts.Host) -> None:
    for machine in (Machine(None, None), Machine(None, "why")):
        assert choose(host, machine).reasons
    assert hosts.find(host.id) is host
    aliases = host.adapter.aliases if host.adapter is not None else ()
    assert all(hosts.find(alias.upper().replace("-", "_")) is host for alias in aliases)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://mcp.linear.app/mcp", "linear"), ("https://api.githubcopilot.com/mcp/", "githubcopilo"),
        ("http://127.0.0.1:8080/mcp", "local"), ("http://localhost/mcp", "local"), ("http://[::1]/mcp", "local"),
        ("https://10.0.0.7/mcp", "remote"), ("https://mcp.example.co/sse", "example"), ("https://7shifts.com/mcp", "s7shifts"),
        ("https://mcp/", "mcp"), ("https://xn--bcher-kva.example/", "xn-bcher-kva"),
    ],
)  # fmt: skip
def test_names_from_urls(url: str, name: str) -> None:
    assert naming.from_url(url) == name
    host = hosts.find("codex")
    assert host is not None
    assert naming.trouble_with(name, host) is None


@pytest.mark.parametrize("name", ["", "-a", "a b", "a.b", "a/b", "ü", "a" * 65, "a\n", "workspace"])
def test_names_that_a_host_would_change(name: str) -> None:
    host = hosts.find("claude-code")
    assert host is not None
    assert naming.trouble_with(name, host) is not None
