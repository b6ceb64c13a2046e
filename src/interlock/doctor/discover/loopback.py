"""Addresses of this machine where there are two: the loopback of a WSL or a container is not that of what surrounds it."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.probe import port_of
from interlock.doctor.shown import shown
from interlock.hosts.platforms import loopback
from interlock.manifest.config import HttpTransport
from interlock.model.stage import Stage
from interlock.wire.address import shown as shown_url

CHECK = Check("loopback", Stage.DISCOVER)


async def check(examination: Examination) -> list[Finding]:
    machine = examination.machine
    if machine.surrounding == "native":
        return []
    urls = [
        (config.key, "", str(config.origin), config.transport.endpoint)
        for config in examination.ready()
        if isinstance(config.transport, HttpTransport) and config.transport.endpoint
    ]
    for each in await examination.running():
        if each.runs is not None and each.runs.url:
            urls.append((each.server or "", each.host, str(each.spot), each.runs.url))
    findings = []
    for server, host, where, url in urls:
        means = loopback(url, machine)
        if not means.loops or await _listens(url):
            continue
        ways = [f"{way.url or 'the address of the gateway'} ({shown(way.when.note)})" for way in means.outside]
        findings.append(
            CHECK.found(
                "problem", f"{shown_url(url)} of `{server}` means {means.reaches}, and nothing listens there", where,
                "What listens on the other side has another address here.",
                f"Which one depends on the network's mode: {'; '.join(ways)}." if ways else "Start the server on this side.",
                server=server, host=host,
            )
        )  # fmt: skip
    return findings


async def _listens(url: str) -> bool:
    import asyncio
    from urllib.parse import urlsplit

    try:
        async with asyncio.timeout(2.0):
            _reader, writer = await asyncio.open_connection(urlsplit(url).hostname or "", port_of(url))
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
