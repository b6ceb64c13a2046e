"""What Interlock makes of a host's files is what the host itself makes of them, situation by situation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from interlock.hosts.oracles.asking import compare

from .known import KNOWN
from .situations import FIRST, Situation, every
from .stage import Stage

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(180)]


REWRITE = frozenset(("claude-code", "qwen-code", "opencode"))
"""These bring their own files into their own form whenever they start; OpenCode only adds `$schema`."""
ALL = [
    pytest.param(each, id=each.id, marks=() if each.name in FIRST else (pytest.mark.hosts_more,)) for each in every()
]


@pytest.mark.parametrize("situation", ALL)
def test_inventory_says_what_the_host_says(
    situation: Situation, set_stage: Callable[[str, Mapping[str, str]], Stage], tmp_path: object
) -> None:
    home = f"{tmp_path}/home"
    stage = set_stage(
        situation.host, {name: value.replace("@HOME@", home) for name, value in situation.environ.items()}
    )
    stage.put(situation.files)
    before = stage.read(situation.host)
    asked = stage.ask(before)
    assert asked.trouble is None or asked.refuses or situation.no_answer, asked.trouble
    if situation.host not in REWRITE:
        assert asked.wrote == []
    known = {key[2] for key in KNOWN if key[:2] == (situation.host, situation.name)}
    found = compare(before, asked)
    assert [each for each in found if not each.reason and each.server not in known] == []
    assert known <= {each.server for each in found}, "a known disagreement is gone: take it out of known.py"
    if asked.live:
        running = {each.server for each in before.declarations if each.state == "effective"} - known
        tried = {name for name, says in asked.servers.items() if says.state in ("connected", "failed")}
        assert {name for name in running & tried if asked.servers[name].state == "failed"} == situation.dead & running
