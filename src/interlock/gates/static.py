"""The gates that the manifest alone decides. A new one is a file beside this and a place in `STATIC_GATES`."""

from __future__ import annotations

from interlock.gates.approval import ApprovalGate
from interlock.gates.enablement import Enablement
from interlock.gates.subject import Gate, Subject
from interlock.gates.tool_lists import ToolLists
from interlock.model.decision import Decision, strictest

STATIC_GATES: tuple[Gate, ...] = (Enablement(), ToolLists(), ApprovalGate())


def judge(subject: Subject, gates: tuple[Gate, ...] = STATIC_GATES) -> Decision:
    """The strictest answer of all gates; `ask` where a tool gets none. What is read, not called, needs no approval."""
    answers = [decision for gate in gates if (decision := gate.judge(subject)) is not None]
    return strictest(answers)
