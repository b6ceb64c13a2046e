"""Why a connection could not be made, in words for people: names of exceptions mean nothing to them."""

from __future__ import annotations

import errno
import ssl
from typing import Literal

Kind = Literal["name", "refused", "tls", "time", "other"]
"""`name`: it does not resolve. `refused`: nothing listens. `time`: it took too long."""
_NAMES = ("name or service not known", "nodename", "getaddrinfo", "name resolution", "no address associated")
_REFUSED = ("refused", f"errno {errno.ECONNREFUSED}")
_DEPTH = 8


def why(error: BaseException, host: str, port: int) -> tuple[Kind, str]:
    """The kind, and half a sentence such as `nothing listens at 127.0.0.1:9`. For errors from before anything was sent."""
    where = f"{host}:{port}"
    causes = [error]
    while (cause := causes[-1].__cause__ or causes[-1].__context__) is not None and len(causes) < _DEPTH:
        causes.append(cause)
    for each in causes:
        if isinstance(each, ssl.SSLError):
            reason = getattr(each, "verify_message", "") or (each.reason or "handshake failed").lower().replace(
                "_", " "
            )
            return "tls", f"the TLS connection failed ({reason})"
    said = " ".join(str(each) for each in causes).lower()
    if any(words in said for words in _NAMES):
        return "name", f"the name {host} does not resolve"
    if any(isinstance(each, ConnectionRefusedError) for each in causes) or any(words in said for words in _REFUSED):
        return "refused", f"nothing listens at {where}"
    if any(isinstance(each, TimeoutError) for each in causes):
        return "time", f"{where} did not accept the connection in time"
    return "other", f"no connection to {where} could be made"


def seconds(length: float) -> str:
    """`3.3 s`, `10 s`: a limit as people write it."""
    return f"{max(round(length, 1), 0.1):g} s"
