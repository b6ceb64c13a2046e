"""Known secrets do not come back, in whatever form a server repeats them; all else stays as it was, byte for byte."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.secret_forms import MASK, PIECE, masked, without_secrets

PRINTABLE = st.characters(exclude_categories=("Cc", "Cs"))
SECRET = 'p@ss/w0rd+long=secret &"x'
FORMS = {
    "plain": SECRET,
    "percent": quote(SECRET, safe=""),
    "percent, lower case": quote(SECRET, safe="").replace("%2F", "%2f").replace("%3D", "%3d"),
    "percent, some": quote(SECRET),
    "percent, twice": quote(quote(SECRET, safe=""), safe=""),
    "form": quote_plus(SECRET),
    "JSON": json.dumps(SECRET)[1:-1],
    "JSON in JSON": json.dumps(json.dumps(SECRET))[3:-3],
    "JSON with escaped slashes": json.dumps(SECRET)[1:-1].replace("/", "\\/"),
    "JSON, all escaped": "".join(f"\\u{ord(each):04x}" for each in SECRET),
    "HTML": html.escape(SECRET),
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 for URLs": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    "Basic": base64.b64encode(f"corp:{quote_plus(SECRET)}".encode()).decode(),
    "Basic, not encoded first": base64.b64encode(f"corp:{SECRET}".encode()).decode(),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_every_form_is_masked_and_nothing_beside_it(form: str) -> None:
    assert masked(f"body: a={form}&b=2; {form}.", [SECRET]) in (
        f"body: a={MASK}&b=2; {MASK}.",
        f"body: a={MASK}&b=2; {MASK}",  # a full stop may belong to what stands before it
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"...{SECRET[-PIECE:]} tail", f"...{MASK} tail"),
        (f"head {SECRET[:PIECE]}...", f"head {MASK}..."),
        (f"{SECRET[4 : 4 + PIECE]}|{SECRET[: PIECE - 1]}", f"{MASK}|{SECRET[: PIECE - 1]}"),
        (quote(SECRET, safe="")[6:], MASK),
    ],
)
def test_long_pieces_are_masked_too(text: str, shown: str) -> None:
    assert masked(text, [SECRET]) == shown


def test_the_tail_of_an_echo_that_a_server_cut() -> None:
    token = "rt/" + "Ab9+" * 10
    echo = f"bad body: {('grant_type=refresh_token&refresh_token=' + quote(token, safe=''))[-40:]}"
    shown = masked(echo, [token])
    assert MASK in shown
    assert "Ab9" not in shown


def test_short_ones_and_words_between_are_left_alone() -> None:
    text = "prod is true at 100%2, a+b = c%20d"
    assert masked(text, ["prod", "true", "nothing-of-it", ""]) == text


@given(st.text(PRINTABLE, min_size=6, max_size=40), st.text(max_size=60), st.text(max_size=60))
def test_no_whole_secret_is_left(secret: str, before: str, after: str) -> None:
    for form in (secret, quote(secret.encode("utf-8", "surrogatepass"), safe=""), json.dumps(secret)[1:-1]):
        if form not in MASK:
            shown = masked(f"{before}<{form}>{after}", [secret])
            assert shown.count(form) <= before.count(form) + after.count(form)
            assert MASK in shown


@given(st.text(max_size=200))
def test_text_without_a_secret_is_untouched(text: str) -> None:
    assert masked(text, ["0123456789abcdef-not-there"]) == text


BODIES = {
    "no secret": (b'{"code":-32000, "message":"no",  "data":1.0}', None),
    "message": (
        json.dumps({"code": 1, "message": f"bad {SECRET}"}).encode(),
        b'{"code": 1, "message": "bad [redacted]"}',
    ),
    "deep in data": (
        b'{"code":1,"message":"x","data":{"h":["'
        + json.dumps(SECRET)[1:-1].encode()
        + b'",1e3,12345678901234567890]}}',
        b'{"code":1,"message":"x","data":{"h":["[redacted]",1e3,12345678901234567890]}}',
    ),
    "encoded": (b'{ "message" : "' + quote(SECRET, safe="").encode() + b'" }', b'{ "message" : "[redacted]" }'),
}


@pytest.mark.parametrize(("body", "expected"), BODIES.values(), ids=BODIES.keys())
def test_json_keeps_every_other_byte(body: bytes, expected: bytes | None) -> None:
    assert without_secrets(body, [SECRET]) == (body if expected is None else expected)


def test_what_has_no_secret_is_the_same_object() -> None:
    body = b'{"code":1,"message":"\\u0041"}'
    assert without_secrets(body, [SECRET, "another-secret"]) is body
    assert without_secrets(body, []) is body
