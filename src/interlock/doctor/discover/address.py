"""Whether the server's name resolves, something listens there, and it answers HTTP; and how far the clocks are apart."""

from __future__ import annotations

import asyncio
import socket
import time
from urllib.parse import urlsplit

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.probe import Heard, Unreached, port_of
from interlock.model.stage import Stage
from interlock.wire.address import shown

SKEW_WORTH_SAYING = 30.0
"""Seconds; as in grant.log."""
_PROXIES = ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy")


async def check(case: Case) -> list[Finding]:
    host, port = urlsplit(case.url).hostname or "", port_of(case.url)
    where = f"{host}:{port}"
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(case.seconds):
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return [
            _finding(
                "problem", f"the name {host} does not resolve", where, "No request can be sent.",
                "Check the URL, the network and the VPN.",
            )
        ]  # fmt: skip
    addresses = ", ".join(dict.fromkeys(str(entry[4][0]) for entry in found))
    began = time.monotonic()
    try:
        async with asyncio.timeout(case.seconds):
            _reader, writer = await asyncio.open_connection(host, port)
        writer.close()
    except (OSError, TimeoutError) as error:
        refused = isinstance(error, ConnectionRefusedError) or "refused" in str(error).lower()
        proxies = [name for name in _PROXIES if case.machine.environ.get(name)]
        also = f" {proxies[0]} is set here; Interlock reaches MCP servers without a proxy." if proxies else ""
        return [
            _finding(
                "problem",
                f"nothing listens at {where}" if refused else f"{where} ({addresses}) takes no connection",
                where, f"No request can be sent.{also}", "Start the server, or correct its URL.",
            )
        ]  # fmt: skip
    took = (time.monotonic() - began) * 1000
    findings = [_finding("ok", f"{where} takes connections ({addresses}, {took:.0f} ms)", where)]
    try:
        heard = await case.first()
    except Unreached as failure:
        if failure.kind == "tls":
            return findings  # the next check has the reason
        findings.append(
            _finding(
                "problem", f"it takes the connection, and then: {failure}", shown(case.url),
                "Calls will end at their deadline, with an outcome that nobody knows.",
                "See the server's own log. Is this the URL of its MCP endpoint, and http or https as it speaks?",
            )
        )  # fmt: skip
        return findings
    findings.append(_answered(case, heard))
    if heard.skew is not None and abs(heard.skew) > SKEW_WORTH_SAYING:
        side = "behind" if heard.skew > 0 else "ahead of"
        findings.append(
            _finding(
                "warning", f"this machine's clock is {abs(heard.skew):.0f} s {side} the server's", shown(case.url),
                "Interlock judges tokens on the server's clock; other programs here may not.",
                "Let NTP set the clock.",
            )
        )  # fmt: skip
    return findings


def _answered(case: Case, heard: Heard) -> Finding:
    where, status, location = shown(case.url), heard.status, heard.headers.get("location", "")
    seen = f"it answers HTTP {status} in {heard.seconds * 1000:.0f} ms"
    if status in (301, 302, 303, 307, 308):
        return _finding(
            "problem", f"{seen} and points to {shown(location) or 'nowhere'}", where,
            "Redirects are not followed: credentials are for the address that you gave.",
            "Where it moved there, set that URL.",
        )  # fmt: skip
    if status >= 500:
        return _finding("problem", seen, where, "The server, or a proxy before it, is out of order.", "See its log.")
    if heard.nothing_there:
        return _finding(
            "problem",
            f"{seen}: there is no MCP server at this path",
            where,
            "Every call ends so.",
            "Check the URL's path. A server that speaks only HTTP+SSE of 2024-11-05 needs --transport sse.",
        )
    return _finding("ok", seen, where)


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(check="address", stage=Stage.DISCOVER, severity=severity, seen=seen, where=where, why=why, todo=todo)
