"""What grant.log says of this server: the last lines, and whether refreshes have been refused."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.model.stage import Stage
from interlock.upstream.oauth.grant_log import NAME, mask

SHOWN = 3
_TAIL = 64 * 1024
_BAD = frozenset(
    ("refresh-refused", "refresh-answer-lost", "grant-damaged", "grant-newer", "token-rejected", "clock-skew")
)


async def check(case: Case) -> list[Finding]:
    if not await case.uses_oauth():
        return []
    file = case.machine.home / NAME
    found = await case.found()
    resource = found.resource if found is not None else case.url
    host = resource.partition("//")[2].partition("/")[0].rpartition("@")[2] or urlsplit(case.url).netloc
    lines = [words for words in _lines(file) if words[4] == host]
    bad = [words for words in lines if words[3] in _BAD]
    if not lines:
        return [_finding("ok", "nothing is written there about it", str(file))]
    if not bad:
        last = lines[-1]
        return [_finding("ok", f"{last[0]} {last[3]}: {mask(last[5])}", str(file))]
    return [
        _finding("note", f"{words[0]} {words[3]}: {mask(words[5])}", str(file), "In the server's own words.")
        for words in bad[-SHOWN:]
    ]


def _lines(file: Path) -> list[list[str]]:
    """Time, build, process, event, host, words. Nothing where the file is not there or not ours to read."""
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return []
    with open(descriptor, "rb") as stream:
        stream.seek(max(os.fstat(descriptor).st_size - _TAIL, 0))
        tail = stream.read().decode("utf-8", "replace")
    split = (line.split(" ", 5) for line in tail.splitlines())
    return [words if len(words) == 6 else [*words, ""] for words in split if len(words) >= 5]


def _finding(severity: Severity, seen: str, where: str = "", why: str = "") -> Finding:
    return Finding(check="grant-log", stage=Stage.OBSERVE, severity=severity, seen=seen, where=where, why=why)
