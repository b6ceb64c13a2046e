"""Do the manifest's allow and deny lists let this tool through? A deny always wins over an allow."""

from __future__ import annotations

from collections.abc import Iterable

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
    return next((rule for rule in rules if matches(rule.glob, name)), None)


def matches(glob: str, name: str) -> bool:
    """Does the whole name fit the glob? Each part between stars is looked for once, so no pattern takes long.

    (A regular expression with many stars may try every way to share a name among them.)
    """
    if "*" not in glob:
        return glob == name
    first, *middle, last = glob.split("*")
    end = len(name) - len(last)
    if end < len(first) or not name.startswith(first) or not name.endswith(last):
        return False
    position = len(first)
    for part in middle:
        found = name.find(part, position, end)
        if found == -1:
            return False
        position = found + len(part)
    return True
