"""Reads `WWW-Authenticate` (RFC 9110 section 11.6.1): several challenges in one value, each with its parameters.

Nothing here raises: what cannot be read is left out, and the rest is kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from interlock.upstream.oauth import grant_log, scopes

MAX_LENGTH = 65536
# Possessive repeats: what was read once is never read again, so hostile values cost no more than their length.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]++")
_TOKEN68 = re.compile(r"[A-Za-z0-9._~+/-]++=*+(?=[ \t\r\n]*+(?:,|\Z))")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_PLAIN = re.compile(r'[^ \t\r\n,"]*+')
_SPACE = re.compile(r"[ \t\r\n]*+")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_JUNK = re.compile(r'(?:[^,"]|"[^"]*+"?)*+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Challenge:
    """One challenge. The scheme and the names are lower-case; a parameter that came twice keeps both values, in order."""

    scheme: str
    params: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Bearer:
    """What a server's Bearer challenges say (RFC 6750 section 3, RFC 9728 section 5.1)."""

    error: str | None = None
    error_description: str | None = None
    scope: tuple[str, ...] | None = None
    resource_metadata: tuple[str, ...] = ()
    """Every address that was named, in order, each once."""


def parse(value: str) -> tuple[Challenge, ...]:
    """The challenges of one header value; several headers are joined with `, ` first. Takes time linear in the length."""
    value = value[:MAX_LENGTH]
    challenges: list[tuple[str, dict[str, list[str]]]] = []
    at = 0
    listed = True  # at the start of a list element, where a scheme may stand
    while at < len(value):
        at = _skip(value, at)
        if at < len(value) and value[at] == ",":
            at += 1
            listed = True
            continue
        word = _TOKEN.match(value, at)
        if word is None:
            at = _past_junk(value, at)
            continue
        equals = _skip(value, word.end())
        if equals < len(value) and value[equals] == "=":
            text, at = _value(value, _skip(value, equals + 1))
            if challenges and text is not None:
                challenges[-1][1].setdefault(word[0].lower(), []).append(text)
        elif listed:
            challenges.append((word[0].lower(), {}))
            at = _past_token68(value, word.end())
        else:
            at = _past_junk(value, word.end())
        listed = False
    return tuple(
        Challenge(scheme, {name: tuple(all_) for name, all_ in params.items()}) for scheme, params in challenges
    )


def bearer(value: str | None) -> Bearer | None:
    """What the Bearer challenges of a header value say together; None where there is none."""
    found = [each.params for each in parse(value or "") if each.scheme == "bearer"]
    if not found:
        return None

    def first(name: str) -> str | None:
        return next((params[name][0] for params in found if name in params), None)

    scope = scopes.split(" ".join(text for params in found for text in params.get("scope", ())))
    addresses = dict.fromkeys(text for params in found for text in params.get("resource_metadata", ()) if text)
    return Bearer(first("error"), first("error_description"), scope or None, tuple(addresses))


def without_secrets(challenge: Bearer | None, mask: Callable[[str], str]) -> Bearer | None:
    """The same without what the server repeats of our secrets: a scope goes into the address of a sign-in, and into the log."""
    if challenge is None:
        return None
    scope = tuple(each for each in challenge.scope or () if mask(each) == each)
    words = challenge.error_description
    shown = None if words is None else grant_log.mask(mask(words))
    return replace(challenge, scope=scope or None, error_description=shown)


def _skip(value: str, at: int) -> int:
    match = _SPACE.match(value, at)
    return match.end() if match else at


def _value(value: str, at: int) -> tuple[str | None, int]:
    """The parameter value at a place, and where it ends. None: there is none, or its quotes never close."""
    if at < len(value) and value[at] == '"':
        quoted = _QUOTED.match(value, at)
        if quoted is None:
            return None, len(value)
        return _ESCAPE.sub(r"\1", quoted[1]), quoted.end()
    # More than a token may stand here: servers forget the quotes around addresses.
    plain = _PLAIN.match(value, at)
    return (plain[0], plain.end()) if plain and plain[0] else (None, at)


def _past_token68(value: str, at: int) -> int:
    start = _skip(value, at)
    match = _TOKEN68.match(value, start) if start > at else None
    return match.end() if match else at


def _past_junk(value: str, at: int) -> int:
    """The next comma outside quotes, or the end."""
    match = _JUNK.match(value, at)
    return match.end() if match else len(value)
