"""Resource URIs: routed by their slug alone, and rewritten in the right places only."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AnyUrl, TypeAdapter

from interlock.catalog.uris import (
    UriRouter,
    expose_uri,
    rewrite_resource,
    rewrite_result_uris,
    slug,
    with_uri,
)

SCHEME_PREFIX = re.compile(r"[a-z][a-z0-9.-]*")  # RFC 3986, 3.1, lower case and without `+`


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("github", "github"),
        ("acme.issue-search", "acme.issue-search"),
        ("My Server.v2", "my-server.v2-f7dd860e06"),
        ("a_b", "a-b-648fa9b31b"),
        ("A", "a-559aead082"),
        ("9a", "s9a-66e23d5fd2"),
        ("a-0123456789", "a-0123456789-14599cfd54"),
        ("a+b", "a-b-300273daf0"),
    ],
)
def test_slugs_are_stable(key: str, expected: str) -> None:
    assert slug(key) == expected


def test_keys_that_clean_to_the_same_text_stay_apart() -> None:
    keys = ["a.b", "a_b", "a-b", "a b", "A.b", "a+b", "搜", "索", "", " ", "-", "a" * 90, "a" * 91, "9", slug("a_b")]
    assert len({slug(key) for key in keys}) == len(keys)


@pytest.mark.parametrize(
    "uri",
    [
        "file:///etc/hosts",
        "test://t/{id}",
        "{+path}",
        "{scheme}://x{?q*}",
        "git+ssh://host/repo.git",
        "a+b+c:d",
        "no/scheme/at all",
        "",
        "+",
        "urn:x:1#f?q",
        "HTTP://Example.COM/",
        "data:text/plain,a+b",
        "étrange://é",
    ],
)
@pytest.mark.parametrize("key", ["github", "My Server.v2", "a+b", "搜索", "a-0123456789"])
def test_a_round_trip_gives_key_and_uri_back(key: str, uri: str) -> None:
    router = UriRouter(["github", "My Server.v2", "a+b", "搜索", "a-0123456789", "a-b"])
    assert router.route(expose_uri(key, uri)) == (key, uri)


@given(st.lists(st.text(max_size=50), unique=True, min_size=1, max_size=8), st.text(max_size=60))
def test_any_keys_and_any_uri_round_trip(keys: list[str], uri: str) -> None:
    router = UriRouter(keys)
    for key in keys:
        assert SCHEME_PREFIX.fullmatch(slug(key))
        assert router.route(expose_uri(key, uri)) == (key, uri)


@pytest.mark.parametrize("exposed", ["", "+", "github", "github:x", "git+file:///a", "githubx+a:b", "file:///github+x"])
def test_what_is_not_ours_is_not_guessed(exposed: str) -> None:
    assert UriRouter(["github"]).route(exposed) is None


@pytest.mark.parametrize(
    ("key", "uri", "back"),
    [
        ("github", "file:///etc/hosts", "file:///etc/hosts"),
        ("My Server", "test://static-text", "test://static-text"),
        # The scheme's own case is lost in the client, with or without a gateway.
        ("github", "Memo://notes/1", "memo://notes/1"),
        ("github", "git+ssh://host/x", "git+ssh://host/x"),
    ],
)
def test_normalising_clients_are_routed(key: str, uri: str, back: str) -> None:
    seen_by_client = str(TypeAdapter(AnyUrl).validate_python(expose_uri(key, uri)))
    assert UriRouter([key]).route(seen_by_client) == (key, back)
    shouted = expose_uri(key, uri).replace(slug(key), slug(key).upper(), 1)
    assert UriRouter([key]).route(shouted) == (key, uri)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(
            b'{"content":[{"type":"resource","resource":{"uri":"a:b","text":"x"}}]}',
            b'{"content":[{"type":"resource","resource":{"uri":"k+a:b","text":"x"}}]}',
            id="embedded resource",
        ),
        pytest.param(
            b'{"content":[{"type":"text","text":"t"},{"uri":"a:b","type":"resource_link","size":1.0}],"isError":false}',
            b'{"content":[{"type":"text","text":"t"},{"uri":"k+a:b","type":"resource_link","size":1.0}],"isError":false}',
            id="resource link",
        ),
        pytest.param(
            b'{"contents":[{"uri":"a:b","blob":"AA=="},{"uri":"c:d","text":""}],"ttlMs":0}',
            b'{"contents":[{"uri":"k+a:b","blob":"AA=="},{"uri":"k+c:d","text":""}],"ttlMs":0}',
            id="resources/read",
        ),
        pytest.param(
            b'{"resources":[{"uri":"a:b","name":"n"}],"nextCursor":"c"}',
            b'{"resources":[{"uri":"k+a:b","name":"n"}],"nextCursor":"c"}',
            id="resources/list",
        ),
        pytest.param(
            b'{"resourceTemplates":[{"uriTemplate":"a://{x}","name":"n"}]}',
            b'{"resourceTemplates":[{"uriTemplate":"k+a://{x}","name":"n"}]}',
            id="templates",
        ),
        pytest.param(
            b'{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"a:b"}}}]}',
            b'{"messages":[{"role":"user","content":{"type":"resource","resource":{"uri":"k+a:b"}}}]}',
            id="prompt with one item",
        ),
        pytest.param(
            b'{"messages":[{"content":[{"type":"tool_result","content":[{"type":"resource_link","uri":"a:b"}]}]}]}',
            b'{"messages":[{"content":[{"type":"tool_result","content":[{"type":"resource_link","uri":"k+a:b"}]}]}]}',
            id="tool result in a sampling message",
        ),
        pytest.param(
            b'{"inputRequests":{"1":{"method":"sampling/createMessage","params":{"messages":'
            b'[{"content":{"type":"resource_link","uri":"a:b"}}]}}},"requestState":"s"}',
            b'{"inputRequests":{"1":{"method":"sampling/createMessage","params":{"messages":'
            b'[{"content":{"type":"resource_link","uri":"k+a:b"}}]}}},"requestState":"s"}',
            id="a modern server's question",
        ),
        pytest.param(
            b'{"content":[{"type":"resource_link","uri":"a:\\u00e9\\"\\\\"}]}',
            b'{"content":[{"type":"resource_link","uri":"k+a:\xc3\xa9\\"\\\\"}]}',
            id="escapes",
        ),
    ],
)
def test_uris_of_results_are_exposed(raw: bytes, expected: bytes) -> None:
    assert rewrite_result_uris(raw, "k") == expected
    json.loads(expected)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"structuredContent":{"uri":"a:b","contents":[{"uri":"a:b"}]},"content":[{"type":"text","text":"\\"uri\\""}]}',
        b'{"content":[{"type":"text","text":"{\\"uri\\":\\"a:b\\"}","uri":"a:b"}]}',
        b'{"content":[{"type":"later","uri":"a:b","resource":{"uri":"a:b"}}]}',
        b'{"content":[{"type":"resource","uri":"a:b","resource":["uri"]}]}',
        b'{"content":[{"type":"resource_link","uri":5},{"type":"resource_link","uri":null},7,null]}',
        b'{"_meta":{"uri":"a:b"},"uri":"a:b","roots":[{"uri":"file:///"}]}',
        b'{"content":"uri","contents":{"uri":"a:b"},"resources":null,"messages":["uri"],"inputRequests":["uri"]}',
        b' {"contents" : [ {"text":"uri"} ] , "x":"\\"uri\\"" } ',
        b'["uri"]',
        b'"uri"',
        b'{"uri"',
        b'{"contents":[{"uri":"a:b"}',
        b"",
        b'\xff"uri',
    ],
)
def test_all_else_comes_back_byte_for_byte(raw: bytes) -> None:
    assert rewrite_result_uris(raw, "k") == raw


def test_neighbours_are_spliced_untouched() -> None:
    kept = b'"z":12345678901234567890123,"a":1.0,"e":1E-7,"u":"\\u0041\\/","n":[ 1 , 2 ],"d":{"z":1,"a":2}'
    raw = b'{"content":[{"type":"resource","resource":{' + kept + b',"uri":"a:b"},' + kept + b"}]," + kept + b"}"
    expected = raw.replace(b'"uri":"a:b"', b'"uri":"k+a:b"')
    assert rewrite_result_uris(raw, "k") == expected


def test_one_entry_of_a_list() -> None:
    assert rewrite_resource(b'{"name":"n","uri":"a:b","x":1.0}', "k") == b'{"name":"n","uri":"k+a:b","x":1.0}'
    assert rewrite_resource(b'{"uriTemplate":"a:{b}","x":1.0}', "k") == b'{"uriTemplate":"k+a:{b}","x":1.0}'
    assert rewrite_resource(b'{"name":"uri"}', "k") == b'{"name":"uri"}'


def test_a_uri_is_put_into_parameters() -> None:
    assert with_uri(b'{"_meta":{"p":1.0},"uri":"k+a:b"}', "a:b") == b'{"_meta":{"p":1.0},"uri":"a:b"}'
    assert with_uri(b'{"_meta":{}}', "a:b") == b'{"_meta":{}}'
    assert with_uri(b"nonsense", "a:b") == b"nonsense"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["uri", "uriTemplate", "content", "contents", "resource", "messages", "type", "x"]),
            inner | st.sampled_from(["resource", "resource_link", "tool_result"]),
            max_size=5,
        )
    ),
    max_leaves=25,
)


def _without_slugs(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_slugs(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_without_slugs(part) for part in value]
    return value.removeprefix("k+") if isinstance(value, str) else value


@given(json_values)
def test_only_slugs_are_ever_added(value: object) -> None:
    raw = json.dumps(value).encode()
    assert _without_slugs(json.loads(rewrite_result_uris(raw, "k"))) == _without_slugs(value)


@given(st.binary(max_size=80).map(lambda junk: b'{"uri"' + junk))
def test_junk_never_raises(raw: bytes) -> None:
    assert rewrite_result_uris(raw, "k") == raw or json.loads(raw)
