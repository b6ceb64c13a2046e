"""Error codes: those of the specification, and our own outside its ranges."""

from __future__ import annotations

import pytest

from interlock.wire import codes


@pytest.mark.parametrize(
    ("name", "code"),
    [
        # 2026-07-28 and 2025-11-25, basic/index, Error Codes
        ("PARSE_ERROR", -32700),
        ("INVALID_REQUEST", -32600),
        ("METHOD_NOT_FOUND", -32601),
        ("INVALID_PARAMS", -32602),
        ("INTERNAL_ERROR", -32603),
        ("LEGACY_RESOURCE_NOT_FOUND", -32002),
        ("LEGACY_URL_ELICITATION_REQUIRED", -32042),
        ("HEADER_MISMATCH", -32020),
        ("MISSING_CLIENT_CAPABILITY", -32021),
        ("UNSUPPORTED_VERSION", -32022),
    ],
)
def test_codes_of_the_protocol(name: str, code: int) -> None:
    assert getattr(codes, name) == code


def test_modern_codes_settle_an_era() -> None:
    assert frozenset({-32020, -32021, -32022}) == codes.MODERN_ERRORS


@pytest.mark.parametrize("slug", sorted(codes.CATALOG))
def test_our_own_codes(slug: str) -> None:
    code, title = codes.CATALOG[slug]
    assert codes.code_of(slug) == code
    # A reserved code only where it says exactly that; all others outside (2026-07-28, basic/index, Error Codes).
    if -32768 <= code <= -32000:
        assert code in (codes.INVALID_PARAMS, codes.METHOD_NOT_FOUND, codes.INVALID_REQUEST)
    else:
        assert 41000 <= code < 42000
        assert [other for other, (number, _) in codes.CATALOG.items() if number == code] == [slug]
    assert title
    assert title == title.strip()
    assert not title.endswith(".")
    assert slug == slug.lower()
