"""Allow and deny lists: globs, precedence, and the line that decided."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.gates.subject import Subject
from interlock.gates.tool_lists import ToolLists, matches
from interlock.model.decision import Answer

GATE = ToolLists()
MakeSubject = Callable[..., Subject]


@pytest.mark.parametrize(
    ("glob", "name", "fits"),
    [
        ("create_issue", "create_issue", True),
        ("create_issue", "Create_Issue", False),  # case counts
        ("create_issue", "create_issues", False),
        ("create_*", "create_", True),
        ("create_*", "create_issue", True),
        ("create_*", "recreate_issue", False),
        ("*", "", True),
        ("*", "anything/at.all\nwith a newline", True),
        ("***", "x", True),
        ("*_issue", "create_issue", True),
        ("*_issue", "create_issue_", False),
        ("a*a", "a", False),  # one character cannot be both ends
        ("a*a", "aa", True),
        ("ab*ba", "aba", False),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("*b*", "abc", True),
        ("*ab*ab*", "ab", False),
        ("*ab*ab*", "abab", True),
        ("create_?", "create_x", False),  # only the star is special
        ("create_?", "create_?", True),
        ("[ab]", "a", False),
        ("[ab]", "[ab]", True),
        ("a.c", "abc", False),
        ("", "", True),
        ("", "x", False),
        ("*ß", "straße", False),
        ("stra*e", "straße", True),
        ("STRASSE", "straße", False),
    ],
)
def test_glob(glob: str, name: str, fits: bool) -> None:
    assert matches(glob, name) is fits


@given(st.text("ab*", max_size=8), st.text("ab", max_size=12))
def test_a_glob_means_what_the_usual_matcher_says(glob: str, name: str) -> None:
    assert matches(glob, name) is bool(re.match(fnmatch.translate(glob), name))


def test_a_glob_with_many_stars_is_decided_at_once() -> None:
    """A backtracking matcher would need longer than the age of the universe; this one looks once for each part."""
    assert not matches("*a" * 40 + "*b", "a" * 5000)
    assert matches("*a" * 40 + "*b", "a" * 5000 + "b")


@pytest.mark.parametrize(
    ("allow", "deny", "answer", "rule"),
    [
        (None, (), Answer.ALLOW, None),
        (("create_*",), (), Answer.ALLOW, "/manifests/interlock.yaml:10"),
        (("x", "create_*"), (), Answer.ALLOW, "/manifests/interlock.yaml:11"),
        ((), (), Answer.DENY, "/manifests/interlock.yaml:1"),  # an empty list allows nothing
        (("Create_*",), (), Answer.DENY, "/manifests/interlock.yaml:1"),
        (None, ("create_*",), Answer.DENY, "/manifests/interlock.yaml:20"),
        (("create_issue",), ("*",), Answer.DENY, "/manifests/interlock.yaml:20"),  # a deny wins, however vague
        (("*",), ("x", "*_issue"), Answer.DENY, "/manifests/interlock.yaml:21"),
        (None, ("tracker/create_issue",), Answer.ALLOW, None),  # globs are relative to the server
    ],
)
def test_lists(
    subject: MakeSubject, allow: tuple[str, ...] | None, deny: tuple[str, ...], answer: Answer, rule: str | None
) -> None:
    decision = GATE.judge(subject(allow=allow, deny=deny))
    assert decision is not None
    assert (decision.answer, decision.rule) == (answer, rule)


@pytest.mark.parametrize("kind", ["prompts", "resources", "templates"])
def test_lists_speak_of_tools_only(subject: MakeSubject, kind: str) -> None:
    judged: Subject = subject(kind=kind, deny=("*",), allow=())
    assert GATE.judge(judged) is None
