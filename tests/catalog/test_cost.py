"""The estimate of context tokens, against counts of a real encoding (o200k_base) taken once and written down here."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.catalog.cost import tokens

MEASURED: list[tuple[dict[str, object], int]] = [
    (
        {
            "name": "search",
            "description": "Search the notes of the current user and return the best matches.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "Words to look for"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
                },
                "required": ["query"],
            },
        },
        67,
    ),
    ({"name": "now", "description": "Current time.", "inputSchema": {"type": "object"}}, 17),
    (
        {
            "name": "createPullRequestReviewComment",
            "description": "Adds a comment to a line of a pull request's diff.\n\n"
            "Fails where the line is not part of the diff.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "repositoryOwner": {"type": "string"},
                    "repositoryName": {"type": "string"},
                    "pullNumber": {"type": "integer"},
                    "startLine": {"type": ["integer", "null"]},
                    "body": {"type": "string", "maxLength": 65536},
                },
                "required": ["repositoryOwner", "repositoryName", "pullNumber", "body"],
                "additionalProperties": False,
            },
        },
        112,
    ),
    (
        {
            "name": "wetter",
            "description": "Gibt die Wettervorhersage für einen Ort zurück, höchstens für die nächsten vierzehn Tage.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "ort": {"type": "string", "description": "Straße, Ort oder Postleitzahl"},
                    "tage": {"type": "integer"},
                },
            },
        },
        65,
    ),
    (
        {
            "name": "lookup_currency",
            "description": "Exchange rate of two currencies on a day (ISO 4217 codes, ISO 8601 date).",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "from": {"enum": ["EUR", "USD", "GBP", "JPY", "CHF", "SEK", "NOK", "DKK", "PLN", "CZK"]},
                    "to": {"$ref": "#/properties/from"},
                    "on": {"type": "string", "format": "date", "examples": ["2026-07-28", "1999-12-31"]},
                },
                "required": ["from", "to"],
            },
        },
        114,
    ),
]


@pytest.mark.parametrize(("tool", "measured"), MEASURED, ids=lambda value: value if isinstance(value, int) else "tool")
def test_the_estimate_is_near_a_real_count(tool: dict[str, object], measured: int) -> None:
    assert tokens(json.dumps(tool).encode()) == pytest.approx(measured, rel=0.1)


def test_the_sum_of_several_tools_is_nearer() -> None:
    estimated = sum(tokens(json.dumps(tool).encode()) for tool, _ in MEASURED)
    assert estimated == pytest.approx(sum(measured for _, measured in MEASURED), rel=0.03)


def test_only_what_hosts_send_is_counted() -> None:
    tool = MEASURED[0][0]
    more = tool | {"title": "T" * 500, "outputSchema": {"type": "object"}, "annotations": {"title": "x"}, "_meta": {}}
    assert tokens(json.dumps(more).encode()) == tokens(json.dumps(tool).encode())


def test_the_form_on_the_wire_does_not_matter() -> None:
    tool = MEASURED[3][0]
    compact = json.dumps(tool, separators=(",", ":"), ensure_ascii=False).encode()
    assert tokens(json.dumps(tool, indent=4).encode()) == tokens(compact)


def test_more_text_costs_more() -> None:
    costs = [tokens(json.dumps({"name": "t", "description": "word " * count}).encode()) for count in (1, 10, 100, 1000)]
    assert costs == sorted(set(costs))
    assert costs[3] - costs[2] == pytest.approx(900, rel=0.1)


@pytest.mark.parametrize(("raw", "expected"), [(b"", 1), (b"nonsense " * 10, 20), (b"[1]", 1), (b'{"name":5}', 5)])
def test_what_is_no_tool_has_a_cost_too(raw: bytes, expected: int) -> None:
    assert tokens(raw) == expected


@given(st.binary(max_size=200))
def test_junk_never_raises(raw: bytes) -> None:
    assert tokens(raw) >= 1
