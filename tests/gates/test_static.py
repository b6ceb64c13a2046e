"""All static gates together: the strictest wins, and each answer says which gate and line decided."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from interlock.gates.enablement import Enablement
from interlock.gates.static import STATIC_GATES, judge
from interlock.gates.subject import Subject
from interlock.manifest.config import Policy, ToolOverride
from interlock.model.decision import Answer, Decision, strictest

MakeSubject = Callable[..., Subject]
AUTO = Policy(default_approval="auto")


@pytest.mark.parametrize(
    ("said", "answer", "gate", "reason"),
    [
        ({"policy": AUTO}, Answer.ALLOW, "approval", "`auto` for the server"),
        ({}, Answer.ASK, "approval", "the manifest says nothing of approval, which counts as ask"),
        ({"policy": AUTO, "deny": ("*",)}, Answer.DENY, "tool lists", "denied by '*'"),
        ({"policy": AUTO, "allow": ()}, Answer.DENY, "tool lists", "not on the allow list"),
        ({"policy": AUTO, "enabled": False}, Answer.DENY, "enablement", "the server is switched off"),
        ({"policy": AUTO, "blocked": "not trusted"}, Answer.DENY, "enablement", "not trusted"),
        # Of several denials the first gate's is told.
        ({"policy": AUTO, "blocked": "not trusted", "deny": ("*",)}, Answer.DENY, "enablement", "not trusted"),
        # An override for one tool cannot undo a deny.
        ({"override": ToolOverride(approval="auto"), "deny": ("*",)}, Answer.DENY, "tool lists", "denied by '*'"),
    ],
)
def test_tools(subject: MakeSubject, said: dict[str, object], answer: Answer, gate: str, reason: str) -> None:
    decision = judge(subject(**said))
    assert (decision.answer, decision.gate, decision.reason) == (answer, gate, reason)


@pytest.mark.parametrize("kind", ["prompts", "resources", "templates"])
@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ({}, Answer.ALLOW),
        ({"deny": ("*",), "allow": ()}, Answer.ALLOW),  # the lists name tools
        ({"enabled": False}, Answer.DENY),
        ({"blocked": "not trusted"}, Answer.DENY),
    ],
)
def test_what_is_read(subject: MakeSubject, kind: str, said: dict[str, object], answer: Answer) -> None:
    assert judge(subject(kind=kind, **said)).answer is answer


def test_no_gate_can_loosen_another(subject: MakeSubject) -> None:
    """Whatever order the gates stand in, and whichever are added, the answer only gets stricter."""

    class Says:
        name = "says"

        def __init__(self, answer: Answer) -> None:
            self.answer = answer

        def judge(self, subject: Subject) -> Decision:
            return Decision(self.answer, self.name, "as told")

    for said in ({"policy": AUTO}, {}, {"deny": ("*",)}):
        judged = subject(**said)
        plain = judge(judged).answer
        for answer in Answer:
            for gates in ((Says(answer), *STATIC_GATES), (*STATIC_GATES, Says(answer))):
                assert judge(judged, gates).answer == max(plain, answer)


def test_no_gate_at_all_counts_as_ask(subject: MakeSubject) -> None:
    assert judge(subject(policy=AUTO), ()).answer is Answer.ASK
    assert strictest([]).answer is Answer.ASK


def test_the_word_always_is_not_lost_among_equals() -> None:
    plain, always = Decision(Answer.ASK, "a", "x"), Decision(Answer.ASK, "b", "y", always=True)
    assert strictest([plain, always]).always
    assert strictest([always, plain]).always


def test_a_blocked_server_says_why_before_it_says_off(subject: MakeSubject) -> None:
    decision = Enablement().judge(subject(enabled=False, blocked="not trusted"))
    assert decision is not None
    assert (decision.answer, decision.reason) == (Answer.DENY, "not trusted")
