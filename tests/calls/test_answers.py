"""A fault as an answer: the same facts in both forms, for programs, models and people."""

from __future__ import annotations

import json

import pytest

from interlock.calls import answers
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict, worst
from interlock.wire.codes import CATALOG
from interlock.wire.eras import Era


def fault(verdict: Verdict = Verdict.WAIT, **more: object) -> Fault:
    return Fault("rate-limited", "srv: wait a little.", stage=Stage.EXECUTE, verdict=verdict, server="srv", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "facts"),
    [
        ({}, {}),
        ({"wait_seconds": 1.5}, {"wait_seconds": 1.5}),
        ({"wait_seconds": 0.0}, {"wait_seconds": 0.0}),
        ({"authorize_url": "https://x/"}, {"authorize_url": "https://x/"}),
        ({"approval_id": "a1"}, {"approval_id": "a1"}),
    ],
)
def test_facts(more: dict[str, object], facts: dict[str, object]) -> None:
    expected = {
        "interlock": "v1+abc",
        "error": "rate-limited",
        "server": "srv",
        "stage": "execute",
        "verdict": "wait",
        "retry": "later",
        **facts,
    }
    assert answers.facts(fault(**more), "v1+abc") == expected
    error = json.loads(answers.error_body(fault(**more), "v1+abc"))
    text = "interlock v1+abc: wait: srv: wait a little."
    assert error == {"code": CATALOG["rate-limited"][0], "message": text, "data": expected}
    for era in Era:
        result = json.loads(answers.tool_result(fault(**more), "v1+abc", era))
        assert result["isError"] is True
        assert result["content"] == [{"type": "text", "text": text}]
        assert {name: result["_meta"][name] for name in expected} == expected
        assert result.get("resultType") == ("complete" if era is Era.MODERN else None)


def test_a_code_may_be_the_protocols() -> None:
    error = json.loads(answers.error_body(fault(), "v1", -32002))
    assert (error["code"], error["message"]) == (-32002, "srv: wait a little.")


@pytest.mark.parametrize(
    ("verdict", "retry"), [(Verdict.NEVER_REACHED, "safe"), (Verdict.WAIT, "later"), (Verdict.OUTCOME_UNKNOWN, "check-first")]
)  # fmt: skip
def test_a_verdict_has_its_advice(verdict: Verdict, retry: str) -> None:
    assert fault(verdict).retry == retry
    assert fault(verdict, retry="never").retry == "never"


@pytest.mark.parametrize("first", Verdict)
@pytest.mark.parametrize("second", Verdict)
def test_the_worst_verdict_stands(first: Verdict, second: Verdict) -> None:
    order = [Verdict.NEVER_REACHED, Verdict.WAIT, Verdict.OUTCOME_UNKNOWN]
    assert worst(first, second) is order[max(order.index(first), order.index(second))]


def test_our_own_codes_are_outside_the_reserved_range_and_unique() -> None:
    own = [code for code, _ in CATALOG.values() if not -32768 <= code <= -32000]
    assert len(own) == len(set(own))
    protocol = {code for code, _ in CATALOG.values() if -32768 <= code <= -32000}
    assert protocol <= {-32602, -32601, -32600}  # where the protocol itself has a word for it
