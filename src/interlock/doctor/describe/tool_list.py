"""What the server itself lists: whether the tool is there at all, and whether there is a list."""

from __future__ import annotations

import shlex

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.lists import Listed, lists
from interlock.doctor.shown import count, listed, near, shown
from interlock.doctor.starting import FAILED
from interlock.model.stage import Stage

CHECK = Check("tool-list", Stage.DESCRIBE)


async def check(examination: Examination) -> list[Finding]:
    known = await lists(examination)
    findings = [finding for each in known if (finding := _of(each, examination)) is not None]
    names = {each.name for each in known}
    failed = {started.target.name for started in await examination.all_started() if started.snapshot is None}
    for target in await examination.targets():
        if target.name not in names and target.name not in failed:
            names.add(target.name)
            findings.append(
                CHECK.found(
                    "unknown", f"what `{target.name}` lists is not known: it was never asked through Interlock", target.where,
                    todo=f"`interlock doctor tool-missing --server {shlex.quote(target.name)}` starts it once and asks it.",
                    server=target.name, host=target.host,
                )
            )  # fmt: skip
    if examination.tool is not None and examination.server is None and known:
        findings = _somewhere(known, examination.tool, findings)
    return findings


def _of(each: Listed, examination: Examination) -> Finding | None:
    tools = each.snapshot.tools
    if not tools and any(problem.endswith(FAILED) for problem in each.snapshot.problems):
        return CHECK.found(
            "problem", f"`{each.name}` answered the question for its tools with an error", each.where,
            "It says that it has tools, and gives no list of them: hosts show none.",
            f"See what `{each.name}` says at its start: `interlock doctor does-not-start --server {shlex.quote(each.name)} --all`; "
            "its version, or a setting or credential that it wants, may be wrong.", server=each.name, host=each.host,
        )  # fmt: skip
    age = "" if each.fresh else " when it was last asked"
    if not tools and not each.snapshot.problems:
        return CHECK.found(
            "problem", f"`{each.name}` listed no tool at all{age}", each.where,
            "It answers, and offers none: some need an argument, a sign-in or a setting first.",
            "Look at the server's own documentation for what it needs before it offers tools.",
            server=each.name, host=each.host,
        )  # fmt: skip
    tool = examination.tool
    if tool is None or examination.server is None or tool in tools:
        return CHECK.found(
            "ok", f"`{each.name}` lists {count(len(tools), 'tool')}{age}", each.where, server=each.name, host=each.host
        )
    if any(f"/{tool}:" in problem for problem in each.snapshot.problems):
        return None  # it is there and withheld: `tool-definitions` says why
    meant = near(tool, tools)
    return CHECK.found(
        "problem", f"`{each.name}` itself lists no tool `{shown(tool, 80)}`{age}; it has {count(len(tools), 'tool')}", each.where,
        "Nothing between it and the host took it away.",
        f"Did you mean {listed(f'`{name}`' for name in meant)}?" if meant
        else "Its version, arguments or credential decide what it offers.",
        server=each.name, host=each.host,
    )  # fmt: skip


def _somewhere(known: list[Listed], tool: str, findings: list[Finding]) -> list[Finding]:
    if any(tool in each.snapshot.tools for each in known):
        return findings
    withheld = any(f"/{tool}:" in problem for each in known for problem in each.snapshot.problems)
    if withheld:
        return findings
    meant = near(tool, [name for each in known for name in each.snapshot.tools])
    return [
        *findings,
        CHECK.found(
            "problem", f"no server that is known here lists a tool `{shown(tool, 80)}`", todo=
            f"Did you mean {listed(f'`{name}`' for name in meant)}?" if meant else "Name the server: `--server KEY` asks it anew.",
        ),
    ]  # fmt: skip
