"""Names that the model is given: two that meet, and some that are too long.

With the tools of each server it can be told exactly; without them only what their keys alone decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from interlock.hosts.adapter import CallableNames
from interlock.hosts.callable_names import Called, call, prefix, server_part
from interlock.hosts.checks.codes import found
from interlock.hosts.checks.subject import Subject
from interlock.hosts.declaration import Declaration, Problem

ToolsOf = Callable[[Declaration], Sequence[str] | None]
CODES = frozenset(("name-collision", "name-too-long"))
ROOM = 16
"""A server's key that leaves less room than this for a tool's name is too long: `list_merge_requests` has 19."""


def check(subjects: Sequence[Subject], tools_of: ToolsOf | None = None) -> Iterator[tuple[Declaration, Problem]]:
    """All entries of one host at once."""
    running = {
        each.declaration.server: each
        for each in subjects
        if each.declaration.server is not None and each.runs is not None and each.declaration.state == "effective"
    }
    if not running:
        return
    rule = next(iter(running.values())).adapter.names.value
    if rule is None or rule.announced:
        return
    tools: dict[str, Sequence[str]] = {}
    for server, subject in running.items():
        known = tools_of(subject.declaration) if tools_of is not None else None
        if known is None and subject.declaration.tools is not None:
            known = subject.declaration.tools
        if known is not None:
            tools[server] = known
    called = call(tools, rule)
    yield from _met(running, called, rule)
    yield from _long(running, tools, called, rule)
    yield from _keys(running, tools, rule)


def _met(running: dict[str, Subject], called: Called, rule: CallableNames) -> Iterator[tuple[Declaration, Problem]]:
    for each in called.collisions:
        listed = " and ".join(f"`{server}/{tool}`" for server, tool in each.keys)
        for server in dict.fromkeys(server for server, _ in each.keys):
            subject = running[server]
            if each.lost is None:
                what = "one of them is lost without a word"
            elif each.lost:
                what = f"{', '.join(f'`{one}/{tool}`' for one, tool in each.lost)} is lost"
            else:
                what = "they are renamed apart"
            yield (
                subject.declaration,
                found(
                    "name-collision", f"{listed} are both `{each.name}` on {subject.adapter.label}: {what}.",
                    severity="note" if each.lost == () else None, spot=subject.declaration.spot,
                ),
            )  # fmt: skip


def _long(
    running: dict[str, Subject], tools: dict[str, Sequence[str]], called: Called, rule: CallableNames
) -> Iterator[tuple[Declaration, Problem]]:
    by_server: dict[str, list[str]] = {}
    for server, tool in called.shortened:
        by_server.setdefault(server, []).append(tool)
    for server, names in by_server.items():
        subject = running[server]
        longest = max(names, key=len)
        size = len(called.full[server, longest])
        what = {
            "dropped": "left out", "hash": "cut, with a hash at the end", "middle": "cut in the middle", "cut": "cut off",
            "cut-number": "cut off",
        }.get(rule.overflow or "", "too long, and what then happens is not known")  # fmt: skip
        count = f"{len(names)} tools are" if len(names) > 1 else "1 tool is"
        yield (
            subject.declaration,
            found(
                "name-too-long",
                f"{count} {what}: `{longest}` makes {size} characters, {subject.adapter.label} takes {rule.limit}.",
                severity="note" if rule.overflow == "hash" else None, spot=subject.declaration.spot,
            ),
        )  # fmt: skip


def _keys(
    running: dict[str, Subject], tools: dict[str, Sequence[str]], rule: CallableNames
) -> Iterator[tuple[Declaration, Problem]]:
    if rule.bare:
        return
    same: dict[str, list[str]] = {}
    for server, subject in running.items():
        same.setdefault(server_part(server, rule), []).append(server)
        room = None if rule.limit is None else rule.limit - len(prefix(server, rule))
        if room is not None and room < ROOM and server not in tools:
            yield (
                subject.declaration,
                found(
                    "name-too-long",
                    f"{subject.adapter.label} takes {rule.limit} characters in all; this key leaves {max(room, 0)} of them for "
                    "a tool's name.",
                    severity="problem" if room <= 0 and rule.overflow != "hash" else None, spot=subject.declaration.spot,
                ),
            )  # fmt: skip
    for name, servers in same.items():
        if len(servers) < 2 or all(server in tools for server in servers):
            continue
        listed = " and ".join(f"`{server}`" for server in servers)
        renamed = rule.clash in ("hash-both", "number")
        for server in servers:
            subject = running[server]
            yield (
                subject.declaration,
                found(
                    "name-collision",
                    f"{listed} are both `{name}` on {subject.adapter.label}: tools of one name "
                    + ("are renamed apart." if renamed else "meet, and one of them is lost."),
                    severity="note" if renamed else None, spot=subject.declaration.spot,
                ),
            )  # fmt: skip
