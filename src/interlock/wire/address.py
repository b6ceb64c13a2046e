"""Which addresses a client may talk to on the word of somebody else's document, and how an address is shown to people.

OAuth endpoints are https (2026-07-28, security-considerations: Communication Security); plain http is for loopback alone.
Addresses are taken apart, never rebuilt: what is compared or sent later is the text as it came.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

MAX_LENGTH = 4096
_PARTS = re.compile(r"(?i:(https?))://([^/?#]*)([^?#]*)(\?[^#]*)?(#.*)?", re.DOTALL)
# Printable ASCII without what RFC 3986 keeps out of a URI and what programs read in different ways.
_CLEAN = re.compile(r"[!#-;=?-\[\]_a-z~]+")
# Clients and servers take them out at different moments, so the path that was judged is not the one that is asked for.
_DOT_SEGMENTS = re.compile(r"/(?:\.|%2e){1,2}(?:/|\Z)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~-]+)(?::([0-9]{1,5}))?")


class BadAddress(ValueError):
    """Not an address to talk to. The message says why, and does not repeat the address."""


@dataclass(frozen=True, slots=True)
class Address:
    """One http or https URL in its parts, as they were written. `host` is lower-case and without brackets."""

    scheme: str
    authority: str
    host: str
    port: int
    path: str
    query: str
    """With its `?`, or empty."""
    fragment: str
    """With its `#`, or empty."""

    @property
    def root(self) -> str:
        """Scheme and authority as written, without a slash at the end."""
        return f"{self.scheme}://{self.authority}"

    @property
    def origin(self) -> tuple[str, str, int]:
        """For comparing: scheme and host in lower case, the port filled in."""
        return self.scheme.lower(), self.host, self.port

    @property
    def loopback(self) -> bool:
        return is_loopback(self.host)


def is_loopback(host: str) -> bool:
    """Whether a host name or address, without brackets, means this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def has_dot_segments(path: str) -> bool:
    """Whether a path has `.` or `..` for a segment, also written with `%2e` (RFC 3986 section 5.2.4)."""
    return _DOT_SEGMENTS.search(path) is not None


def take_apart(url: str) -> Address:
    """The parts of an http or https URL. Raises BadAddress for anything else, for a user or password in it, and for dot segments."""
    if len(url) > MAX_LENGTH:
        raise BadAddress(f"longer than {MAX_LENGTH} characters")
    match = _PARTS.fullmatch(url)
    if match is None:
        raise BadAddress("not an http or https URL")
    scheme, authority, path, query, fragment = match.groups()
    if "@" in authority:
        raise BadAddress("it has a user or password in it")
    if not _CLEAN.fullmatch(url):
        raise BadAddress("it has characters that may not stand in a URL")
    host = _AUTHORITY.fullmatch(authority)
    if host is None:
        raise BadAddress("it names no host")
    if has_dot_segments(path):
        raise BadAddress("its path has dot segments")
    port = int(host[2]) if host[2] else 443 if scheme.lower() == "https" else 80
    if not 0 < port < 65536:
        raise BadAddress("its port is out of range")
    return Address(scheme, authority, host[1].strip("[]").lower(), port, path, query or "", fragment or "")


def permitted(url: str, *, loopback: bool = True) -> Address:
    """The parts of a URL that may be called: https, or plain http to this machine where `loopback` allows that.

    `loopback` is False for what a remote server's documents name: they have no business with ports of this machine.
    Raises BadAddress.
    """
    address = take_apart(url)
    if address.scheme.lower() != "https":
        if not address.loopback:
            raise BadAddress("it is plain http; https is required")
        if not loopback:
            raise BadAddress("it points to this machine, and the server that names it is not on this machine")
    return address


def shown(url: str) -> str:
    """The URL without what secrets stand in (user, password, query, fragment) and without control characters; at most 300."""
    plain = re.split(r"[?#]", url, maxsplit=1)[0]
    scheme, separator, rest = plain.partition("//")
    authority, slash, path = rest.partition("/")
    text = f"{scheme}//{authority.rpartition('@')[2]}{slash}{path}" if separator else plain
    return "".join(each if each.isprintable() else "?" for each in text[:300])
