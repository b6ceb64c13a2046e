"""The seal on `requestState`: whatever is changed, it does not open."""

from __future__ import annotations

import base64
import json
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from interlock.wire.messages import Raw
from interlock.wire.seal import BadSeal, Sealed, request_digest, seal, unseal

from .texts import any_object, values

KEY = b"k" * 32
DIGEST = request_digest("tools/call", "a/b", Raw(b'{"x":1}'))
CONTENT = Sealed("park", "a", "handle", 1000)
ALPHABET = string.ascii_letters + string.digits + "-_.=+/ \n\0é"


def opens(
    text: str, *, key: bytes = KEY, principal: str = "p", digest: bytes = DIGEST, now: float = 0.0
) -> Sealed | None:
    try:
        return unseal(key, text, principal=principal, digest=digest, now=now)
    except BadSeal:
        return None


SEALED = st.builds(
    Sealed,
    st.sampled_from(["park", "state", "retry", "approve"]),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.integers(0, 2**40),
    st.booleans(),
)


@given(
    SEALED,
    st.binary(min_size=1, max_size=40),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.binary(max_size=40),
)
def test_what_was_sealed_opens(content: Sealed, key: bytes, principal: str, digest: bytes) -> None:
    text = seal(key, content, principal=principal, digest=digest)
    assert text.isascii()
    assert unseal(key, text, principal=principal, digest=digest, now=content.expires) == content
    with pytest.raises(BadSeal):
        unseal(key, text, principal=principal, digest=digest, now=content.expires + 0.001)
    with pytest.raises(BadSeal):
        unseal(key, text, principal=principal + "x", digest=digest, now=0)
    with pytest.raises(BadSeal):
        unseal(key, text, principal=principal, digest=digest + b"x", now=0)
    with pytest.raises(BadSeal):
        unseal(key + b"x", text, principal=principal, digest=digest, now=0)


@pytest.mark.parametrize("place", range(len(seal(KEY, CONTENT, principal="p", digest=DIGEST))))
def test_no_character_may_be_changed(place: int) -> None:
    text = seal(KEY, CONTENT, principal="p", digest=DIGEST)
    assert opens(text) == CONTENT
    for char in ALPHABET:
        if char != text[place]:
            assert opens(text[:place] + char + text[place + 1 :]) is None
        assert opens(text[:place] + char + text[place:]) is None
    assert opens(text[:place]) is None
    assert opens(text[:place] + text[place + 1 :]) is None


@given(st.text(max_size=100))
@example("")
@example(".")
@example("é.é")
@example("AAAA.AAAA")
@example(".." * 40)
@example("\ud800.\ud800")
def test_any_other_text_does_not_open(text: str) -> None:
    assert opens(text) is None
    assert opens(text + "." + text) is None


def test_a_body_of_ours_under_another_seal_does_not_open() -> None:
    one = seal(KEY, CONTENT, principal="p", digest=DIGEST)
    two = seal(KEY, Sealed("park", "a", "another", 1000), principal="p", digest=DIGEST)
    assert opens(one.partition(".")[0] + "." + two.partition(".")[2]) is None
    late = Sealed("park", "a", "handle", 5000)
    body = base64.urlsafe_b64encode(json.dumps(["park", "a", "handle", 5000, True]).encode()).decode().rstrip("=")
    assert opens(body + "." + one.partition(".")[2], now=2000) is None
    assert opens(seal(KEY, late, principal="p", digest=DIGEST), now=2000) == late


@pytest.mark.parametrize(("principal", "digest"), [("p\0", DIGEST), ("", b"p\0" + DIGEST), ("p\0x", DIGEST[1:])])
def test_principal_and_request_do_not_run_into_each_other(principal: str, digest: bytes) -> None:
    assert opens(seal(KEY, CONTENT, principal=principal, digest=digest)) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a":1,"b":2}', b'{"b":2,"a":1}', True),
        (b'{"a":1}', b' { "a" :\n1 } ', True),
        (b'{"a":"\\u00e9\\/"}', '{"a":"é/"}'.encode(), True),
        (b'{"a":{"c":[1,2],"b":0}}', b'{"a":{"b":0,"c":[1,2]}}', True),
        (None, b"null", True),
        (b'{"a":[1,2]}', b'{"a":[2,1]}', False),
        (b'{"a":1}', b'{"a":"1"}', False),
        (b'{"a":1}', b'{"a":true}', False),
        (b'{"a":1}', b'{"a":1,"b":null}', False),
        (b"{}", None, False),
        # numbers as they are spelled: what a reader makes of them may differ
        (b'{"a":1}', b'{"a":1.0}', False),
        (b'{"a":1e999}', b'{"a":null}', False),
        (b'{"a":1e999}', b'{"a":2e999}', False),
        (b'{"a":9007199254740993}', b'{"a":9007199254740992}', False),
        (b'{"a":0.1}', b'{"a":0.1000000000000000055511151231257827}', False),
        # a member that is named twice: whichever a reader takes, it must be the one that was sealed
        (b'{"a":1,"a":2}', b'{"a":2}', False),
        (b'{"a":1,"a":2}', b'{"a":1}', False),
        (b'{"a":1,"a":2}', b'{"a":1,"a":2}', True),
        (b'{"x":{"a":1,"a":2}}', b'{"x":{"a":2,"a":1}}', False),
    ],
)
def test_what_counts_as_the_same_request(one: bytes | None, other: bytes | None, same: bool) -> None:
    def digest(arguments: bytes | None) -> bytes:
        return request_digest("tools/call", "s/t", None if arguments is None else Raw(arguments))

    assert (digest(one) == digest(other)) is same


def test_method_and_name_count() -> None:
    digests = {request_digest(method, name, Raw(b"{}")) for method in ("a", "ab") for name in ("b", "c", "bc", "")}
    assert len(digests) == 8


@given(any_object())
def test_a_digest_depends_on_meaning_alone(text: str) -> None:
    spelled = json.dumps(json.loads(text, parse_int=lambda _: 0, parse_float=lambda _: 0), sort_keys=True)
    plain = json.dumps(json.loads(spelled), indent=2)
    assert request_digest("m", "n", Raw(spelled.encode())) == request_digest("m", "n", Raw(plain.encode()))


@given(values(), values())
def test_other_arguments_have_another_digest(one: str, other: str) -> None:
    same = request_digest("m", "n", Raw(one.encode())) == request_digest("m", "n", Raw(other.encode()))
    if same:
        assert json.loads(one, parse_float=str, parse_int=str) == json.loads(other, parse_float=str, parse_int=str)


@given(st.binary(max_size=60))
def test_any_arguments_have_a_digest(data: bytes) -> None:
    assert len(request_digest("m", "\ud800", Raw(data))) == 32
