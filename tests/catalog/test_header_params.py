"""`x-mcp-header` annotations: what is mirrored into headers, and what makes a tool one that must be excluded."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map

from interlock.catalog.header_params import HeaderParam, header_params, header_problem


def prop(header: object, **schema: object) -> dict[str, object]:
    return {"type": "string", **schema, "x-mcp-header": header}


def tool(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


def test_parameters_are_found_at_any_depth_of_properties() -> None:
    schema = tool(
        region=prop("Region"), limit=prop("Max-Rows", type="integer"), where=tool(dry=prop("D", type="boolean"))
    )
    assert header_params(json.dumps(schema).encode()) == (
        HeaderParam("Mcp-Param-Max-Rows", ("limit",)),
        HeaderParam("Mcp-Param-Region", ("region",)),
        HeaderParam("Mcp-Param-D", ("where", "dry")),
    )


@pytest.mark.parametrize(
    "schema",
    [
        {},
        tool(),
        True,
        None,
        tool(a=prop("Region"), b=prop("Other")),
        tool(**{"x-mcp-header": {"type": "string"}}),
        tool(a={"type": "string", "default": {"x-mcp-header": ""}, "enum": [{"x-mcp-header": 1}]}),
        tool(a={"const": {"properties": {"b": {"x-mcp-header": ""}}}}),
        {"type": "object", "x-vendor": {"x-mcp-header": ""}},
        tool(a=prop("!#$%&'*+-.^_`|~09azAZ")),
    ],
)
def test_these_are_in_order(schema: object) -> None:
    assert header_problem(schema) is None


ANNOTATED = prop("Region")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (tool(a=prop("")), "not an HTTP field name"),
        (tool(a=prop("My Region")), "not an HTTP field name"),
        (tool(a=prop("a:b")), "not an HTTP field name"),
        (tool(a=prop("a\r\nX: y")), "not an HTTP field name"),
        (tool(a=prop("Region\n")), "not an HTTP field name"),
        (tool(a=prop("Région")), "not an HTTP field name"),
        (tool(a=prop(5)), "not a string"),
        (tool(a=prop(None)), "not a string"),
        (tool(a=prop("R", type="number")), "needs the type"),
        (tool(a=prop("R", type="object")), "needs the type"),
        (tool(a=prop("R", type="array")), "needs the type"),
        (tool(a=prop("R", type="null")), "needs the type"),
        (tool(a=prop("R", type=["string", "null"])), "needs the type"),
        (tool(a={"x-mcp-header": "R"}), "needs the type"),
        (tool(a=prop("Region"), b=prop("REGION")), "is given to 'a' and 'b'"),
        (tool(a=prop("Region"), b=tool(c=prop("region"))), "is given to 'a' and 'b.c'"),
        ({"type": "object", "x-mcp-header": "R"}, "through `properties` alone"),
        (tool(a={"type": "array", "items": ANNOTATED}), "through `properties` alone"),
        (tool(a={"type": "array", "items": tool(b=ANNOTATED)}), "through `properties` alone"),
        (tool(a={"prefixItems": [ANNOTATED]}), "through `properties` alone"),
        ({"anyOf": [tool(a=ANNOTATED)]}, "through `properties` alone"),
        ({"oneOf": [tool(a=ANNOTATED)]}, "through `properties` alone"),
        ({"allOf": [tool(a=ANNOTATED)]}, "through `properties` alone"),
        ({"not": tool(a=ANNOTATED)}, "through `properties` alone"),
        ({"if": tool(a=ANNOTATED)}, "through `properties` alone"),
        ({"then": tool(a=ANNOTATED)}, "through `properties` alone"),
        ({"else": tool(a=ANNOTATED)}, "through `properties` alone"),
        ({"$defs": {"r": ANNOTATED}, **tool(a={"$ref": "#/$defs/r"})}, "through `properties` alone"),
        ({"definitions": {"r": ANNOTATED}}, "through `properties` alone"),
        ({"patternProperties": {"^x": ANNOTATED}}, "through `properties` alone"),
        ({"additionalProperties": ANNOTATED}, "through `properties` alone"),
        ({"dependentSchemas": {"a": tool(b=ANNOTATED)}}, "through `properties` alone"),
    ],
)
def test_these_exclude_the_tool(schema: dict[str, object], reason: str) -> None:
    assert reason in (header_problem(schema) or "")
    assert header_params(json.dumps(schema).encode()) == ()
    # The reference implementation agrees that the definition is invalid.
    assert find_invalid_x_mcp_header(schema) is not None


headers = st.sampled_from(["Region", "region", "", "a b", "X-1", 7, None])
leaf = st.fixed_dictionaries(
    {}, optional={"type": st.sampled_from(["string", "integer", "number"]), "x-mcp-header": headers}
)
schemas = st.recursive(
    leaf,
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("string"),
            "x-mcp-header": headers,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "items": inner,
            "anyOf": st.lists(inner, max_size=2),
            "$defs": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "default": inner,
        },
    ),
    max_leaves=10,
)


@given(schemas)
def test_the_reference_implementation_agrees(schema: dict[str, object]) -> None:
    problem = header_problem(schema)
    assert (problem is None) == (find_invalid_x_mcp_header(schema) is None)
    found = {param.path: param.header_name for param in header_params(json.dumps(schema).encode())}
    expected = {path: f"Mcp-Param-{token}" for path, token in x_mcp_header_map(schema).items()} if not problem else {}
    assert found == expected


@pytest.mark.parametrize("raw", [b"", b'"x-mcp-header"', b'{"x-mcp-header', b'["x-mcp-header"]', b"\xff x-mcp-header"])
def test_junk_has_no_parameters(raw: bytes) -> None:
    assert header_params(raw) == ()
