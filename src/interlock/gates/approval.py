"""Must a person say yes to this call first? Nothing said in the manifest counts as `ask` (docs/manifest.md, Policy)."""

from __future__ import annotations

from typing import Final

from interlock.gates.subject import Subject
from interlock.manifest.config import Approval as Word
from interlock.manifest.config import Origin
from interlock.model.decision import Answer, Decision, strictest

HOSTS_THAT_ASK: Final[dict[str, str]] = {
    # Observed: these refuse an unannotated or destructive tool when nobody can answer (hosts-measured, section 8).
    "claude_code": "O",
    "claude-code": "O",
}
"""Hosts whose own asking is an evidenced fact, for `approval: host`."""


class ApprovalGate:
    """Judges tools only: reading a prompt or a resource changes nothing."""

    name = "approval"

    def judge(self, subject: Subject) -> Decision | None:
        if subject.kind != "tools":
            return None
        config = subject.config
        override = config.tools.get(subject.name)
        policy = config.policy
        declared_read = override is not None and override.read is True
        if override is not None and override.approval is not None:
            return self._word(override.approval, override.origin, subject, declared_read, "this tool")
        decisions: list[Decision] = []
        if policy.default_approval is not None:
            decisions.append(
                self._word(
                    policy.default_approval, policy.default_approval_origin, subject, declared_read, "the server"
                )
            )
        if policy.writes_approval is not None and not self._reads(subject, declared_read):
            decisions.append(
                self._word(policy.writes_approval, policy.writes_approval_origin, subject, declared_read, "writes")
            )
        if not decisions:
            return Decision(Answer.ASK, self.name, "the manifest says nothing of approval, which counts as ask")
        return strictest(decisions)

    def _reads(self, subject: Subject, declared_read: bool) -> bool:
        """Declared a read, and the server does not contradict it: a hint may tighten."""
        return declared_read and subject.destructive_hint is not True and subject.read_hint is not False

    def _word(self, word: Word, origin: Origin | None, subject: Subject, declared_read: bool, of: str) -> Decision:
        rule = str(origin) if origin is not None else None
        if word == "auto":
            return Decision(Answer.ALLOW, self.name, f"`auto` for {of}", rule)
        if word == "writes":
            if self._reads(subject, declared_read):
                return Decision(Answer.ALLOW, self.name, f"`writes` for {of}, and the manifest declares a read", rule)
            return Decision(Answer.ASK, self.name, f"`writes` for {of}, and it is not declared a read", rule)
        if word == "host":
            host = subject.host
            if host is not None and host in HOSTS_THAT_ASK:
                return Decision(Answer.ALLOW, self.name, f"`host` for {of}: {host} asks the person itself", rule)
            known = "no host is named" if host is None else f"it is not established that {host} asks"
            return Decision(Answer.ASK, self.name, f"`host` for {of}, but {known}", rule)
        return Decision(Answer.ASK, self.name, f"`{word}` for {of}", rule, always=word == "always")
