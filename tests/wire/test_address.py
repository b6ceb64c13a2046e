"""Which addresses may be called, and how they are shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.wire.address import BadAddress, is_loopback, permitted, shown, take_apart

GOOD = [
    ("https://a.example", ("https", "a.example", 443), ""),
    ("https://A.example:443/x?y=1", ("https", "a.example", 443), "/x"),
    ("HTTPS://a.example:8443/", ("https", "a.example", 8443), "/"),
    ("http://localhost:3000/cb", ("http", "localhost", 3000), "/cb"),
    ("http://127.8.8.8", ("http", "127.8.8.8", 80), ""),
    ("http://[::1]:99/x", ("http", "::1", 99), "/x"),
    ("https://a.example/%7Euser//x/..y/.z", ("https", "a.example", 443), "/%7Euser//x/..y/.z"),
    ("https://a.example/x?y=/../z", ("https", "a.example", 443), "/x"),
]


@pytest.mark.parametrize(("url", "origin", "path"), GOOD)
def test_good_ones_keep_their_text(url: str, origin: tuple[str, str, int], path: str) -> None:
    address = permitted(url)
    assert (address.origin, address.path) == (origin, path)
    assert address.root + address.path + address.query + address.fragment == url


@pytest.mark.parametrize(
    "url",
    [
        "",
        "a.example",
        "//a.example/x",
        "javascript:alert(1)",
        "javascript://a.example/%0aalert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "ftp://a.example",
        "https:/a.example",
        "https://",
        "https:///x",
        "https://:443/x",
        "https://user@a.example/",
        "https://user:hunter@a.example/",
        "https://a.example@b.example/",
        "https://a.example\\@b.example/",
        "https://a.example/x/../y",
        "https://a.example/..",
        "https://a.example/x/./y",
        "https://a.example/x/%2E%2e/y",
        "https://a.example/x/.%2e",
        "https://a.example:0/",
        "https://a.example:65536/",
        "https://a.example:port/",
        "https://a.example/a b",
        "https://a.example/\r\nx: y",
        "https://a.example/\x00",
        "https://a.example/é",
        "https://exämple.test/",
        " https://a.example/",
        "https://a.example/\n",
        "https://[::1/x",
        "https://a.example/" + "x" * 5000,
        "http://a.example/",
        "http://localhost.a.example/",
        "http://127.0.0.1.a.example/",
        "http://0.0.0.0/",
        "http://10.0.0.1/",
    ],
)
def test_bad_ones(url: str) -> None:
    with pytest.raises(BadAddress) as caught:
        permitted(url)
    assert "hunter" not in str(caught.value)


def test_a_remote_servers_documents_may_not_name_ports_of_this_machine() -> None:
    assert permitted("http://127.0.0.1:9/x", loopback=True).port == 9
    with pytest.raises(BadAddress, match="this machine"):
        permitted("http://127.0.0.1:9/x", loopback=False)
    assert permitted("https://a.example/x", loopback=False).host == "a.example"


@pytest.mark.parametrize(
    ("host", "expected"),
    [("localhost", True), ("LOCALHOST", True), ("127.0.0.1", True), ("::1", True), ("a.example", False), ("", False)],
)
def test_loopback(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://u:word@a.example/x?key=word#word", "https://a.example/x"),
        ("https://a.example?x@y", "https://a.example"),
        ("javascript:alert(1)", "javascript:alert(1)"),
        ("https://a.example/\x1b[31m", "https://a.example/?[31m"),
        ("https://a.example/" + "x" * 500, "https://a.example/" + "x" * 282),
    ],
)
def test_shown(url: str, expected: str) -> None:
    assert shown(url) == expected


@given(st.text(max_size=60) | st.text(alphabet="htps:/@[]:.a1?#\\ %", max_size=40))
def test_any_text_is_refused_or_kept(url: str) -> None:
    assert shown(url).isprintable()
    try:
        address = take_apart(url)
    except BadAddress:
        return
    assert address.root + address.path + address.query + address.fragment == url
    assert "@" not in address.authority
    assert 0 < address.port < 65536
