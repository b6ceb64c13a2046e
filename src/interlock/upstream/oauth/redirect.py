"""Judges what came to the redirect URI, and changes nothing: RFC 6749 section 4.1.2, RFC 9207 section 2.4.

`state` and then `iss` are looked at before the code or the error: what is not from the authorization server that we asked
is neither acted on nor shown.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from interlock.upstream.oauth.callback import split_query
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.flow_note import Pending
from interlock.upstream.oauth.pages import plain_words
from interlock.upstream.secret_forms import masked

MAX_CODE = 16 * 1024
MAX_PASTED = 64 * 1024


@dataclass(frozen=True, slots=True)
class NotOurs:
    """Not an answer to anything that we asked. `why` is for people, and quotes nothing."""

    why: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The authorization server answered with an error (RFC 6749 section 4.1.2.1). Its words, masked and cut."""

    pending: Pending
    error: str
    description: str


@dataclass(frozen=True, slots=True)
class Code:
    """An authorization code to redeem with the verifier of its `state`."""

    pending: Pending
    code: str


def judge(
    query: Mapping[str, tuple[str, ...]], pending: tuple[Pending, ...], found: Discovered
) -> Code | Refused | NotOurs:
    """What the parameters of a redirect mean to the logins that wait."""
    repeated = [name for name in ("state", "iss", "code", "error") if len(query.get(name, ())) > 1]
    if repeated:
        return NotOurs(f"the parameter `{repeated[0]}` came twice")
    one = {name: values[0] for name, values in query.items()}
    waiting = _of_state(one.get("state", ""), pending)
    if waiting is None:
        return NotOurs("its `state` belongs to no sign-in that waits here")
    iss = one.get("iss")
    if iss is None:
        if found.metadata.authorization_response_iss_parameter_supported:
            return NotOurs("it has no `iss`, which this authorization server always sends")
    elif iss != waiting.issuer:  # simple string comparison, nothing normalised
        return NotOurs("its `iss` is another authorization server than the one that was asked")
    code, error = one.get("code", ""), one.get("error", "")
    if bool(code) == bool(error) or len(code) > MAX_CODE:
        return NotOurs("it has neither a code nor an error, or both")
    if error:
        sent = (waiting.state, waiting.verifier)
        words = masked(one.get("error_description", "")[:MAX_CODE], sent)
        return Refused(waiting, plain_words(masked(error[:MAX_CODE], sent), 64), plain_words(words))
    return Code(waiting, code)


def pasted_query(text: str) -> dict[str, tuple[str, ...]] | None:
    """The parameters of a redirect URL that a person pasted; also of its query alone. None where there are none."""
    text = "".join(text.split())  # terminals break long lines
    if not text or len(text) > MAX_PASTED:
        return None
    try:
        query = urlsplit(text).query if "://" in text or text.startswith("/") else text.partition("?")[2] or text
        fields = split_query(query)
    except ValueError:
        return None
    return fields if "state" in fields else None


def _of_state(state: str, pending: tuple[Pending, ...]) -> Pending | None:
    given = state.encode("utf-8", "surrogatepass")
    matches = [each for each in pending if hmac.compare_digest(each.state.encode(), given)]
    return matches[-1] if matches and state else None
