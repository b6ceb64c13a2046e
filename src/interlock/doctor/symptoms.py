"""What people complain of, in their words, and which checks look for its cause, in the order of the seven stages."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from interlock.doctor.authorize import approval, host_approval, host_tool_lists, remote_sign_in, tool_rules
from interlock.doctor.describe import list_changes, list_time, tool_count, tool_definitions, tool_list, tool_names
from interlock.doctor.discover import (
    blast,
    entry_problems,
    host_connects,
    host_entry,
    known,
    line_endings,
    loopback,
    manifest,
    of_machine,
    other_home,
    plugin_versions,
    recorded_starts,
    start,
    start_time,
    two_entries,
    variables,
)
from interlock.doctor.examination import Examination
from interlock.doctor.execute import time_by_stage, timeouts
from interlock.doctor.finding import Check, Finding
from interlock.doctor.observe import asked, audit
from interlock.doctor.select import alike, bare_names
from interlock.doctor.shown import near
from interlock.doctor.validate import answers
from interlock.model.stage import Stage

Ask = Callable[[Examination], Awaitable[list[Finding]]]
Step = tuple[str, Stage, Ask]


@dataclass(frozen=True, slots=True)
class Symptom:
    slug: str
    words: str
    """What a person sees."""
    says: frozenset[str]
    """Words that point to it, beside those of the slug."""
    steps: Sequence[Step]
    starts: bool = False
    """It has to start servers; with a server named, that is consent."""


def _step(check: Check, ask: Ask) -> Step:
    return check.name, check.stage, ask


_KNOWN: Final = _step(known.CHECK, known.check)
_MANIFEST: Final = _step(manifest.CHECK, manifest.check)
_VARIABLES: Final = _step(variables.CHECK, variables.check)
_ENTRY: Final = _step(host_entry.CHECK, host_entry.check)
_PROBLEMS: Final = _step(entry_problems.CHECK, entry_problems.check)
_CONNECTS: Final = _step(host_connects.CHECK, host_connects.check)
_BLAST: Final = _step(blast.CHECK, blast.check)
_TWO: Final = _step(two_entries.CHECK, two_entries.check)
_RECORDED: Final = _step(recorded_starts.CHECK, recorded_starts.check)
_START: Final = _step(start.CHECK, start.check)
_DEFINITIONS: Final = _step(tool_definitions.CHECK, tool_definitions.check)
_NAMES: Final = _step(tool_names.CHECK, tool_names.check)
_COUNT: Final = _step(tool_count.CHECK, tool_count.check)
_RULES: Final = _step(tool_rules.CHECK, tool_rules.check)
_HOST_LISTS: Final = _step(host_tool_lists.CHECK, host_tool_lists.check)
_TIMES: Final = _step(time_by_stage.CHECK, time_by_stage.check)
_DEADLINES: Final = _step(timeouts.CHECK, timeouts.check)
_ANSWERS: Final = _step(answers.CHECK, answers.check)
_AUDIT: Final = _step(audit.CHECK, audit.check)
_ALIKE: Final = _step(alike.CHECK, alike.check)
_HOST_APPROVAL: Final = _step(host_approval.CHECK, host_approval.check)
_LINES: Final = _step(line_endings.CHECK, line_endings.check)
_LOOPBACK: Final = _step(loopback.CHECK, loopback.check)
_START_TIME: Final = _step(start_time.CHECK, start_time.check)
_LIST_TIME: Final = _step(list_time.CHECK, list_time.check)
_BARE: Final = _step(bare_names.CHECK, bare_names.check)
_LIST: Final = _step(tool_list.CHECK, tool_list.check)
_CHANGES: Final = _step(list_changes.CHECK, list_changes.check)
_ASKED: Final = _step(asked.CHECK, asked.check)
_MACHINE: Final = ("machine", Stage.DISCOVER, of_machine.check)
_PLUGINS: Final = _step(plugin_versions.CHECK, plugin_versions.check)


def _softer(step: Step) -> Step:
    """The same where nobody complained of it: worth a look, and no fault yet."""
    name, stage, ask = step

    async def softly(examination: Examination) -> list[Finding]:
        return [
            replace(each, severity="warning") if each.severity == "problem" else each for each in await ask(examination)
        ]

    return name, stage, softly


def _problems(*codes: str) -> Step:
    """All of these belong to the stage of the first."""
    stage = entry_problems.STAGES.get(codes[0], Stage.DISCOVER)
    return entry_problems.CHECK.name, stage, entry_problems.only(frozenset(codes))


_CANNOT_START = (
    "command-not-found", "command-not-on-gui-path", "command-relative", "cwd-missing", "shim-without-cmd", "foreign-path",
    "home-literal", "variable-literal", "variable-unset", "variable-withheld", "npx-asks", "name-never-starts", "name-reserved",
    "transport-unsupported", "placeholder-left",
)  # fmt: skip

SYMPTOMS: Final[Sequence[Symptom]] = (
    Symptom(
        "server-not-visible", "a host shows nothing of a server",
        frozenset(("missing", "invisible", "hidden", "absent", "shown", "see", "seen", "appear", "appears", "list", "servers")),
        (
            _KNOWN, _MANIFEST, _VARIABLES, _ENTRY, _BLAST, _CONNECTS,
            _problems("name-never-starts", "name-reserved", "wrong-table", "transport-unsupported", "command-not-found",
                      "merge-invalid", "host-failed", "field-ignored"),
            _RECORDED,
        ),
    ),
    Symptom(
        "tool-missing", "the server is there, and a tool of it is not",
        frozenset(("tools", "absent", "invisible", "unknown", "visible", "listed")),
        (
            _KNOWN, _MANIFEST, _VARIABLES, _ENTRY, _CONNECTS, _RECORDED,
            _LIST, _DEFINITIONS, _NAMES, _COUNT, _problems("name-collision", "name-too-long"),
            _CHANGES, _RULES, _HOST_LISTS,
        ),
        starts=True,
    ),
    Symptom(
        "wrong-tool", "the model calls another tool than the one that is meant",
        frozenset(("chosen", "choose", "chooses", "picks", "calls", "other", "confused", "alike", "tools")),
        (
            _problems("same-command-twice", "duplicate-key"), _TWO, _NAMES, _problems("name-collision"), _COUNT, _ALIKE,
            _BARE, _problems("also-direct"),
        ),
    ),
    Symptom(
        "no-approval", "a tool runs without a question, or the question never appears",
        frozenset(("approval", "ask", "asks", "asked", "asking", "prompt", "prompts", "permission", "confirm", "question", "unasked")),
        (
            _problems("switch-ignored"), _problems("also-direct"), _step(approval.CHECK, approval.check), _HOST_APPROVAL,
            _ASKED,
        ),
    ),
    Symptom(
        "oauth-loop", "signing in again and again",
        frozenset(("oauth", "sign", "login", "log", "signing", "browser", "loops", "again", "auth", "401", "token", "authorization")),
        (_KNOWN, _TWO, remote_sign_in.ANY, remote_sign_in.CONNECTION, remote_sign_in.SIGN_IN, remote_sign_in.LOG),
    ),
    Symptom(
        "does-not-start", "a server's process does not come up, or ends at once",
        frozenset(("server", "starts", "crash", "crashes", "fails", "failed", "exits", "dies", "spawn", "enoent", "stdio", "launch")),
        (_KNOWN, _MANIFEST, _VARIABLES, _ENTRY, _problems(*_CANNOT_START), _LINES, _START, _RECORDED),
        starts=True,
    ),
    Symptom(
        "windows-not-wsl", "it works on Windows and not in WSL, or the other way round",
        frozenset(("windows", "wsl", "linux", "wsl2")),
        (
            _problems("foreign-path", "shim-without-cmd", "loopback-in-container", "command-not-found", "command-relative",
                      "home-literal", "cwd-missing"),
            _step(other_home.CHECK, other_home.check), _LOOPBACK, _LINES,
        ),
    ),
    Symptom(
        "slow-first-call", "it takes long before the first answer",
        frozenset(("slow", "start", "startup", "first", "cold", "begin", "launch")),
        (
            _problems("unpinned-package", "npx-asks"), _RECORDED, _START, _START_TIME,
            _LIST_TIME,
        ),
        starts=True,
    ),
    Symptom(
        "slow-calls", "calls take long, or end without an answer",
        frozenset(("slow", "call", "hang", "hangs", "timeout", "timeouts", "timed", "latency", "waiting", "wait")),
        (_TIMES, _DEADLINES, _ANSWERS, _step(audit.CHECK, audit.needed)),
    ),
    Symptom(
        "old-plugin", "a plugin was updated and behaves as before",
        frozenset(("plugin", "plugins", "updated", "update", "version", "stale", "behaviour", "behavior", "cache", "extension")),
        (_PLUGINS, _problems("unpinned-package")),
    ),
    Symptom(
        "one-broke-all", "since one server was added, others are gone",
        frozenset(("broke", "broken", "everything", "others", "gone", "all", "whole", "host", "since", "added")),
        (
            _BLAST, _step(manifest.CHECK, manifest.errors),
            _problems("merge-invalid", "file-unreadable", "duplicate-key", "host-failed"), _DEFINITIONS,
        ),
    ),
)  # fmt: skip

EVERYTHING: Final[Sequence[Step]] = (
    _MACHINE,
    _MANIFEST, _VARIABLES, _BLAST, _ENTRY, _PROBLEMS, _CONNECTS, _TWO, _softer(_RECORDED),
    _LOOPBACK, _LINES, _PLUGINS,
    _DEFINITIONS, _NAMES, _COUNT, _softer(_ALIKE), _RULES, _HOST_LISTS, _softer(_TIMES), _softer(_DEADLINES), _ANSWERS, _AUDIT,
)  # fmt: skip
"""Without a symptom: all that can be seen without starting anything or asking the network. What a person may want so (calls
that run unasked) is left to its symptom, and what was slow or failed once is a warning."""
OF_SERVER: Final[Sequence[Step]] = (
    _KNOWN, _MANIFEST, _VARIABLES, _BLAST, _ENTRY, _PROBLEMS, _CONNECTS, _TWO, _softer(_RECORDED),
    _LINES, _LOOPBACK, _START, _START_TIME, remote_sign_in.CONNECTION,
    _LIST, _DEFINITIONS, _NAMES, _LIST_TIME, _softer(_ALIKE),
    _BARE, _RULES, _HOST_LISTS, remote_sign_in.SIGN_IN, _softer(_TIMES), _softer(_DEADLINES), _ANSWERS,
    _ASKED, remote_sign_in.LOG, _AUDIT,
)  # fmt: skip
OF_HOST: Final[Sequence[Step]] = (
    _KNOWN, _BLAST, _ENTRY, _PROBLEMS, _CONNECTS, _TWO, _LOOPBACK, _LINES, _PLUGINS,
    _DEFINITIONS, _NAMES, _COUNT, _CHANGES, _BARE, _HOST_LISTS,
    _HOST_APPROVAL,
)  # fmt: skip

BY_SLUG: Final = {each.slug: each for each in SYMPTOMS}
_FILLERS = frozenset(
    ("a", "an", "the", "is", "are", "my", "in", "on", "of", "it", "but", "and", "to", "i", "does", "do", "s")
)


def named(text: str) -> Symptom | None:
    """By its slug, or in a few plain words where only one symptom fits best."""
    slug = re.sub(r"[\s_]+", "-", text.strip().lower())
    if slug in BY_SLUG:
        return BY_SLUG[slug]
    said = _tokens(text)
    if len(said) < 2:
        return None
    scores = {each.slug: _score(each, said) for each in SYMPTOMS}
    best = max(scores.values())
    winners = [slug for slug, score in scores.items() if score == best]
    return BY_SLUG[winners[0]] if best >= 3 and len(winners) == 1 else None


def meant(text: str) -> list[str]:
    """Slugs of symptoms that may have been meant, the likeliest first."""
    said = _tokens(text)
    scores = {each.slug: _score(each, said) for each in SYMPTOMS}
    found = sorted((slug for slug, score in scores.items() if score > 0), key=lambda slug: -scores[slug])
    return list(dict.fromkeys([*near(text.replace(" ", "-"), BY_SLUG), *found]))[:3]


def _tokens(text: str) -> set[str]:
    plain = text.lower().replace("n't", " not").replace("\u2019t", " not")
    return {word for word in re.findall(r"[a-z0-9]+", plain) if word not in _FILLERS}


def _score(symptom: Symptom, said: set[str]) -> int:
    """A word of the slug counts twice as much as one that only points to it."""
    own = set(symptom.slug.split("-")) - _FILLERS
    return 2 * len(said & own) + len(said & (symptom.says - own))
