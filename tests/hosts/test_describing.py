"""Every fact of every host can be shown, with how it is known; what is not known is never shown as a fact."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.checks.tiny import NOTHING_KNOWN, TINY, machine

from interlock.cli.hosts import _page
from interlock.hosts import registry
from interlock.hosts.describing import describe
from interlock.hosts.fact import EVIDENCE


@pytest.mark.parametrize("host", registry.IDS)
def test_every_fact_has_its_evidence(host: str) -> None:
    adapter = registry.find(host)
    assert adapter is not None
    told = list(describe(adapter))
    assert len(told) > 20
    for each in told:
        assert each.how
        assert all(word in EVIDENCE.values() for word in each.how)
        assert (each.value is None) <= bool(set(each.evidence) & {"U", "X"})
    assert len([each for each in told if each.topic == "Places"]) == len(adapter.places)


@pytest.mark.parametrize("host", registry.IDS)
def test_the_page_fits_a_terminal(tmp_path: Path, host: str) -> None:
    adapter = registry.find(host)
    assert adapter is not None
    lines = list(_page(adapter, machine(tmp_path)))
    assert lines[0] == f"{adapter.label} ({adapter.id})"
    assert [line for line in lines if len(line) > 80 and " " in line.strip()] == []


def test_words_for_what_is_known() -> None:
    told = {each.name: each for each in describe(TINY)}
    assert told["one name in two scopes"].value == "the higher scope's entry replaces the other whole"
    assert (
        told["variables"].value
        == "${V} ${V:-d} in args, command, env, headers, url; one that is not set stays as it is"
    )
    assert told["an entry is switched off by"].value == "`enabled: false`"
    assert told["transports"].value == "http, sse, stdio"
    assert told["a leading `~` is filled in"].value == "no"
    assert told["what the model is given"].value == (
        "mcp__{server}__{tool}; keeps [A-Za-z0-9_-], else `_`; at most 64 characters; longer: the tool is left out; "
        "two alike: the first wins, the other is lost"
    )


def test_what_nobody_knows_has_no_value() -> None:
    told = {each.name: each for each in describe(NOTHING_KNOWN)}
    for name in (
        "one name in two scopes",
        "variables",
        "transports",
        "a leading `~` is filled in",
        "comments are taken",
    ):
        assert (told[name].value, told[name].evidence) == (None, "U")


@pytest.mark.parametrize(
    ("host", "begins", "letters"),
    [
        ("claude-code", "no field: ", "OD"),
        ("gemini-cli", "no field: ", "O"),
        ("cursor", "no field that is known: ", "U"),
    ],
)
def test_a_missing_switch_is_a_fact_where_it_is_known(host: str, begins: str, letters: str) -> None:
    adapter = registry.find(host)
    assert adapter is not None
    told = next(each for each in describe(adapter) if each.name == "an entry is switched off by")
    assert (told.value or "").startswith(begins)
    assert told.evidence == letters
