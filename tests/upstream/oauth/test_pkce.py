"""Random values of an authorization request."""

from __future__ import annotations

import re

from interlock.upstream.oauth.pkce import challenge_of, new_state, new_verifier


def test_the_example_of_the_rfc() -> None:
    # RFC 7636, appendix B.
    assert challenge_of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk") == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def test_verifiers_and_states_are_new_and_in_their_alphabet() -> None:
    verifiers = {new_verifier() for _ in range(50)}
    states = {new_state() for _ in range(50)}
    assert len(verifiers) == len(states) == 50
    assert all(re.fullmatch(r"[A-Za-z0-9._~-]{43,128}", each) for each in verifiers)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{43}", each) for each in states)
