"""Hosts that run tools unasked because their own file says so: `alwaysAllow`, `autoApprove`, `trust`, approval modes."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import listed
from interlock.hosts.declaration import Declaration
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact
from interlock.hosts.ours import ours
from interlock.model.stage import Stage

CHECK = Check("host-approval", Stage.AUTHORIZE)
_FIELDS = ("alwaysAllow", "autoApprove", "trust", "default_tools_approval_mode", "approvals", "tools")
HINT_IS_ENOUGH = Fact(
    frozenset(("codex", "qwen-code", "copilot-cli")), "O",
    "without a person to ask they run a tool that calls itself read-only, and refuse the others",
)  # fmt: skip
ASK_NOBODY = Fact(frozenset(("opencode", "pi")), "O", "without a rule of their own they run every tool of a server")


async def check(examination: Examination) -> list[Finding]:
    findings: list[Finding] = []
    for each in await examination.running():
        entry = each.runs
        if entry is not None:
            findings += _own(each, entry, examination.tool)
            if ours(entry) is None:
                findings += _by_nature(each)
    for started in await examination.all_started():
        target = started.target
        if started.snapshot is None or target.host not in (HINT_IS_ENOUGH.value or ()):
            continue
        names = [name for name, tool in started.snapshot.tools.items() if tool.read_hint is True]
        if names:
            findings.append(
                CHECK.found(
                    "problem", f"{target.host} runs {listed(f'`{name}`' for name in names)} of `{target.name}` unasked: the server "
                    "calls them read-only", target.where, "The hint is the server's own word; nobody has checked it.",
                    "Put Interlock in front: it passes the hint on only where the manifest declares the tool a read.",
                    server=target.name, host=target.host, code="read-only-hint",
                )
            )  # fmt: skip
    return findings


def _own(each: Declaration, entry: Entry, tool: str | None) -> Iterator[Finding]:
    spots = {**each.spots, **each.origins}
    if tool is not None and tool in entry.approvals:
        auto = [tool] if entry.approvals[tool] == "auto" else []
    else:
        auto = [
            name
            for name, how in entry.approvals.items()
            if (how == "auto" and tool in (None, name)) or (name == "*" and how == "auto")
        ]
    if not auto:
        return
    names = [f"tools.{name}.approval_mode" for name in auto]
    field = next((name for name in (*names, *_FIELDS) if name in spots), "")
    rule = next((each.tool_rules[name] for name in auto if name in each.tool_rules), None)
    # The entry's own word is the one that counts where there are both.
    spot = spots[field] if field else rule or each.spot
    what = "every tool" if "*" in auto else listed(f"`{name}`" for name in auto)
    if field:
        todo = f"Change `{field}` of `{each.server}`: {each.host} should ask before {what}."
    elif rule is not None:
        todo = f"Take the rule that allows {what} of `{each.server}` out of that list, if {each.host} should ask."
    else:
        todo = f"Look for the rule for `{each.server}` in the settings of {each.host}, if it should ask."
    yield CHECK.found(
        "problem", f"{each.host} runs {what} of `{each.server}` without asking: its own file says so", spot,
        "The host decides before anybody else is asked; what Interlock asks for comes on top.",
        todo, server=each.server or "", host=each.host,
    )  # fmt: skip


def _by_nature(each: Declaration) -> Iterator[Finding]:
    for fact, what in ((ASK_NOBODY, "every tool"), (HINT_IS_ENOUGH, "tools that call themselves read-only")):
        if each.host in (fact.value or ()):
            yield CHECK.found(
                "note", f"{each.host} runs {what} of `{each.server}` without asking, unless a rule of its own says otherwise",
                each.spot, f"Observed of this host: {fact.note}.",
                "Put Interlock in front: its manifest says what asks.", server=each.server or "", host=each.host,
                code="asks-nobody",
            )  # fmt: skip
