"""Whether the server's certificate is one that this machine trusts, and until when."""

from __future__ import annotations

import asyncio
import ssl
import time
from urllib.parse import urlsplit

from interlock.doctor.case import Case
from interlock.doctor.finding import Finding, Severity
from interlock.doctor.probe import port_of
from interlock.model.stage import Stage
from interlock.upstream.oauth import network_words

SOON_DAYS = 14


async def check(case: Case) -> list[Finding]:
    parts = urlsplit(case.url)
    host, port = parts.hostname or "", port_of(case.url)
    where = f"{host}:{port}"
    if parts.scheme != "https":
        if host in ("localhost", "127.0.0.1", "::1"):
            return [_finding("ok", "plain http to this machine: no TLS needed", where)]
        return [
            _finding(
                "problem", "plain http to another machine", where,
                "Whoever is on the way reads tokens and changes calls.", "Use https.",
            )
        ]  # fmt: skip
    try:
        async with asyncio.timeout(case.seconds):
            # As the bridge itself does it.
            _reader, writer = await asyncio.open_connection(host, port, ssl=ssl.create_default_context())
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or "handshake failed"
        return [
            _finding(
                "problem", f"the TLS connection fails: {reason}", where, "No request can be sent.",
                "Check the certificate and this machine's clock, or set SSL_CERT_FILE to your organisation's CA bundle.",
            )
        ]  # fmt: skip
    except (OSError, TimeoutError) as error:
        _kind, why = network_words.why(error, host, port)
        return [_finding("unknown", f"no TLS connection could be made: {why}", where)]
    made: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    version = (made.version() if made is not None else None) or "TLS"
    certificate = (made.getpeercert() if made is not None else None) or {}
    writer.close()
    until = certificate.get("notAfter")
    if not isinstance(until, str):
        return [_finding("ok", f"{version}, the certificate is trusted", where)]
    days = (ssl.cert_time_to_seconds(until) - time.time()) / 86400
    seen = f"{version}, the certificate is trusted and good until {until}"
    if days < SOON_DAYS:
        why = "After that no request can be sent."
        return [_finding("warning", seen, where, why, "Tell those who run the server.")]
    return [_finding("ok", seen, where)]


def _finding(severity: Severity, seen: str, where: str = "", why: str = "", todo: str = "") -> Finding:
    return Finding(check="tls", stage=Stage.DISCOVER, severity=severity, seen=seen, where=where, why=why, todo=todo)
