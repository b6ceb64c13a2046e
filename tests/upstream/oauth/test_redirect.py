"""What comes to the redirect URI is judged before it is acted on: `state`, then `iss`, then code or error."""

from __future__ import annotations

import time
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.oauth.callback import split_query
from interlock.upstream.oauth.documents import Discovered, ServerMetadata
from interlock.upstream.oauth.flow_note import Pending
from interlock.upstream.oauth.redirect import Code, NotOurs, Refused, judge, pasted_query

ISSUER = "https://as.test:443/Tenant/"


def pending(state: str, issuer: str = ISSUER) -> Pending:
    return Pending(
        state=state, verifier=f"v-{state}", redirect_uri="http://localhost:1/callback", created=time.time(), scope=(),
        issuer=issuer,
    )  # fmt: skip


WAITING = (pending("one"), pending("two"))


def found(*, advertised: bool) -> Discovered:
    metadata = ServerMetadata(issuer=ISSUER, authorization_response_iss_parameter_supported=advertised)
    return Discovered(
        server_url="https://rs.test/mcp", resource="https://rs.test/mcp", issuer=ISSUER, metadata=metadata
    )


def test_what_the_server_repeats_of_ours_is_not_shown() -> None:
    waiting = pending("state-of-this-login")
    query = {"state": waiting.state, "error": "access_denied", "error_description": f"no {waiting.state} here"}
    judged = judge(split_query(urlencode(query)), (waiting,), found(advertised=False))
    assert isinstance(judged, Refused)
    assert judged.description == "no [redacted] here"


@pytest.mark.parametrize(
    ("query", "advertised", "expected"),
    [
        ({"state": "one", "code": "c"}, False, Code(WAITING[0], "c")),
        ({"state": "two", "code": "c", "iss": ISSUER}, True, Code(WAITING[1], "c")),
        ({"state": "two", "code": "c", "iss": ISSUER}, False, Code(WAITING[1], "c")),
        ({"state": "one", "error": "access_denied", "iss": ISSUER}, True, Refused(WAITING[0], "access_denied", "")),
        ({"state": "one", "error": "e\n\x1b[1m", "error_description": "a" * 500}, False, Refused(WAITING[0], "e [1m", "a" * 200)),
        ({"code": "c"}, False, "state"),
        ({"state": "", "code": "c"}, False, "state"),
        ({"state": "other", "code": "c", "iss": ISSUER}, True, "state"),
        ({"state": "one ", "code": "c"}, False, "state"),
        ({"error": "access_denied"}, False, "state"),
        ({"error": "access_denied", "iss": ISSUER}, True, "state"),
        ({"state": "one", "code": "c"}, True, "no `iss`"),
        ({"state": "one", "error": "access_denied"}, True, "no `iss`"),
        ({"state": "one", "code": "c", "iss": ""}, False, "another authorization server"),
        # RFC 9207 section 2.4: no normalising of case, port, slash or percent-encoding.
        ({"state": "one", "code": "c", "iss": "https://as.test/Tenant/"}, True, "another authorization server"),
        ({"state": "one", "code": "c", "iss": "https://AS.test:443/Tenant/"}, True, "another authorization server"),
        ({"state": "one", "code": "c", "iss": "https://as.test:443/Tenant"}, True, "another authorization server"),
        ({"state": "one", "code": "c", "iss": "https://as.test:443/%54enant/"}, False, "another authorization server"),
        ({"state": "one", "error": "access_denied", "iss": "https://evil.test"}, False, "another authorization server"),
        ({"state": "one"}, False, "neither a code nor an error"),
        ({"state": "one", "code": "c", "error": "e"}, False, "or both"),
        ({"state": "one", "code": "c" * 20000}, False, "neither a code"),
        ({"state": ["one", "two"], "code": "c"}, False, "`state` came twice"),
        ({"state": "one", "code": ["c", "d"]}, False, "`code` came twice"),
        ({"state": "one", "code": "c", "iss": [ISSUER, "https://evil.test"]}, False, "`iss` came twice"),
    ],
)  # fmt: skip
def test_table(query: dict[str, object], advertised: bool, expected: object) -> None:
    judged = judge(split_query(urlencode(query, doseq=True)), WAITING, found(advertised=advertised))
    if isinstance(expected, str):
        assert isinstance(judged, NotOurs)
        assert expected in judged.why
    else:
        assert judged == expected


def test_each_state_is_compared_with_the_issuer_that_was_recorded_with_it() -> None:
    mixed = (pending("a", "https://a.test"), pending("b", "https://b.test"))
    query = split_query("state=a&code=c&iss=https%3A%2F%2Fb.test")
    assert isinstance(judge(query, mixed, found(advertised=True)), NotOurs)
    query = split_query("state=b&code=c&iss=https%3A%2F%2Fb.test")
    assert judge(query, mixed, found(advertised=True)) == Code(mixed[1], "c")


@given(st.dictionaries(st.sampled_from(["code", "error", "iss", "x"]), st.text(max_size=30)), st.text(max_size=60))
def test_nothing_without_a_known_state_is_ever_acted_on(fields: dict[str, str], state: str) -> None:
    if state in ("one", "two"):
        return
    query = {name: (value,) for name, value in fields.items()} | {"state": (state,)}
    assert isinstance(judge(query, WAITING, found(advertised=False)), NotOurs)


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:33418/callback?code=c%2F1&state=one",
        "  http://localhost:33418/callback?code=c%2F1&state=one\n",
        "http://localhost:33418/callback?code=c%2F\n1&state=one",
        "localhost:33418/callback?code=c%2F1&state=one",
        "/callback?code=c%2F1&state=one",
        "?code=c%2F1&state=one",
        "code=c%2F1&state=one",
    ],
)
def test_a_pasted_address_is_read_in_the_forms_that_people_copy(text: str) -> None:
    assert pasted_query(text) == {"code": ("c/1",), "state": ("one",)}


@pytest.mark.parametrize(
    "text", ["", "hello", "http://localhost/callback", "http://[::1/?state=x", "a" * 70000, "code=c"]
)
def test_what_is_no_redirect_is_not_taken_for_one(text: str) -> None:
    assert pasted_query(text) is None
