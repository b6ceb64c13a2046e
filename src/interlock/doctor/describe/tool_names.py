"""Names that hosts show: cut or hashed ones, and two tools that would get the same."""

from __future__ import annotations

from interlock.catalog.naming import exposed_name, name_table, profile_for
from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.lists import Listed, lists
from interlock.doctor.shown import listed, shown
from interlock.hosts.callable_names import Collision, call
from interlock.model.names import CanonicalName
from interlock.model.stage import Stage

CHECK = Check("tool-names", Stage.DESCRIBE)


async def check(examination: Examination) -> list[Finding]:
    known = [each for each in await lists(examination) if each.config is not None]
    profile = profile_for(examination.host)
    names = [CanonicalName(each.name, tool) for each in known for tool in each.snapshot.tools if not _verbatim(each)]
    if examination.tool is not None:
        names = [name for name in names if name.item == examination.tool]
    _table, lost = name_table(names, profile)
    findings = [
        CHECK.found(
            "problem", f"`{shown(str(name))}` would get the name of another tool for {profile.host}, and is left out",
            why="Its shortened name meets another one.", todo="Give its server a shorter key in the manifest.", server=name.server,
        )
        for name in lost
    ]  # fmt: skip
    changed = [name for name in names if exposed_name(name, profile) != f"{name.server}{profile.separator}{name.item}"]
    for server in dict.fromkeys(name.server for name in changed):
        mine = [name for name in changed if name.server == server]
        shortened = [f"`{shown(name.item, 80)}` as `{exposed_name(name, profile)}`" for name in mine]
        findings.append(
            CHECK.found(
                "note", f"hosts see {listed(shortened, 3)}",
                why=f"The plain name is longer or holds other characters than {profile.host} and the models behind it take.",
                todo="Look for it under that name; `interlock tools --host NAME` lists all.", server=server,
            )
        )  # fmt: skip
    return [*findings, *await _native(examination)]


async def _native(examination: Examination) -> list[Finding]:
    """Tools of servers that a host starts by itself, once they are known: those that it loses for their names."""
    tools: dict[str, dict[str, list[str]]] = {}
    for each in await lists(examination):
        if each.host:
            tools.setdefault(each.host, {})[each.name] = list(each.snapshot.tools)
    findings = []
    adapters = await examination.adapters()
    for host, servers in tools.items():
        rule = adapters[host].names.value if host in adapters else None
        called = call(servers, rule) if rule is not None and not rule.announced else None
        for met in called.collisions if called is not None else ():
            if examination.tool is None or any(item == examination.tool for _, item in met.keys):
                findings += _met(met, adapters[host].label, host)
        lost = [key for key, name in called.names.items() if name is None] if called is not None else []
        if examination.tool is not None:
            lost = [key for key in lost if key[1] == examination.tool]
        if lost:
            findings.append(
                CHECK.found(
                    "problem", f"{adapters[host].label} loses {listed(f'`{server}/{item}`' for server, item in lost)}: the name is "
                    "too long for it, or another tool has the same once it is cleaned",
                    why="It says nothing of it.",
                    todo="Give the server a shorter key, or put Interlock in front: its names are never lost.",
                    server=lost[0][0], host=host,
                )
            )  # fmt: skip
    return findings


def _met(each: Collision, label: str, host: str) -> list[Finding]:
    """Two tools of one name: both are there and one is renamed, or one is lost, and which one depends on their order."""
    if each.lost:
        return []  # told as lost, by name
    both = listed(f"`{server}/{item}`" for server, item in each.keys)
    what = "loses one of them" if each.lost is None else "renames one of them"
    return [
        CHECK.found(
            "problem" if each.lost is None else "warning",
            f"{both} would both be `{shown(each.name, 80)}` for {label}, which {what}",
            why="Which of the two has the plain name depends on the order in which they start.",
            todo=f"Give `{shown(each.keys[0][0], 80)}` or `{shown(each.keys[-1][0], 80)}` another key.",
            server=each.keys[0][0], host=host,
        )
    ]  # fmt: skip


def _verbatim(each: Listed) -> bool:
    return each.config is not None and each.config.names == "verbatim"
