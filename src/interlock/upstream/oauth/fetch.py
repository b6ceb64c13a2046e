"""The one place that talks HTTP to authorization servers.

https, or http to this machine; bodies of at most 1 MiB; no cookies; every call has a hard deadline. A connection serves one
request: on a kept connection nobody could tell a request that was lost from one that was never read.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus, urlencode, urljoin

import msgspec

from interlock.upstream.oauth import network_words
from interlock.upstream.oauth.clock import skew_of_answer
from interlock.wire.address import Address, BadAddress, permitted, shown

if TYPE_CHECKING:
    import httpx2

MAX_BODY: Final = 1024 * 1024
MAX_REDIRECTS: Final = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, whatever its status. `repr` shows no body: it may hold tokens."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; a header that came several times is joined with `, `."""
    body: bytes = field(repr=False)
    url: str
    """Where the answer came from, after redirects."""
    skew: float | None
    """Seconds to add to this machine's clock to get the server's; None where the answer does not tell (clock.py)."""

    def json(self) -> dict[str, object] | None:
        """The body as a JSON object, whatever its declared type; None where it is not one."""
        try:
            value = msgspec.json.decode(self.body.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


class FetchFailed(Exception):
    """There is no answer. `what` is a sentence for people and holds no secret."""

    def __init__(self, what: str, *, sent: bool, timeout: bool = False, unconnected: bool = False) -> None:
        super().__init__(what)
        self.what = what
        self.sent = sent
        """False only where not one byte of the request can have left."""
        self.timeout = timeout
        self.unconnected = unconnected
        """The host itself gave no connection: its name, its port or its TLS."""


class _Progress:
    """Whether any byte of the request itself (not of a proxy's CONNECT) may have left."""

    sent = False

    async def trace(self, event: str, details: Mapping[str, object]) -> None:
        if event.endswith("send_request_headers.started"):
            request = details.get("request")
            self.sent = self.sent or getattr(request, "method", b"") != b"CONNECT"


class _TooLarge(Exception):
    pass


class _BadEncoding(Exception):
    pass


class Fetcher:
    """Makes the calls. Belongs to one event loop; `environ` names proxies and certificates, as for other programs."""

    def __init__(self, *, user_agent: str, environ: Mapping[str, str]) -> None:
        self._user_agent = user_agent
        self._environ = environ
        self._clients: dict[str | None, httpx2.AsyncClient] = {}

    async def get(self, url: str, seconds: float) -> Answer:
        """GET; redirects are followed within the origin, at most three. Another redirect is the answer. Raises FetchFailed."""
        async with _Deadline(url, seconds) as deadline:
            answer = await self._call("GET", url, {}, None, deadline.progress)
            for _ in range(MAX_REDIRECTS):
                onward = _within_origin(answer)
                if onward is None:
                    break
                answer = await self._call("GET", onward, {}, None, deadline.progress)
        return answer

    async def post_form(
        self, url: str, form: Mapping[str, str], seconds: float, basic: tuple[str, str] | None = None
    ) -> Answer:
        """POST of a form, with HTTP Basic where `basic` gives the client's id and secret. Never redirected. Raises FetchFailed."""
        headers = {"content-type": "application/x-www-form-urlencoded"}
        if basic is not None:
            # RFC 6749 section 2.3.1: both halves are form-encoded first.
            pair = ":".join(quote_plus(each) for each in basic)
            headers["authorization"] = "Basic " + base64.b64encode(pair.encode()).decode("ascii")
        async with _Deadline(url, seconds) as deadline:
            return await self._call("POST", url, headers, urlencode(form).encode("ascii"), deadline.progress)

    async def post_json(self, url: str, value: object, seconds: float) -> Answer:
        """POST of a JSON value. Never redirected. Raises FetchFailed."""
        headers = {"content-type": "application/json"}
        async with _Deadline(url, seconds) as deadline:
            return await self._call("POST", url, headers, msgspec.json.encode(value), deadline.progress)

    async def close(self) -> None:
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    async def _call(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes | None, progress: _Progress
    ) -> Answer:
        import httpx2

        try:
            address = permitted(url)
        except BadAddress as error:
            raise FetchFailed(f"{shown(url)} was not called: {error}.", sent=False) from None
        everything = {
            "user-agent": self._user_agent,
            "accept": "application/json",
            "accept-encoding": "identity",
            **headers,
        }
        failure: FetchFailed
        try:
            async with self._client(address).stream(
                method, url, headers=everything, content=body, extensions={"trace": progress.trace}
            ) as response:
                arrived = time.time()
                content = await _read(response)
                answered = {name.lower(): value for name, value in response.headers.items()}
                return Answer(response.status_code, answered, content, url, skew_of_answer(answered, arrived))
        except _TooLarge:
            failure = FetchFailed(f"{shown(url)} answered with more than {MAX_BODY} bytes.", sent=True)
        except _BadEncoding:
            failure = FetchFailed(f"{shown(url)} answered in a content encoding that was not asked for.", sent=True)
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as error:
            through = _proxy(address, self._environ)
            failure = FetchFailed(
                _reason(url, address, error, progress.sent, through),
                sent=progress.sent,
                unconnected=not progress.sent and through is None and isinstance(error, httpx2.ConnectError),
            )
        # Raised out here: the library's error holds the request, and with it secrets.
        raise failure

    def _client(self, address: Address) -> httpx2.AsyncClient:
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx2

        key = f"proxy {proxy}" if (proxy := _proxy(address, self._environ)) else address.scheme.lower()
        client = self._clients.get(key)
        if client is None:
            client = self._clients[key] = httpx2.AsyncClient(
                verify=_trust(self._environ) if address.scheme.lower() == "https" else _nobody(),
                trust_env=False,  # it would send passwords of ~/.netrc
                proxy=proxy,
                timeout=None,  # the deadline of the whole call stands in _Deadline
                follow_redirects=False,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=0),
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        return client


class _Deadline:
    """Bounds a call, and turns running out of time into FetchFailed."""

    def __init__(self, url: str, seconds: float) -> None:
        self._url = url
        self._seconds = max(seconds, 0.0)
        self._timeout = asyncio.timeout(self._seconds)
        self.progress = _Progress()

    async def __aenter__(self) -> _Deadline:
        await self._timeout.__aenter__()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            await self._timeout.__aexit__(kind, error, None)
        except TimeoutError:
            pass
        else:
            return
        raise FetchFailed(
            f"{shown(self._url)} did not answer within {network_words.seconds(self._seconds)}.",
            sent=self.progress.sent,
            timeout=True,
        ) from None


async def _read(response: httpx2.Response) -> bytes:
    """The body, decoded. Decoding stops at the limit, so that a small body cannot fill the memory."""
    raw = bytearray()
    async for piece in response.aiter_raw():
        raw += piece
        if len(raw) > MAX_BODY:
            raise _TooLarge
    encoding = response.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity") or not raw:
        return bytes(raw)
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise _BadEncoding
    import zlib

    try:
        # 32 + 15: a zlib or gzip header, whichever is there.
        plain = zlib.decompressobj(47).decompress(bytes(raw), MAX_BODY + 1)
    except zlib.error:
        raise _BadEncoding from None
    if len(plain) > MAX_BODY:
        raise _TooLarge
    return plain


def _within_origin(answer: Answer) -> str | None:
    """Where a redirect leads, if that is the same origin."""
    location = answer.headers.get("location", "")
    if answer.status not in _REDIRECTS or not location:
        return None
    try:
        onward = urljoin(answer.url, location)
        return onward if permitted(onward).origin == permitted(answer.url).origin else None
    except ValueError:
        return None


def _reason(url: str, address: Address, error: Exception, sent: bool, proxy: str | None) -> str:
    """A sentence from the library's error; its own text is used only where it was made before anything was sent."""
    import httpx2

    if sent:
        return f"{shown(url)}: the connection ended before an answer could be read."
    if isinstance(error, httpx2.ProxyError):
        return f"{shown(url)}: the proxy refused the connection. Check HTTPS_PROXY and NO_PROXY."
    if not isinstance(error, httpx2.HTTPError | OSError):
        return f"{shown(url)} is no address that can be called."
    kind, why = network_words.why(error, address.host, address.port)
    if kind == "tls":
        return f"{shown(url)}: {why}. Check the certificate, or set SSL_CERT_FILE."
    through = "" if proxy is None else " It goes through a proxy: check HTTPS_PROXY and NO_PROXY."
    return f"{shown(url)}: {why}.{through}"


def _proxy(address: Address, environ: Mapping[str, str]) -> str | None:
    """The proxy for an https address, by the usual variables; this machine is never reached through one."""
    if address.loopback or address.scheme.lower() != "https":
        return None
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

    def value(name: str) -> str:
        return environ.get(name.lower(), "") or environ.get(name.upper(), "")

    proxy = value("https_proxy") or value("all_proxy")
    if not proxy or proxy_bypass_environment(f"{address.host}:{address.port}", {"no": value("no_proxy")}):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _trust(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Whom to trust: what SSL_CERT_FILE or SSL_CERT_DIR name, else this machine's own store."""
    file, directory = environ.get("SSL_CERT_FILE"), environ.get("SSL_CERT_DIR")
    if file or directory:
        return ssl.create_default_context(cafile=file or None, capath=directory or None)
    import truststore

    return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _nobody() -> ssl.SSLContext:
    """For plain http: cheap to make, and trusts no certificate at all."""
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
