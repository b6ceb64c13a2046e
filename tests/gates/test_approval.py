"""The words of approval, what a server's hints may do to them, and whose word counts."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.gates.approval import ApprovalGate
from interlock.gates.subject import Subject
from interlock.manifest.config import Origin, Policy, ToolOverride
from interlock.model.decision import Answer, Decision

MakeSubject = Callable[..., Subject]
GATE = ApprovalGate()
ALLOW, ASK = Answer.ALLOW, Answer.ASK
WORDS = ("auto", "prompt", "approve", "always", "writes", "host", None)
HINTS = list(itertools.product((None, True, False), repeat=2))


def judged(subject: Subject) -> Decision:
    decision = GATE.judge(subject)
    assert decision is not None
    return decision


@pytest.mark.parametrize("where", ["server", "tool"])
@pytest.mark.parametrize(
    ("word", "declared", "host", "answer", "always"),
    [
        ("auto", None, None, ALLOW, False),
        ("auto", False, None, ALLOW, False),
        ("prompt", None, None, ASK, False),
        ("prompt", True, None, ASK, False),  # `prompt` asks every time, also for a read
        ("approve", True, "claude-code", ASK, False),
        ("always", True, "claude-code", ASK, True),
        ("writes", None, None, ASK, False),
        ("writes", False, None, ASK, False),
        ("writes", True, None, ALLOW, False),
        ("host", True, None, ASK, False),  # nobody says which host
        ("host", True, "cursor", ASK, False),  # not established that it asks
        ("host", None, "claude-code", ALLOW, False),
        ("host", None, "claude_code", ALLOW, False),
        ("host", None, "Claude-Code", ASK, False),
        ("host", None, "claude-code-evil", ASK, False),
        (None, None, None, ASK, False),  # nothing said counts as ask
        (None, True, "claude-code", ASK, False),
    ],
)
def test_words(
    subject: MakeSubject,
    where: str,
    word: str | None,
    declared: bool | None,
    host: str | None,
    answer: Answer,
    always: bool,
) -> None:
    origin = Origin(Path("/m.yaml"), 7) if word is not None else None
    if where == "server":
        policy = Policy(default_approval=word, default_approval_origin=origin)  # type: ignore[arg-type]
        override = ToolOverride(read=declared)
    else:
        policy, override = Policy(), ToolOverride(approval=word, read=declared, origin=origin)  # type: ignore[arg-type]
    decision = judged(subject(policy=policy, override=override, host=host))
    assert (decision.answer, decision.always) == (answer, always)
    assert decision.gate == "approval"
    assert decision.rule == ("/m.yaml:7" if word is not None else None)
    assert word is None or f"`{word}`" in decision.reason


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("declared", [None, True, False])
def test_hints_may_tighten_and_never_loosen(subject: MakeSubject, word: str | None, declared: bool | None) -> None:
    policy = Policy(default_approval=word)  # type: ignore[arg-type]
    override = ToolOverride(read=declared)
    plain = judged(subject(policy=policy, override=override, host="claude-code")).answer
    for read_hint, destructive_hint in HINTS:
        hinted = judged(
            subject(
                policy=policy,
                override=override,
                host="claude-code",
                read_hint=read_hint,
                destructive_hint=destructive_hint,
            )
        ).answer
        assert hinted >= plain, (read_hint, destructive_hint)


@pytest.mark.parametrize(
    ("read_hint", "destructive_hint", "answer"),
    [
        (None, None, ALLOW),
        (True, None, ALLOW),
        (True, False, ALLOW),
        (False, None, ASK),  # the server itself says that it writes
        (None, True, ASK),
        (True, True, ASK),
    ],
)
def test_a_server_may_contradict_a_declared_read(
    subject: MakeSubject, read_hint: bool | None, destructive_hint: bool | None, answer: Answer
) -> None:
    policy = Policy(default_approval="writes")
    decision = judged(
        subject(
            policy=policy,
            override=ToolOverride(read=True),
            read_hint=read_hint,
            destructive_hint=destructive_hint,
        )
    )
    assert decision.answer is answer


@pytest.mark.parametrize(
    ("default", "writes", "declared", "answer", "always"),
    [
        ("auto", None, None, ALLOW, False),
        ("auto", "prompt", None, ASK, False),
        ("auto", "prompt", True, ALLOW, False),
        ("auto", "always", None, ASK, True),
        ("prompt", "auto", None, ASK, False),  # the stricter of the two stands
        ("always", "prompt", None, ASK, True),
        ("prompt", "always", None, ASK, True),
        (None, "auto", None, ALLOW, False),
        (None, "auto", True, ASK, False),  # reads are not writes, and nothing else is said
        (None, "prompt", True, ASK, False),
    ],
)
def test_the_word_for_writes(
    subject: MakeSubject, default: str | None, writes: str | None, declared: bool | None, answer: Answer, always: bool
) -> None:
    policy = Policy(default_approval=default, writes_approval=writes)  # type: ignore[arg-type]
    decision = judged(subject(policy=policy, override=ToolOverride(read=declared)))
    assert (decision.answer, decision.always) == (answer, always)


def test_a_word_for_one_tool_replaces_the_servers(subject: MakeSubject) -> None:
    policy = Policy(default_approval="always", writes_approval="always")
    assert judged(subject(policy=policy, override=ToolOverride(approval="auto"))).answer is ALLOW
    other = subject(policy=policy, override=None)
    assert judged(other).always


@pytest.mark.parametrize("kind", ["prompts", "resources", "templates"])
def test_reading_needs_no_approval(subject: MakeSubject, kind: str) -> None:
    assert GATE.judge(subject(kind=kind, policy=Policy(default_approval="always"))) is None
