"""The closed list: what proves that a server did not act, and that whatever is not on it proves nothing."""

from __future__ import annotations

import errno
import socket
import ssl

import pytest

from interlock.model.fault import Fault
from interlock.upstream import evidence
from interlock.wire.codes import CATALOG

CHALLENGE = {b"www-authenticate": b'Bearer realm="x"'}


@pytest.mark.parametrize(
    ("status", "headers", "slug", "verdict", "retry", "wait"),
    [
        (401, CHALLENGE, "unauthorized", "never_reached", "safe", None),
        (401, {}, "unauthorized", "outcome_unknown", "check-first", None),
        (403, CHALLENGE, "forbidden", "never_reached", "safe", None),
        (403, {}, "forbidden", "outcome_unknown", "check-first", None),
        (429, {b"retry-after": b"7"}, "rate-limited", "wait", "later", 7.0),
        (429, {b"retry-after": b"0"}, "rate-limited", "wait", "later", 0.0),
        (429, {b"retry-after": b"99999"}, "rate-limited", "wait", "later", 3600.0),
        (429, {b"retry-after": b" 7 "}, "rate-limited", "wait", "later", 7.0),
        (429, {}, "http-status", "outcome_unknown", "check-first", None),
        (429, {b"retry-after": b"soon"}, "http-status", "outcome_unknown", "check-first", None),
        (429, {b"retry-after": b"-1"}, "http-status", "outcome_unknown", "check-first", None),
        (429, {b"retry-after": b"1.5"}, "http-status", "outcome_unknown", "check-first", None),
        *[
            (status, {b"retry-after": b"7", **CHALLENGE}, "http-status", "outcome_unknown", "check-first", None)
            for status in (
                204,
                301,
                302,
                307,
                308,
                400,
                404,
                405,
                406,
                407,
                408,
                409,
                410,
                413,
                415,
                418,
                421,
                425,
                451,
                499,
            )
        ],
        *[
            (status, {b"retry-after": b"7"}, "http-status", "outcome_unknown", "check-first", None)
            for status in (500, 501, 502, 503, 504, 520, 599)
        ],
    ],
)
def test_an_http_status(
    status: int, headers: dict[bytes, bytes], slug: str, verdict: str, retry: str, wait: float | None
) -> None:
    fault = evidence.http_refusal("srv", status, headers)
    assert (fault.slug, fault.verdict.value, fault.retry, fault.wait_seconds) == (slug, verdict, retry, wait)
    assert (fault.http_status, fault.server, fault.stage.value) == (status, "srv", "execute")
    speaks_for_itself(fault)


def test_a_date_is_as_good_as_seconds() -> None:
    """RFC 9110, 10.2.3 allows both."""
    import time
    from email.utils import formatdate

    seconds = evidence.retry_after({b"retry-after": formatdate(time.time() + 100, usegmt=True).encode()})
    assert seconds is not None
    assert 95 < seconds <= 100
    assert evidence.retry_after({b"retry-after": formatdate(0, usegmt=True).encode()}) == 0.0
    assert evidence.retry_after({b"retry-after": b"Mon, 99 Foo 9999 99:99:99 GMT"}) is None


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_names_the_setting_to_change(status: int) -> None:
    fault = evidence.http_refusal("srv", status, {b"location": b"https://new.example/mcp?token=secret#x"})
    assert "https://new.example/mcp" in fault.message
    assert "endpoint" in fault.message
    assert "secret" not in fault.message  # a query may hold one


@pytest.mark.parametrize(
    ("error", "slug", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "unreachable", "nothing listens at host:1"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 111] ..."), "unreachable", "host:1"),
        (socket.gaierror(-2, "Name or service not known"), "unreachable", "the name host does not resolve"),
        (TimeoutError(), "unreachable", "did not accept the connection in time"),
        (OSError(errno.ENETUNREACH, "x"), "unreachable", "ENETUNREACH"),
        (OSError(errno.EMFILE, "x"), "unreachable", "EMFILE"),
        (ConnectionResetError(errno.ECONNRESET, "x"), "unreachable", "ECONNRESET"),
        (UnicodeError("label too long"), "unreachable", "UnicodeError"),
        (ssl.SSLCertVerificationError("x"), "tls-failed", "SSL_CERT_FILE"),
        (ssl.SSLError("x"), "tls-failed", "SSL_CERT_FILE"),
    ],
)
def test_a_connection_that_could_not_be_made(error: BaseException, slug: str, words: str) -> None:
    fault = evidence.connect_failed("srv", "host:1", error)
    assert (fault.slug, fault.verdict.value, fault.retry) == (slug, "never_reached", "safe")
    assert words in fault.message
    speaks_for_itself(fault)


@pytest.mark.parametrize(
    ("fault", "slug", "verdict", "retry"),
    [
        (evidence.lost("srv", "the connection ended"), "connection-lost", "outcome_unknown", "check-first"),
        (evidence.not_sent("srv", "the connection ended"), "connection-lost", "never_reached", "safe"),
        (evidence.timed_out("srv", "tools/call", 5.0), "timeout", "outcome_unknown", "check-first"),
        (evidence.bad_answer("srv", "the answer is no JSON"), "bad-answer", "outcome_unknown", "check-first"),
    ],
)
def test_what_happened_on_the_way(fault: Fault, slug: str, verdict: str, retry: str) -> None:
    assert (fault.slug, fault.verdict.value, fault.retry) == (slug, verdict, retry)
    speaks_for_itself(fault)


def speaks_for_itself(fault: Fault) -> None:
    """It names the server, says whether the call may have taken effect, and has its entry in docs/errors.md."""
    assert fault.slug in CATALOG
    assert fault.message.startswith("srv: ")
    told = {
        "never_reached": ("did not", "was not", "failed", "before the request was sent", "refused"),
        "wait": ("refused the request",),
        "outcome_unknown": ("may have taken effect",),
    }[fault.verdict.value]
    assert any(words in fault.message for words in told), fault.message
