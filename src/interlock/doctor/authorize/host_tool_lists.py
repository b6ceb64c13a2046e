"""Lists of tools in hosts' own entries (`enabled_tools`, `excludeTools` ...): what they keep from the model."""

from __future__ import annotations

import fnmatch

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import listed, near, shown
from interlock.hosts.declaration import Declaration, Spot
from interlock.hosts.entry import Entry
from interlock.hosts.ours import ours
from interlock.model.stage import Stage

CHECK = Check("host-tool-lists", Stage.AUTHORIZE)
_ALLOW = ("enabled_tools", "includeTools", "tools", "allowedTools", "available_tools")
_DENY = ("disabled_tools", "excludeTools", "disabledTools")


async def check(examination: Examination) -> list[Finding]:
    findings = []
    tools = {
        (started.target.host, started.target.name): set(started.snapshot.tools)
        for started in await examination.all_started()
        if started.snapshot is not None
    }
    for each in await examination.running():
        entry = each.runs
        if entry is None or (entry.allow is None and not entry.deny) or ours(entry) == "bridge":
            continue
        findings += _look(each, entry, examination.tool, tools.get((each.host, each.server or "")))
    return findings


def _look(each: Declaration, entry: Entry, tool: str | None, known: set[str] | None) -> list[Finding]:
    findings = []
    if tool is not None:
        shut_out = entry.allow is not None and not _names(entry.allow, tool)
        if shut_out or _names(entry.deny, tool):
            findings.append(
                CHECK.found(
                    "problem", f"{each.host} does not show `{shown(tool, 80)}` of `{each.server}`: "
                    f"{'its list of tools leaves it out' if shut_out else 'its list of tools excludes it'}",
                    _spot(each, _ALLOW if shut_out else _DENY, tool),
                    "The host's own list decides, whatever the server offers.",
                    f"Write `{shown(tool, 80)}` into that list of {each.host}." if shut_out
                    else f"Take `{shown(tool, 80)}` out of that list of {each.host}.", server=each.server or "", host=each.host,
                )
            )  # fmt: skip
        return findings
    if entry.allow == () or "*" in entry.deny:
        fields = _ALLOW if entry.allow == () else _DENY
        return [
            CHECK.found(
                "problem", f"{each.host} shows no tool of `{each.server}` at all: its list of tools "
                f"{'is empty' if entry.allow == () else 'excludes every one'}", _spot(each, fields, "*"),
                "The host's own list decides, whatever the server offers.",
                f"Write the tools that are wanted into that list of {each.host}, or take the list out.",
                server=each.server or "", host=each.host,
            )
        ]  # fmt: skip
    kept = f"only {listed(entry.allow)}" if entry.allow is not None else f"all but {listed(entry.deny)}"
    findings.append(
        CHECK.found(
            "note", f"{each.host} shows {kept} of `{each.server}`", _spot(each, _ALLOW if entry.allow is not None else _DENY),
            "The host's own list decides, whatever the server offers.", server=each.server or "", host=each.host,
        )
    )  # fmt: skip
    wrong = [
        name
        for name in (*(entry.allow or ()), *entry.deny)
        if known is not None and name not in known and "*" not in name
    ]
    if wrong:
        meant = near(wrong[0], known or ())
        findings.append(
            CHECK.found(
                "problem", f"{each.host} names tools that `{each.server}` does not have: {listed(f'`{name}`' for name in wrong)}",
                _spot(each, (*_ALLOW, *_DENY)), "A name that fits nothing shows nothing, and keeps nothing back.",
                f"Did you mean {listed(f'`{name}`' for name in meant)}?" if meant else "Write the server's own names.",
                server=each.server or "", host=each.host,
            )
        )  # fmt: skip
    return findings


def _names(patterns: tuple[str, ...], tool: str) -> bool:
    """Hosts that take `*` take it for any part of a name; for the others no tool has one."""
    return any(fnmatch.fnmatchcase(tool, each.replace("[", "[[]")) for each in patterns)


def _spot(each: Declaration, fields: tuple[str, ...], tool: str | None = None) -> Spot:
    """The field of the entry, else the rule in another file that speaks of this tool, or of any."""
    spots = {**each.spots, **each.origins}
    rules = [spot for name, spot in each.tool_rules.items() if tool is None or _names((name,), tool)]
    return next((spots[name] for name in fields if name in spots), rules[0] if rules else each.spot)
