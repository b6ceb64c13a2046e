"""Do the manifest's allow and deny lists let this tool through? A deny always wins over an allow."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from interlock.gates.subject import Subject
from interlock.manifest.config import Rule
from interlock.model.decision import Answer, Decision


class ToolLists:
    """Globs are case-sensitive and relative to the server; `*` matches any characters, nothing else is special."""

    name = "tool lists"

    def judge(self, subject: Subject) -> Decision | None:
        if subject.kind != "tools":
            return None
        config = subject.config
        denied = _first(config.deny, subject.name)
        if denied is not None:
            return Decision(Answer.DENY, self.name, f"denied by {denied.glob!r}", str(denied.origin))
        if config.allow is None:
            return Decision(Answer.ALLOW, self.name, "no allow list: every tool is admitted")
        allowed = _first(config.allow, subject.name)
        if allowed is not None:
            return Decision(Answer.ALLOW, self.name, f"allowed by {allowed.glob!r}", str(allowed.origin))
        return Decision(Answer.DENY, self.name, "not on the allow list", str(config.origin))


def _first(rules: Iterable[Rule], name: str) -> Rule | None:
    return next((rule for rule in rules if _pattern(rule.glob).fullmatch(name)), None)


@lru_cache(maxsize=4096)
def _pattern(glob: str) -> re.Pattern[str]:
    # Collapsing runs of stars keeps the match linear for patterns such as `***a`.
    parts = re.split(r"\*+", glob)
    return re.compile(".*".join(re.escape(part) for part in parts), re.DOTALL)
