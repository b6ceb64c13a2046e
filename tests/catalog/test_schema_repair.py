"""One malformed tool is repaired or withheld alone, and a tool in order comes back byte for byte."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import Tool

from interlock.catalog.schema_repair import for_legacy, keep_first, repair_tool
from interlock.catalog.wellformed import MAX_DEPTH, Repaired

OBJECT = b'{"type":"object"}'


def with_schema(schema: bytes) -> bytes:
    return b'{"name":"t","inputSchema":' + schema + b"}"


@pytest.mark.parametrize(
    "raw",
    [
        with_schema(OBJECT),
        b' {\n "name" : "t" , "inputSchema" : { "type" : "object" } } ',
        with_schema(b'{"type":"object","properties":{"a":{"type":"integer","maximum":12345678901234567890,"x":1.0}}}'),
        with_schema(
            b'{"type":"object","anyOf":[{"required":["a"]}],"$defs":{"z":{},"a":true},"additionalProperties":false}'
        ),
        with_schema(b'{"type":"object","properties":{"a":{"$ref":"#/$defs/nowhere"}},"required":["a"]}'),
        b'{"inputSchema":{"type":"object"},"name":"t","unknown":{"b":1E5,"a":null},"title":"","description":"\\u00e9"}',
        b'{"name":"a/b.c \xc3\xa9","inputSchema":{"type":"object"},"outputSchema":{"type":"array"},"_meta":{}}',
        b'{"name":"t","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"vendor":"x"},"icons":'
        b'[{"src":"https://example.com/i.png","sizes":["48x48"],"theme":"dark","mimeType":"image/png","v":1}],'
        b'"execution":{"taskSupport":"optional"}}',
        with_schema(b'{"type":"object","properties":{"r":{"type":"string","x-mcp-header":"Region"}}}'),
    ],
)
def test_a_tool_in_order_is_untouched(raw: bytes) -> None:
    assert repair_tool(raw) == Repaired(raw, json.loads(raw)["name"], ())


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (b"{}", OBJECT),
        (b"null", OBJECT),
        (b'"nope"', OBJECT),
        (b"[]", OBJECT),
        (b"7", OBJECT),
        (b"true", OBJECT),
        (b'{"type":null}', OBJECT),
        (b'{"type":"OBJECT"}', OBJECT),
        (b'{"type":["object","null"]}', OBJECT),
        (
            b'{"properties":{"b":{"default":1.0},"a":{}},"x":12345678901234567890}',
            b'{"type":"object","properties":{"b":{"default":1.0},"a":{}},"x":12345678901234567890}',
        ),
        (b'{"anyOf":[{"required":["a"]}]}', b'{"type":"object","anyOf":[{"required":["a"]}]}'),
        (b'{"type":"object","properties":[]}', b'{"type":"object","properties":{}}'),
        (b'{"type":"object","properties":null,"required":null}', b'{"type":"object","properties":{}}'),
        (
            b'{"type":"object","properties":{"a":true,"b":false,"c":{"x":1.0},"d":"string"}}',
            b'{"type":"object","properties":{"a":{},"b":{"not":{}},"c":{"x":1.0},"d":{}}}',
        ),
        (b'{"type":"object","required":true}', OBJECT),
        (b'{"type":"object","required":["a",1,"b"]}', b'{"type":"object","required":["a","b"]}'),
        (b'{"type":"object","$schema":null}', OBJECT),
    ],
)
def test_an_input_schema_is_repaired(schema: bytes, expected: bytes) -> None:
    repaired = repair_tool(with_schema(schema))
    assert repaired.raw == with_schema(expected)
    assert repaired.name == "t"
    assert repaired.problems
    assert "inputSchema" in repaired.problems[0]


@pytest.mark.parametrize(
    "schema", [b'{"type":"array"}', b'{"type":"string"}', b'{"type":["array","null"]}', b'{"type":"x"}']
)
def test_a_tool_that_takes_no_object_is_withheld(schema: bytes) -> None:
    repaired = repair_tool(with_schema(schema))
    assert (repaired.raw, repaired.name) == (None, "t")
    assert "arguments are always an object" in repaired.problems[-1]


def test_a_missing_input_schema_is_put_in() -> None:
    repaired = repair_tool(b'{"description":"d","name":"t"}')
    assert repaired.raw == b'{"description":"d","name":"t","inputSchema":{"type":"object"}}'
    assert "missing" in repaired.problems[0]


@pytest.mark.parametrize(
    "raw",
    [
        b'{"inputSchema":{"type":"object"}}',
        b'{"name":"","inputSchema":{"type":"object"}}',
        b'{"name":null,"inputSchema":{"type":"object"}}',
        b'{"name":5,"inputSchema":{"type":"object"}}',
        b"[]",
        b"null",
        b'"t"',
        b"{",
        b"",
        b"\xff",
        b'{"name":"t","inputSchema":{"type":"object"},"x":"\xff"}',
        b'{"name":"t","inputSchema":' + b'{"a":' * 5000 + b"1" + b"}" * 5001,
    ],
)
def test_what_has_no_name_or_cannot_be_read_is_withheld(raw: bytes) -> None:
    repaired = repair_tool(raw)
    assert (repaired.raw, repaired.name) == (None, "")
    assert repaired.problems[0].startswith("withheld: ")


@pytest.mark.parametrize(
    ("member", "kept"),
    [
        (b'"title":null', None),
        (b'"description":["d"]', None),
        (b'"outputSchema":null', None),
        (b'"outputSchema":true', None),
        (b'"annotations":"safe"', None),
        (b'"icons":{}', None),
        (b'"_meta":[]', None),
        (b'"execution":{"taskSupport":"sometimes"}', None),
        (b'"execution":true', None),
        (
            b'"annotations":{"readOnlyHint":"yes","idempotentHint":false,"x":1.0}',
            b'"annotations":{"idempotentHint":false,"x":1.0}',
        ),
        (b'"annotations":{"title":null}', b'"annotations":{}'),
        (b'"icons":[{"src":1},{"src":"a","z":1.0},"b",{"src":"c","sizes":"48x48"}]', b'"icons":[{"src":"a","z":1.0}]'),
        (b'"icons":[{"src":"a","theme":"blue"},{"src":"b","mimeType":1}]', b'"icons":[]'),
    ],
)
def test_optional_members_of_the_wrong_kind_are_dropped(member: bytes, kept: bytes | None) -> None:
    raw = b'{"name":"t",' + member + b',"inputSchema":{"type":"object"},"unknown":1.0}'
    expected = b'{"name":"t",' + (kept + b"," if kept else b"") + b'"inputSchema":{"type":"object"},"unknown":1.0}'
    repaired = repair_tool(raw)
    assert repaired.raw == expected
    assert len(repaired.problems) == 1


def test_members_given_twice_are_given_once() -> None:
    repaired = repair_tool(b'{"name":"a","inputSchema":{"type":"object","x":1,"x":2},"name":"b"}')
    assert repaired.raw == b'{"name":"b","inputSchema":{"type":"object","x":1,"x":2}}'
    assert repaired.name == "b"
    assert repaired.problems == ("`name` is given twice: the last one was kept",)


@pytest.mark.parametrize(("levels", "published"), [(MAX_DEPTH - 1, True), (MAX_DEPTH, False), (MAX_DEPTH + 5, False)])
def test_depth_is_limited(levels: int, published: bool) -> None:
    # The definition itself is one level, so this many are left for the member.
    nested = b'{"a":' * (levels - 1) + b"{}" + b"}" * (levels - 1)
    repaired = repair_tool(b'{"name":"t","inputSchema":{"type":"object"},"x":' + nested + b"}")
    assert (repaired.raw is not None) is published
    wide = b"[" + b",".join([b"{}"] * 500) + b"]"
    assert repair_tool(b'{"name":"t","inputSchema":{"type":"object"},"x":' + wide + b"}").problems == ()


def test_an_invalid_header_annotation_excludes_over_http_only() -> None:
    raw = with_schema(b'{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}')
    over_http = repair_tool(raw, "http")
    assert over_http.raw is None
    assert over_http.problems[0].startswith("invalid_mcp_header: withheld: ")
    over_stdio = repair_tool(raw, "stdio")
    assert over_stdio.raw == raw
    assert over_stdio.problems[0].startswith("invalid_mcp_header: kept")


def test_the_first_of_a_name_stays() -> None:
    tools = [repair_tool(with_schema(OBJECT).replace(b'"t"', key)) for key in (b'"a"', b'"b"', b'"a"', b'""', b'"A"')]
    later = Repaired(tools[2].raw, "a", ("something",))
    kept, withheld = keep_first([tools[0], tools[1], later, tools[3], tools[4]])
    assert [tool.name for tool in kept] == ["a", "b", "A"]
    assert kept[0] is tools[0]
    assert [(tool.raw, tool.name) for tool in withheld] == [(None, "a"), (None, "")]
    assert withheld[0].problems[0] == "something"
    assert "more than once" in withheld[0].problems[1]


def test_a_withheld_definition_does_not_take_the_name() -> None:
    kept, withheld = keep_first([repair_tool(with_schema(b'{"type":"array"}')), repair_tool(with_schema(OBJECT))])
    assert [tool.raw for tool in kept] == [with_schema(OBJECT)]
    assert len(withheld) == 1


@pytest.mark.parametrize(
    ("output", "kept"),
    [
        (b'{"type":"object","properties":{"a":{"type":"string"}},"x":1.0}', True),
        (b'{"type":"array","items":{}}', False),
        (b'{"type":"string"}', False),
        (b"{}", False),
        (b'{"type":["object","null"]}', False),
        (b'{"oneOf":[{"type":"object"}]}', False),
        (b'{"type":"object","properties":{"a":true}}', False),
        (b'{"type":"object","properties":[]}', False),
    ],
)
def test_legacy_clients_get_object_output_schemas_only(output: bytes, kept: bool) -> None:
    raw = b'{"name":"t","outputSchema":' + output + b',"inputSchema":{"type":"object"},"z":1.0}'
    expected = raw if kept else b'{"name":"t","inputSchema":{"type":"object"},"z":1.0}'
    assert for_legacy(raw) == expected


@pytest.mark.parametrize(
    "raw", [with_schema(OBJECT), b'{"_meta":{"outputSchema":1},"name":"t"}', b'{"outputSchema"', b""]
)
def test_tools_without_output_schema_stay_for_legacy(raw: bytes) -> None:
    assert for_legacy(raw) == raw


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["object", "array", "x", ""]) | st.floats(0, 1),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
schema = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["object", "object", "array", ["object"], None]) | anything,
        "properties": st.dictionaries(st.sampled_from("ab"), anything, max_size=2) | anything,
        "required": st.lists(st.sampled_from("ab") | anything, max_size=2) | anything,
        "$schema": st.just("s") | anything,
        "x": anything,
    },
)
tools = st.fixed_dictionaries(
    {},
    optional={
        "name": st.sampled_from(["t", "u"]) | anything,
        "inputSchema": schema | anything,
        "outputSchema": schema | anything,
        "title": st.just("t") | anything,
        "description": st.just("d") | anything,
        "annotations": st.fixed_dictionaries(
            {}, optional={"readOnlyHint": anything, "title": anything, "vendor": anything}
        )
        | anything,
        "icons": st.lists(
            st.fixed_dictionaries({}, optional={"src": st.just("s") | anything, "sizes": anything}), max_size=2
        )
        | anything,
        "_meta": anything,
        "execution": st.fixed_dictionaries({}, optional={"taskSupport": st.just("optional") | anything}) | anything,
        "unknown": anything,
    },
)


def host_accepts(tool: dict[str, object], legacy: bool) -> bool:
    """The checks that strict hosts make of one entry (protocol schema 2025-11-25), written out again."""

    def optional(key: str, kind: type) -> bool:
        return key not in tool or isinstance(tool[key], kind)

    def plain(schema: object) -> bool:
        if not isinstance(schema, dict) or schema.get("type") != "object":
            return False
        properties, required = schema.get("properties", {}), schema.get("required", [])
        return (
            isinstance(properties, dict)
            and all(isinstance(each, dict) for each in properties.values())
            and isinstance(required, list)
            and all(isinstance(each, str) for each in required)
        )

    annotations, icons = tool.get("annotations", {}), tool.get("icons", [])
    return (
        isinstance(tool.get("name"), str)
        and plain(tool.get("inputSchema"))
        and ("outputSchema" not in tool or (plain(tool["outputSchema"]) if legacy else optional("outputSchema", dict)))
        and all(optional(key, str) for key in ("title", "description"))
        and all(optional(key, dict) for key in ("_meta", "execution"))
        and isinstance(annotations, dict)
        and isinstance(annotations.get("readOnlyHint", True), bool)
        and isinstance(annotations.get("title", ""), str)
        and isinstance(icons, list)
        and all(isinstance(icon, dict) and isinstance(icon.get("src"), str) for icon in icons)
    )


@given(tools)
def test_whatever_is_published_is_taken_by_strict_hosts(tool: dict[str, object]) -> None:
    raw = json.dumps(tool).encode()
    repaired = repair_tool(raw)
    if repaired.raw is None:
        assert repaired.problems
        return
    published = json.loads(repaired.raw)
    assert host_accepts(published, legacy=False)
    assert host_accepts(json.loads(for_legacy(repaired.raw)), legacy=True)
    Tool.model_validate(published)
    assert published["name"] == repaired.name == tool["name"]
    assert published.get("unknown") == tool.get("unknown")
    # Nothing was changed without a word, and a second look finds nothing more.
    assert (repaired.problems == ()) == (repaired.raw == raw)
    assert repair_tool(repaired.raw) == Repaired(repaired.raw, repaired.name, ())


@given(tools)
def test_what_strict_hosts_take_is_not_touched(tool: dict[str, object]) -> None:
    raw = json.dumps(tool).encode()
    if host_accepts(tool, legacy=True) and tool["name"] and repair_tool(raw).raw != raw:
        # Only finer points of icons and execution, and `$schema`, are left to object to.
        words = " ".join(repair_tool(raw).problems)
        assert any(word in words for word in ("icons", "execution", "$schema"))


@given(st.binary(max_size=60) | anything.map(lambda value: json.dumps(value).encode()))
def test_garbage_never_raises(raw: bytes) -> None:
    assert repair_tool(raw).raw is None
    for_legacy(raw)
