"""Tools whose definition is malformed: what Interlock repairs or withholds, and hosts that drop the whole server for it."""

from __future__ import annotations

import re

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.lists import Listed, lists
from interlock.doctor.shown import listed, shown
from interlock.hosts.fact import Fact
from interlock.model.stage import Stage

CHECK = Check("tool-definitions", Stage.DESCRIBE)
DROP_THE_SERVER = Fact(
    frozenset(("claude-code", "opencode", "gemini-cli", "qwen-code", "pi")), "O",
    "one tool with an `inputSchema` that is missing, or whose type is not an object, costs all tools of its server",
)  # fmt: skip
"""Codex bears most such schemas, and Copilot CLI rewrites them."""
LOSE_FOR_A_NAME_TWICE = Fact(
    frozenset(("qwen-code",)), "O", "a tool's name that is listed twice costs the whole server"
)
_TWICE = "lists this name more than once"


async def check(examination: Examination) -> list[Finding]:
    return [finding for each in await lists(examination) for finding in _of(each, examination)]


def _of(each: Listed, examination: Examination) -> list[Finding]:
    wrong = [(name, text) for name, text in map(_taken_apart, each.snapshot.problems) if text]
    if examination.tool is not None:
        wrong = [pair for pair in wrong if pair[0] == examination.tool]
    if not wrong:
        return []
    if each.host:
        return _direct(each, wrong)
    withheld = [pair for pair in wrong if "withheld:" in pair[1]]
    findings = []
    if withheld:
        findings.append(
            CHECK.found(
                "problem" if examination.tool is not None else "warning",
                f"`{each.name}` lists {listed(f'`{name}`' for name, _ in withheld)} so that hosts cannot take it: "
                f"{shown(withheld[0][1], 300)}",
                each.where, "Interlock withholds that one tool: with it, most hosts would drop all tools of the server.",
                "Tell those who make the server; the text says which member is wrong.", server=each.name,
            )
        )  # fmt: skip
    repaired = [pair for pair in wrong if pair not in withheld]
    if repaired:
        findings.append(
            CHECK.found(
                "note", f"definitions of `{each.name}` that Interlock repairs: {listed(f'`{name}`' for name, _ in repaired)}: "
                f"{shown(repaired[0][1], 300)}", each.where,
                "Hosts that reach the server directly may drop all of its tools for it.", server=each.name,
            )
        )  # fmt: skip
    return findings


def _direct(each: Listed, wrong: list[tuple[str, str]]) -> list[Finding]:
    """A host that reaches the server without Interlock gets the definitions as they are."""
    twice = [pair for pair in wrong if _TWICE in pair[1]]
    schema = [pair for pair in wrong if "inputSchema" in pair[1]]
    costs_all = (bool(schema) and each.host in (DROP_THE_SERVER.value or ())) or (
        bool(twice) and each.host in (LOSE_FOR_A_NAME_TWICE.value or ())
    )
    worst = (schema or twice or wrong)[0]
    return [
        CHECK.found(
            "problem" if costs_all else "warning",
            f"the tool `{shown(worst[0], 80)}` of `{each.name}` is malformed: {shown(_plain(worst[1]), 300)}", each.where,
            f"{each.host} drops ALL tools of a server for one such definition." if costs_all
            else f"{each.host} may drop that tool, or all of the server's.",
            "Put Interlock in front (`interlock adopt --dry-run`): it repairs or withholds that one tool. And tell those who make "
            "the server.",
            server=each.name, host=each.host,
        )
    ]  # fmt: skip


def _taken_apart(problem: str) -> tuple[str, str]:
    """`server/tool: text` of a snapshot's problems; no text where it is about something else."""
    match = re.match(r"[^/: ]+/(?P<tool>.+?)(?P<list> of \w+/\w+(?:/\w+)?)?: (?P<text>.*)\Z", problem, re.DOTALL)
    return (match["tool"], match["text"]) if match is not None and match["list"] is None else ("", "")


def _plain(text: str) -> str:
    return text.removeprefix("withheld: ")
