"""Two ways from one host to one remote server: its tools twice, and two sign-ins that can end each other."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import listed, shown
from interlock.hosts.declaration import Declaration
from interlock.hosts.ours import ours
from interlock.install.entries import same_url
from interlock.model.stage import Stage
from interlock.wire.address import shown as shown_url

CHECK = Check("two-entries", Stage.DISCOVER)


async def check(examination: Examination) -> list[Finding]:
    groups: list[tuple[str, str, list[Declaration]]] = []
    for each in await examination.running():
        for url in _urls(each):
            group = next((some for host, known, some in groups if host == each.host and same_url(known, url)), None)
            if group is None:
                groups.append((each.host, url, [each]))
            elif each not in group:
                group.append(each)
    return [_of(host, url, group) for host, url, group in groups if len(group) > 1]


def _urls(each: Declaration) -> list[str]:
    entry = each.runs
    if entry is None or ours(entry) == "connect":
        return []
    return (
        [entry.url] if entry.url else [word for word in entry.command if word.startswith(("http://", "https://"))][:1]
    )


def _of(host: str, url: str, group: list[Declaration]) -> Finding:
    names = listed(f"`{shown(each.server or '', 60)}`" for each in group)
    return CHECK.found(
        "problem", f"{host} has {len(group)} ways to {shown_url(url)}: {names}", " and ".join(str(each.spot) for each in group),
        "Its tools appear twice. Each way signs in by itself, and a server that ends the grant of a refresh token which is used "
        "twice sends both back to the sign-in, again and again.",
        "Take all but one out; one that starts `interlock bridge` or `interlock connect` shares one grant with all hosts.",
        server=group[0].server or "", host=host,
    )  # fmt: skip
