"""What counts as an authorize URL, wherever it stands."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .urls import authorize_urls, redirect_uri, urls_in

URL = "https://as.example/authorize?response_type=code&client_id=a&redirect_uri=http%3A%2F%2Flocalhost%3A1%2Fcallback&state=s"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"open {URL}", [URL]),
        (f"open {URL}.", [URL]),
        (f"(see <{URL}>)", [URL]),
        (f"{URL}\n{URL}", [URL]),
        (f"{URL} and {URL}2", [URL, f"{URL}2"]),
        ("see https://example.com/docs?response_type=code", []),
        ("https://as.example/authorize?response_type=token&redirect_uri=x", []),
        ("http://[half?response_type=code&redirect_uri=x", []),
        ("", []),
    ],
)
def test_text(text: str, found: list[str]) -> None:
    assert authorize_urls(text) == found


def test_json_is_searched_to_the_bottom() -> None:
    message = {"error": {"code": 1, "message": "no", "data": {"deep": [{"authorize_url": URL}, 3, None]}}}
    assert urls_in(message) == [URL]
    assert urls_in(json.loads(json.dumps(message))) == [URL]
    assert urls_in({"url": "https://example.com"}) == []


def test_where_the_browser_comes_back_to() -> None:
    assert redirect_uri(URL) == "http://localhost:1/callback"
    assert redirect_uri("https://as.example/authorize") == ""


@given(st.text())
def test_any_text_is_taken(text: str) -> None:
    assert authorize_urls(text) == []
    assert all(url.startswith("http") for url in authorize_urls(f"{text} {URL}"))
