"""What is generated for a host and imported from it again means the same, wherever that host can say it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.hosts.adapters.fake import machine

from interlock.hosts import generating, importing, inventory, registry, wanting
from interlock.hosts.changes.applying import planned
from interlock.hosts.documents import Document, Plain, loaded, text_of
from interlock.hosts.machine import Machine
from interlock.manifest.config import HttpTransport, ServerConfig, StdioTransport

TARGET = Path("/home/ada/.interlock/interlock.yaml")
WORDS = st.text(st.sampled_from("abcXYZ019 .:@=_/'\"é#{},&-"), min_size=1, max_size=12).map(lambda text: f"w{text}")
NAMES = st.sampled_from(["LOG_LEVEL", "MODE", "REGION", "X_1"])
ALL_TOOLS = ("get", "find", "issues_search", "drop_all")
TOOLS = st.sampled_from(ALL_TOOLS)


@st.composite
def documents(draw: st.DrawFn) -> Document:
    made: Document = {"schemaVersion": "agent-routing/v1", "integrationId": "local.s"}
    if draw(st.booleans()):
        env: dict[str, Plain] = {}
        for name in draw(st.lists(NAMES, unique=True, max_size=3)):
            env[name] = {"fromEnv": draw(st.sampled_from(["OTHER", "THIRD"]))} if draw(st.booleans()) else draw(WORDS)
        stdio: Document = {"command": ["prog", *draw(st.lists(WORDS, max_size=3))]}
        made["transports"] = {"stdio": {**stdio, **({"env": env} if env else {})}}
    else:
        headers: dict[str, Plain] = {}
        if draw(st.booleans()):
            headers["Authorization"] = {"fromEnv": "TOK", "prefix": "Bearer "}
        if draw(st.booleans()):
            headers["X-Team"] = draw(st.sampled_from(["platform", "a b"]))
        http: Document = {"endpoint": "https://mcp.example.com/mcp?team=a"}
        made["transports"] = {"http": {**http, **({"headers": headers} if headers else {})}}
    lists: Document = {}
    if draw(st.booleans()):
        lists["deny"] = [*draw(st.lists(TOOLS, unique=True, min_size=1, max_size=2))]
    if draw(st.booleans()):
        lists["allow"] = [*draw(st.lists(TOOLS, unique=True, min_size=1, max_size=2))]
    if lists:
        made["capability"] = {"tools": lists}
    policy: Document = {}
    if draw(st.booleans()):
        policy["toolTimeoutSeconds"] = draw(st.integers(1, 900))
    if draw(st.booleans()):
        policy["defaultApproval"] = draw(st.sampled_from(["auto", "prompt"]))
    if policy:
        made["policy"] = policy
    if draw(st.booleans()):
        made["tools"] = {draw(TOOLS): {"approval": draw(st.sampled_from(["auto", "prompt"]))}}
    return made


def read(text: str, on: Machine) -> list[ServerConfig]:
    found, errors = loaded(text, TARGET, "user", on.platform, on.environ)
    assert errors == []
    return found


_AS_STRICT = {"ask": ("ask", "nothing"), "auto": ("auto", "nothing"), "nothing": ("auto", "nothing", "ask")}
"""What may come back. Nothing said counts as asking; where the manifest says nothing, the host's own way does."""


def usable(config: ServerConfig, tool: str) -> bool:
    allowed = config.allow is None or tool in {rule.glob for rule in config.allow}
    return allowed and tool not in {rule.glob for rule in config.deny}


def answer(config: ServerConfig, tool: str) -> str:
    """What the manifest says of a call of this tool."""
    own = config.tools[tool].approval if tool in config.tools else None
    return {"auto": "auto", None: "nothing"}.get(own or config.policy.default_approval, "ask")


def meaning(config: ServerConfig) -> dict[str, object]:
    """Field by field, under the names that a host's losses have."""
    transport = config.transport
    made: dict[str, object] = {
        "capability.tools": {tool for tool in (*ALL_TOOLS, "any.other") if usable(config, tool)},
        "policy.defaultApproval": answer(config, "any.other"),
        **{f"tools.{tool}.approval": answer(config, tool) for tool in ALL_TOOLS if usable(config, tool)},
        "policy.toolTimeoutSeconds": config.policy.tool_timeout_seconds,
        "enabled": config.enabled,
    }
    if isinstance(transport, StdioTransport):
        made["command"] = transport.declared
        made["env"] = {each.name: (each.source, each.literal) for each in transport.env}
    else:
        assert isinstance(transport, HttpTransport)
        made["http"] = (transport.kind, transport.endpoint)
        made["headers"] = {each.name: (each.source, each.literal, each.prefix) for each in transport.headers}
    return made


@pytest.mark.parametrize("host", registry.IDS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=documents())
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, host: str, document: Document) -> None:
    on = machine(tmp_path_factory.mktemp("machine"))
    adapter = registry.find(host)
    assert adapter is not None
    (config,) = read(text_of([(document, ())]), on)
    made = generating.plan(adapter, on, [wanting.direct(config, adapter, on, "user", None)], scope="user")
    if made.refused:
        return  # it says so, by name
    for each in planned(on, made.edits):
        file = Path(on.real(each.file))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.after)
    taken = importing.take(inventory.take(on, [host], plugins=False).declarations, on, target=TARGET)
    assert [each.why for each in taken.left] == []
    (again,) = read(taken.text(), on)
    before, after = meaning(config), meaning(again)
    lost = {each.loss.field for each in made.losses}
    for field in before:
        approval = field.endswith("pproval") and any(name.endswith("pproval") for name in lost)
        if not approval and not any(name == field or name.startswith(f"{field}.") for name in lost):
            if field.endswith("pproval"):
                assert after.get(field) in _AS_STRICT[str(before[field])], field
            else:
                assert after[field] == before[field], field
