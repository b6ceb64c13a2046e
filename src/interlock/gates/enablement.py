"""Is the server switched on, and trusted to run?"""

from __future__ import annotations

from interlock.gates.subject import Subject
from interlock.model.decision import Answer, Decision


class Enablement:
    """Denies everything of a server that is disabled or blocked."""

    name = "enablement"

    def judge(self, subject: Subject) -> Decision | None:
        config = subject.config
        if config.blocked is not None:
            return Decision(Answer.DENY, self.name, config.blocked, str(config.origin))
        if not config.enabled:
            return Decision(Answer.DENY, self.name, "the server is switched off", str(config.origin))
        return Decision(Answer.ALLOW, self.name, "the server is enabled")
