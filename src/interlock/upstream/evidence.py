"""What proves that a server did not act. The list is closed: whatever is not on it is `outcome_unknown`.

`never_reached`: the connection was refused, the name did not resolve, TLS failed, the request was refused before its
first byte left, 401 or 403 came with a challenge, 404 for a session, a header or version error.
"""

from __future__ import annotations

import errno
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Final

from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict

MAY_HAVE_ACTED: Final = "The call may have taken effect: read the target again before a retry."


def connect_failed(server: str, where: str, error: BaseException) -> Fault:
    """The connection could not be made, so no byte of the request left. `where` is host:port, without credentials."""
    if isinstance(error, ssl.SSLError | ssl.CertificateError):
        reason = getattr(error, "verify_message", "") or getattr(error, "reason", "") or "handshake failed"
        return Fault(
            "tls-failed",
            f"{server}: the TLS connection to {where} failed ({reason}). Check the certificate, or set SSL_CERT_FILE "
            "to your organisation's CA bundle.",
            stage=Stage.EXECUTE,
            verdict=Verdict.NEVER_REACHED,
            server=server,
        )
    if isinstance(error, socket.gaierror):
        what = f"the name {where.rsplit(':', 1)[0]} does not resolve"
    elif isinstance(error, ConnectionRefusedError):
        what = f"nothing listens at {where}"
    elif isinstance(error, TimeoutError):
        what = f"{where} did not accept the connection in time"
    elif isinstance(error, OSError) and error.errno is None and "refused" in str(error).lower():
        what = f"nothing listens at {where}"  # a name with several addresses, each of which refused
    elif isinstance(error, OSError) and error.errno is not None:
        what = f"{where}: {errno.errorcode.get(error.errno, 'error')}"
    else:
        what = f"{where}: {type(error).__name__}"
    return Fault(
        "unreachable",
        f"{server}: {what}. The server did not get the request; start it or correct its endpoint, then retry.",
        stage=Stage.EXECUTE,
        verdict=Verdict.NEVER_REACHED,
        server=server,
    )


def lost(server: str, how: str) -> Fault:
    """The request left and the connection ended without an answer."""
    return Fault(
        "connection-lost",
        f"{server}: {how} before the answer came. {MAY_HAVE_ACTED}",
        stage=Stage.EXECUTE,
        verdict=Verdict.OUTCOME_UNKNOWN,
        server=server,
    )


def not_sent(server: str, how: str) -> Fault:
    """The request was still in our hands when the connection ended."""
    return Fault(
        "connection-lost",
        f"{server}: {how} before the request was sent. Retry freely.",
        stage=Stage.EXECUTE,
        verdict=Verdict.NEVER_REACHED,
        server=server,
    )


def refused_twice(server: str) -> Fault:
    """The session was refused in two sessions in a row, as one that the server does not know."""
    return Fault(
        "connection-lost",
        f"{server}: the server refused the request twice, in two sessions, as belonging to none that it knows. It did not act on "
        "it; but a server that forgets every session cannot be used.",
        stage=Stage.EXECUTE,
        verdict=Verdict.NEVER_REACHED,
        server=server,
    )


def timed_out(server: str, method: str, seconds: float) -> Fault:
    return Fault(
        "timeout",
        f"{server}: no answer to {method} within {seconds:g} s; the request was cancelled. It may have taken effect: read the "
        "target again before a retry. policy.toolTimeoutSeconds sets the limit.",
        stage=Stage.EXECUTE,
        verdict=Verdict.OUTCOME_UNKNOWN,
        server=server,
    )


def never_connected(server: str, method: str, seconds: float) -> Fault:
    """The deadline passed while the request still waited for a connection."""
    return Fault(
        "unreachable",
        f"{server}: no connection could be made within {seconds:g} s, so {method} was not sent. Retry when the server is there.",
        stage=Stage.EXECUTE,
        verdict=Verdict.NEVER_REACHED,
        server=server,
    )


def bad_answer(server: str, what: str) -> Fault:
    return Fault(
        "bad-answer",
        f"{server}: {what}. {MAY_HAVE_ACTED}",
        stage=Stage.EXECUTE,
        verdict=Verdict.OUTCOME_UNKNOWN,
        server=server,
    )


