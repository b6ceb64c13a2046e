"""What refusals mean, and what they give the right to forget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.oauth.fetch import FetchFailed
from interlock.upstream.oauth.refusal import Class, classify, may_wipe
from interlock.upstream.oauth.tokens import BadTokenAnswer, TokenRefused

CASES = [
    (400, "invalid_grant", Class.GRANT, Class.EARLY),
    (401, "INVALID_GRANT", Class.GRANT, Class.EARLY),
    (200, "bad_refresh_token", Class.GRANT, Class.EARLY),
    (400, "interaction_required", Class.GRANT, Class.EARLY),
    (400, "invalid_request", Class.CONFIGURATION, Class.EARLY),
    (400, "made_up", Class.CONFIGURATION, Class.EARLY),
    (401, "invalid_client", Class.CLIENT, Class.CLIENT),
    (400, "unauthorized_client", Class.CLIENT, Class.CLIENT),
    (400, "invalid_scope", Class.SCOPE, Class.SCOPE),
    (400, "invalid_target", Class.RESOURCE, Class.RESOURCE),
    (400, "unsupported_grant_type", Class.CONFIGURATION, Class.EARLY),
    (400, "temporarily_unavailable", Class.BUSY, Class.BUSY),
    (400, "slow_down", Class.BUSY, Class.BUSY),
    (400, "server_error", Class.OUTAGE, Class.OUTAGE),
    (429, "invalid_grant", Class.BUSY, Class.BUSY),
    (503, "invalid_grant", Class.BUSY, Class.BUSY),
    (500, "invalid_grant", Class.OUTAGE, Class.OUTAGE),
    (502, "invalid_client", Class.OUTAGE, Class.OUTAGE),
    (425, "too_early", Class.EARLY, Class.EARLY),
]


@pytest.mark.parametrize(("status", "error", "late", "early"), CASES)
def test_oauth_errors(status: int, error: str, late: Class, early: Class) -> None:
    refused = TokenRefused(status, error, "")
    assert (classify(refused, early=False), classify(refused, early=True)) == (late, early)


@pytest.mark.parametrize(
    ("status", "late", "early"),
    [
        (200, Class.OUTAGE, Class.OUTAGE),
        (302, Class.CONFIGURATION, Class.CONFIGURATION),
        (400, Class.CONFIGURATION, Class.EARLY),
        (404, Class.CONFIGURATION, Class.EARLY),
        (408, Class.OUTAGE, Class.OUTAGE),
        (429, Class.BUSY, Class.BUSY),
        (500, Class.OUTAGE, Class.OUTAGE),
        (503, Class.BUSY, Class.BUSY),
        (599, Class.OUTAGE, Class.OUTAGE),
    ],
)
def test_answers_without_an_oauth_error(status: int, late: Class, early: Class) -> None:
    bad = BadTokenAnswer(status, "what")
    assert (classify(bad, early=False), classify(bad, early=True)) == (late, early)


@pytest.mark.parametrize("early", [True, False])
@pytest.mark.parametrize("sent", [True, False])
def test_no_answer_is_an_outage(early: bool, sent: bool) -> None:
    assert classify(FetchFailed("x", sent=sent), early=early) is Class.OUTAGE


@given(st.integers(400, 599), st.text(max_size=20), st.booleans())
def test_only_an_unknown_client_may_lose_its_registration_and_nobody_the_refresh_token(
    status: int, error: str, early: bool
) -> None:
    cls = classify(TokenRefused(status, error, ""), early=early)
    assert may_wipe(cls) == (frozenset({"registration"}) if cls is Class.CLIENT else frozenset())


def test_every_class_has_an_answer() -> None:
    assert {cls: set(may_wipe(cls)) for cls in Class} == {
        cls: {"registration"} if cls is Class.CLIENT else set() for cls in Class
    }
