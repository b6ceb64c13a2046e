"""Tools of two servers that a model can hardly tell apart: by their names once cleaned, or by their descriptions."""

from __future__ import annotations

import difflib
import json
import re
from itertools import combinations

from interlock.catalog.snapshot import Entry
from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.judged import admitted
from interlock.doctor.lists import Listed, lists
from interlock.doctor.shown import shown
from interlock.model.stage import Stage

CHECK = Check("alike-tools", Stage.SELECT)
ALIKE = 0.9
"""Share of a description's words that has to be the same."""
LEAST_WORDS = 5
MOST = 10
MOST_TOOLS = 600


async def check(examination: Examination) -> list[Finding]:
    known = await lists(examination)
    if examination.server is not None and len(known) < 2:
        known = await _all(examination)
    tools = [(each, entry) for each in known for entry in _offered(each, examination.host)][:MOST_TOOLS]
    described = {id(entry): _words(_description(entry)) for _, entry in tools}
    findings = []
    for (one, first), (other, second) in combinations(tools, 2):
        if one.name == other.name or one.host != other.host:
            continue
        if examination.tool is not None and examination.tool not in (first.canonical.item, second.canonical.item):
            continue
        if examination.server is not None and examination.server not in (one.name, other.name):
            continue
        same_name = _cleaned(first.canonical.item) == _cleaned(second.canonical.item)
        if same_name or _alike(described[id(first)], described[id(second)]):
            findings.append(_of(one, first, other, second, same_name))
    return findings[:MOST]


async def _all(examination: Examination) -> list[Listed]:
    """A tool is confused with another server's, so those are needed also where one server was named."""
    kept = await examination.snapshots()
    return [
        Listed(config.key, str(config.origin), kept[config.key], config, "", False)
        for config in examination.loaded.gateway.servers.values()
        if config.key in kept and config.enabled and config.blocked is None
    ]


def _offered(each: Listed, host: str | None) -> list[Entry]:
    return admitted(each, host) if each.config is not None else list(each.snapshot.tools.values())


def _of(one: Listed, first: Entry, other: Listed, second: Entry, same_name: bool) -> Finding:
    mine, theirs = f"{one.name}/{first.canonical.item}", f"{other.name}/{second.canonical.item}"
    what = "the same name once cleaned" if same_name else "nearly the same description"
    deny = f"`capability: {{tools: {{deny: [{shown(second.canonical.item, 80)}]}}}}`"
    return CHECK.found(
        "problem", f"`{shown(mine)}` and `{shown(theirs)}` have {what}", f"{one.where} and {other.where}",
        "A model chooses by name and description; between these two it has nothing to go by.",
        f"Deny the one that is not wanted: {deny} in the entry at {other.where}. Where both are needed, let their servers describe "
        "what sets them apart.",
        server=one.name, host=one.host,
    )  # fmt: skip


def _cleaned(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _description(entry: Entry) -> str:
    try:
        text = json.loads(entry.raw).get("description")
    except (ValueError, RecursionError, AttributeError):
        return ""
    return text if isinstance(text, str) else ""


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())[:200]


def _alike(one: list[str], other: list[str]) -> bool:
    shorter, longer = sorted((len(one), len(other)))
    if shorter < LEAST_WORDS or shorter < ALIKE * longer / (2 - ALIKE):
        return False
    if len(set(one) & set(other)) < (2 * ALIKE - 1) * len(set(one)):  # nearly all pairs end here, and this is cheap
        return False
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio() >= ALIKE