ACTS_ON_NOTHING: Final = frozenset(
    {
        "initialize", "ping", "server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list",
        "resources/read", "prompts/get", "completion/complete", "subscriptions/listen", "logging/setLevel",
    }
)  # fmt: skip
"""Requests that may be sent again whatever became of the first: they change nothing that anybody would miss."""


def asks_for_credential(status: int, headers: Mapping[bytes, bytes], method: str) -> bool:
    """True where the same request may go out again with a better credential.

    A 401 with a challenge proves that the request was not acted on (RFC 9110, 15.5.2), and so does a 403 that asks for
    scopes (RFC 6750, 3.1). Many servers forget the challenge: then only what changes nothing is sent again.
    """
    challenge = headers.get(b"www-authenticate", b"").lower()
    if status == 401:
        return bool(challenge) or method in ACTS_ON_NOTHING
    return status == 403 and b"insufficient_scope" in challenge


def authorization_broke(server: str, error: BaseException) -> Fault:
    return Fault(
        "internal",
        f"{server}: a fault in Interlock while it looked for a credential ({type(error).__name__}); the server did not get the "
        "request. `interlock trace` and standard error have more.",
        stage=Stage.EXECUTE,
        verdict=Verdict.NEVER_REACHED,
        server=server,
    )


def http_refusal(server: str, status: int, headers: Mapping[bytes, bytes], mask: Callable[[str], str] = str) -> Fault:
    """An HTTP status that is not an answer to the request. `headers` has lower-case names; `mask` hides what is secret."""
    # RFC 9110, 15.5.2: a 401 comes with a challenge. Without one it may be anything's, also that of a tool half done.
    acted = "" if b"www-authenticate" in headers else f" {MAY_HAVE_ACTED}"
    proven = Verdict.OUTCOME_UNKNOWN if acted else Verdict.NEVER_REACHED
    if status == 401:
        return Fault(
            "unauthorized",
            f"{server}: the server wants a credential (HTTP 401){'' if acted else ' and did not act'}. Set `auth: oauth`, "
            f"`auth: token` (--token-env, --token-file) or a header from the environment (--header-env).{acted}",
            stage=Stage.EXECUTE,
            verdict=proven,
            server=server,
            http_status=status,
        )
    if status == 403:
        return Fault(
            "forbidden",
            f"{server}: the server refused the credential or the request (HTTP 403).{acted}",
            stage=Stage.EXECUTE,
            verdict=proven,
            server=server,
            http_status=status,
        )
    if status == 429:
        seconds = retry_after(headers)
        if seconds is not None:
            return Fault(
                "rate-limited",
                f"{server}: the server asks to wait {seconds:g} s (HTTP 429) and refused the request.",
                stage=Stage.EXECUTE,
                verdict=Verdict.WAIT,
                server=server,
                http_status=status,
                wait_seconds=seconds,
            )
    moved = ""
    if status in (301, 302, 303, 307, 308) and (location := headers.get(b"location", b"").decode("latin-1")):
        # Not followed: a POST that moves is for a person to look at, and our credentials are for the first address.
        moved = f" The server points to {_shown(mask(location))}: if it moved there, set its endpoint."
    return Fault(
        "http-status",
        f"{server}: HTTP {status} instead of an answer.{moved} {MAY_HAVE_ACTED}",
        stage=Stage.EXECUTE,
        verdict=Verdict.OUTCOME_UNKNOWN,
        server=server,
        http_status=status,
    )


def _shown(url: str) -> str:
    """A URL without what secrets stand in: user, password, query and fragment."""
    plain = url.partition("?")[0].partition("#")[0][:300]
    scheme, separator, rest = plain.partition("//")
    authority, slash, path = rest.partition("/")
    return f"{scheme}//{authority.rpartition('@')[2]}{slash}{path}" if separator else plain


def retry_after(headers: Mapping[bytes, bytes]) -> float | None:
    """Seconds of a `Retry-After` header, a number or a date (RFC 9110, 10.2.3), capped at an hour; None for anything else."""
    value = headers.get(b"retry-after", b"").strip()
    if value.isdigit():
        return min(float(value), 3600.0) if len(value) < 8 else None
    if b"," not in value:
        return None
    from email.utils import parsedate_to_datetime  # takes a while to import, and is hardly ever needed

    try:
        return min(max(parsedate_to_datetime(value.decode("latin-1")).timestamp() - time.time(), 0.0), 3600.0)
    except (ValueError, TypeError, OverflowError):
        return None
