"""One document at a time: what is accepted and what it means, what is refused, on which line, and what to write.

The same table is judged by the JSON Schema, which must agree wherever a schema can say it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from interlock.manifest.json_schema import schema

if TYPE_CHECKING:
    from conftest import Desk

HEAD = "schemaVersion: agent-routing/v1\nintegrationId: acme.search\n"
HTTP = "transports:\n  http:\n    endpoint: https://mcp.example.com/mcp\n"
BASE = HEAD + HTTP
STDIO = HEAD + "transports:\n  stdio:\n    command: [node, server.js]\n"


@dataclass(frozen=True)
class Refused:
    text: str
    code: str
    line: int
    field: str
    write: str = ""
    """Part of the advice."""
    schema_says: bool = True
    """Whether the JSON Schema refuses it too."""


ACCEPTED = {
    "minimal http": BASE,
    "minimal stdio": STDIO,
    "json is yaml": '{"schemaVersion": "agent-routing/v1", "integrationId": "a", '
    '"transports": {"sse": {"endpointEnv": "U"}}}\n',
    "reverse dns id": HEAD.replace("acme.search", "io.github.acme/search") + HTTP,
    "key with spaces": BASE + "key: My Search\n",
    "one letter key": BASE + "key: é\n",
    "all approvals": BASE
    + "tools: {a: {approval: auto}, b: {approval: prompt}, c: {approval: approve}, d: {approval: always}, "
    + "e: {approval: writes}, f: {approval: host}}\n",
    "empty allow": BASE + "capability: {tools: {allow: []}}\n",
    "literal numbers in env": STDIO + '    env: {PORT: 8080, DEBUG: true, RATIO: 0.5, VERSION: "1.10"}\n',
    "header by reference": BASE + '    headers: {Authorization: {fromEnv: TOKEN, prefix: "Bearer "}}\n',
    "public value that looks random": STDIO + '    env: {SITE: {literal: "aB3dE5fG7hJ9kL1mN2pQ4", notSecret: true}}\n',
    "several lines of purpose": BASE + "capability:\n  purpose: |\n    One.\n    Two.\n",
    "alias": STDIO + "    env: {A: &level info, B: *level}\n",
    "newline in an argument": HEAD + 'transports: {stdio: {command: [sh, -c, "echo 1\\necho 2"]}}\n',
    "no is a text": BASE + "owner: no\n",
    "http on loopback": HEAD + "transports: {http: {endpoint: 'http://127.0.0.1:8000/mcp'}}\n",
    "preferred": HEAD + "transports: {preferred: stdio, http: {endpointEnv: U}, stdio: {command: [node]}}\n",
}

REFUSED = {
    "unknown field": Refused(BASE + "polcy: {}\n", "unknown-field", 6, "polcy", "policy:"),
    "wrong case": Refused(
        BASE + "policy:\n  default_approval: auto\n", "unknown-field", 7, "policy.default_approval", "defaultApproval:"
    ),
    "field of another table": Refused(
        BASE + "defaultApproval: auto\n", "unknown-field", 6, "defaultApproval", "policy.defaultApproval"
    ),
    "args beside command": Refused(
        STDIO + "    args: [-y]\n", "unknown-field", 6, "transports.stdio.args", "command: [npx, -y"
    ),
    "host file": Refused("mcpServers: {}\n", "unknown-field", 1, "mcpServers", "one document for each server"),
    "not a table": Refused("just text\n", "wrong-type", 1, ""),
    "no version": Refused("integrationId: a\n" + HTTP, "missing", 1, "schemaVersion", "agent-routing/v1"),
    "other version": Refused(
        BASE.replace("/v1", "/v2"), "wrong-word", 1, "schemaVersion", "schemaVersion: agent-routing/v1"
    ),
    "no id": Refused("schemaVersion: agent-routing/v1\n" + HTTP, "missing", 1, "integrationId"),
    "bad id": Refused(BASE.replace("acme.search", "acme search"), "wrong-form", 2, "integrationId"),
    "no transport": Refused(HEAD + "transports: {}\n", "missing", 3, "transports", "stdio"),
    "slash in key": Refused(BASE + "key: a/b\n", "wrong-form", 6, "key"),
    "space after key": Refused(BASE + 'key: "a "\n', "wrong-form", 6, "key"),
    "escape in key": Refused(BASE + 'key: "a\\e[2Jb"\n', "wrong-form", 6, "key"),
    "two endpoints": Refused(BASE + "    endpointEnv: U\n", "contradiction", 6, "transports.http"),
    "no endpoint": Refused(HEAD + "transports: {http: {}}\n", "missing", 3, "transports.http", "endpoint:"),
    "ftp": Refused(HEAD + "transports: {http: {endpoint: 'ftp://x/'}}\n", "wrong-form", 3, "transports.http.endpoint"),
    "empty port": Refused(
        HEAD + "transports: {http: {endpoint: 'https://x:99999/'}}\n",
        "wrong-form",
        3,
        "transports.http.endpoint",
        schema_says=False,
    ),
    "preferred is missing": Refused(
        HEAD + "transports: {preferred: stdio, http: {endpointEnv: U}}\n", "contradiction", 3, "transports.preferred"
    ),
    "command as text": Refused(
        HEAD + "transports: {stdio: {command: node x.js}}\n", "wrong-type", 3, "transports.stdio.command"
    ),
    "empty command": Refused(
        HEAD + "transports: {stdio: {command: []}}\n", "wrong-count", 3, "transports.stdio.command"
    ),
    "empty program": Refused(
        HEAD + 'transports: {stdio: {command: [""]}}\n', "empty", 3, "transports.stdio.command[0]", schema_says=False
    ),
    "number as text": Refused(BASE + "source: {version: 2.0}\n", "wrong-type", 6, "source.version", 'version: "2.0"'),
    "yes is no boolean": Refused(BASE + "enabled: yes\n", "wrong-type", 6, "enabled", "enabled: false"),
    "boolean is no number": Refused(
        BASE + "policy: {toolTimeoutSeconds: true}\n", "wrong-type", 6, "policy.toolTimeoutSeconds"
    ),
    "zero timeout": Refused(BASE + "policy: {toolTimeoutSeconds: 0}\n", "out-of-range", 6, "policy.toolTimeoutSeconds"),
    "infinite timeout": Refused(
        BASE + "policy: {toolTimeoutSeconds: 1e999}\n", "out-of-range", 6, "policy.toolTimeoutSeconds"
    ),
    "fraction of a byte": Refused(BASE + "policy: {maxResultBytes: 1.5}\n", "wrong-type", 6, "policy.maxResultBytes"),
    "wrong approval": Refused(
        BASE + "policy: {defaultApproval: allways}\n",
        "wrong-word",
        6,
        "policy.defaultApproval",
        "defaultApproval: always",
    ),
    "approval of another program": Refused(
        BASE + "policy: {defaultApproval: allow}\n", "wrong-word", 6, "policy.defaultApproval", "defaultApproval: auto"
    ),
    "ask for prompt": Refused(
        BASE + "tools: {a: {approval: ask}}\n", "wrong-word", 6, "tools.a.approval", "approval: prompt"
    ),
    "deny as approval": Refused(
        BASE + "tools: {a: {approval: deny}}\n", "wrong-word", 6, "tools.a.approval", "capability: {tools: {deny:"
    ),
    "glob in overrides": Refused(BASE + "tools:\n  'issues.*': {read: true}\n", "wrong-form", 7, "tools (name)"),
    "empty glob": Refused(BASE + 'capability: {tools: {deny: [""]}}\n', "empty", 6, "capability.tools.deny[0]"),
    "header of ours": Refused(
        BASE + "    headers: {MCP-Protocol-Version: x}\n",
        "our-header",
        6,
        "transports.http.headers.MCP-Protocol-Version",
        schema_says=False,
    ),
    "header twice": Refused(
        BASE + "    headers: {X-A: x, x-a: y}\n", "duplicate-field", 6, "transports.http.headers.x-a", schema_says=False
    ),
    "line break in header": Refused(
        BASE + '    headers: {X-A: "a\\r\\nB: c"}\n', "wrong-form", 6, "transports.http.headers.X-A", schema_says=False
    ),
    "space in header name": Refused(
        BASE + "    headers: {'X A': x}\n", "wrong-form", 6, "transports.http.headers (name)"
    ),
    "variable twice": Refused(
        STDIO + "    env: {A: x}\n    envNames: [A]\n",
        "duplicate-field",
        7,
        "transports.stdio.envNames[0]",
        schema_says=False,
    ),
    "bad variable name": Refused(STDIO + "    envNames: [1A]\n", "wrong-form", 6, "transports.stdio.envNames[0]"),
    "empty variable": Refused(STDIO + "    env: {A: }\n", "wrong-type", 6, "transports.stdio.env.A"),
    "placeholder": Refused(
        STDIO + '    env: {A: "${HOME_TOKEN}"}\n',
        "placeholder",
        6,
        "transports.stdio.env.A",
        "fromEnv",
        schema_says=False,
    ),
    "field twice": Refused(
        BASE + "owner: a\nowner: b\n", "duplicate-field", 7, "", "one of the two", schema_says=False
    ),
    "tag": Refused(BASE + "owner: !!python/object:os.system x\n", "yaml-tag", 6, "", schema_says=False),
    "merge key": Refused(BASE + "source: {<<: {version: x}}\n", "yaml-merge", 6, "", schema_says=False),
    "alias to itself": Refused(BASE + "source: &a {version: *a}\n", "yaml-alias", 6, "", schema_says=False),
    "list as name": Refused(BASE + "? [a]\n: b\n", "yaml-key", 6, "", schema_says=False),
    "tab": Refused(BASE + "policy:\n\tdefaultApproval: auto\n", "yaml-syntax", 7, "", "spaces", schema_says=False),
    "bidi in owner": Refused(BASE + 'owner: "a\\u202eb"\n', "wrong-form", 6, "owner"),
}


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(schema())
    return Draft202012Validator(schema())


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_accepted(desk: Desk, validator: Draft202012Validator, text: str) -> None:
    loaded = desk.load_text(text)
    assert [str(problem) for problem in loaded.errors] == []
    assert len(loaded.gateway.servers) == 1
    content = YAML(typ="safe", pure=True).load(text)
    assert [error.message for error in validator.iter_errors(content)] == []


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(desk: Desk, validator: Draft202012Validator, case: Refused) -> None:
    loaded = desk.load_text(case.text)
    assert not loaded.gateway.servers
    found = [problem for problem in loaded.errors if problem.code == case.code]
    assert [(problem.line, problem.field) for problem in found[:1]] == [(case.line, case.field)], list(
        map(str, loaded.problems)
    )
    assert case.write in found[0].write
    assert found[0].file == desk.home / "interlock.yaml"
    if case.schema_says:
        assert not validator.is_valid(YAML(typ="safe", pure=True).load(case.text))


def test_every_mistake_of_a_document_is_named_at_once(desk: Desk) -> None:
    loaded = desk.load_text(BASE + "ownr: a\nenabled: 1\npolicy:\n  defaultApproval: maybe\n")
    assert [(problem.line, problem.code) for problem in loaded.errors] == [
        (6, "unknown-field"),
        (7, "wrong-type"),
        (9, "wrong-word"),
    ]


def test_a_problem_reads_as_one_sentence_with_place_field_and_advice(desk: Desk) -> None:
    loaded = desk.load_text(BASE + "polcy: {}\n")
    assert str(loaded.problems[0]) == (
        f"{desk.home / 'interlock.yaml'}:6:1: error: polcy: There is no field `polcy`; did you mean "
        "`policy`? Write: policy:"
    )


def test_what_an_entry_means(desk: Desk) -> None:
    loaded = desk.load_text(
        STDIO
        + "    cwd: ../repo\n"
        + "    env: {LEVEL: info, API_TOKEN: {fromEnv: MY_TOKEN}}\n"
        + "    envNames: [PLAIN]\n"
        + "capability: {purpose: Search, tools: {allow: [a.*], deny: [a.delete]}}\n"
        + "policy: {defaultApproval: writes, writesApproval: always, "
        + "startupTimeoutSeconds: 5, toolTimeoutSeconds: 0.5}\n"
        + "tools:\n  a.get: {read: true, approval: auto, timeoutSeconds: 9}\n  a.put: {read: false}\n"
        + "key: finder\nenabled: false\nrequired: true\nprocesses: shared\nstart: on-call\nera: "
        "legacy\nnames: verbatim\n"
    )
    assert loaded.problems == ()
    config = loaded.gateway.servers["finder"]
    transport = config.transport
    assert transport.command == (f"{desk.environ['PATH']}/node", "server.js")
    assert transport.cwd == desk.project
    assert [(value.name, value.source, value.literal) for value in transport.env] == [
        ("LEVEL", None, "info"),
        ("API_TOKEN", "MY_TOKEN", None),
        ("PLAIN", "PLAIN", None),
    ]
    assert [(rule.glob, rule.origin.line) for rule in (*config.allow, *config.deny)] == [("a.*", 9), ("a.delete", 9)]
    policy = config.policy
    assert (policy.default_approval, policy.default_approval_origin.line) == ("writes", 10)
    assert (policy.writes_approval, policy.startup_timeout_seconds, policy.tool_timeout_seconds) == ("always", 5.0, 0.5)
    get, put = config.tools["a.get"], config.tools["a.put"]
    assert (get.approval, get.read, get.timeout_seconds, get.origin.line) == ("auto", True, 9, 12)
    assert (put.approval, put.read, put.timeout_seconds) == (None, False, None)
    assert (config.enabled, config.required, config.processes, config.start) == (False, True, "shared", "on-call")
    assert (config.era, config.names, config.scope, config.blocked) == ("legacy", "verbatim", "user", None)


@pytest.mark.parametrize(
    ("platform", "kind", "command"),
    [("linux", "stdio", "node"), ("windows", "stdio", "node.exe"), ("macos", "http", None)],
)
def test_the_transport_follows_the_platform(desk: Desk, platform: str, kind: str, command: str | None) -> None:
    text = HEAD + (
        "transports:\n  preferred: stdio\n  http: {endpointEnv: U}\n"
        "  stdio: {commandByPlatform: {windows: [node.exe, s.js], linux: [node, s.js]}}\n"
    )
    loaded = desk.load_text(text, platform=platform)
    config = loaded.gateway.servers["search"]
    transport = config.transport
    assert config.blocked is None
    assert getattr(transport, "kind", "stdio") == kind
    if command is not None:
        assert transport.command[0].rpartition("/")[2] == command
    assert ("other-transport" in {problem.code for problem in loaded.problems}) == (platform == "macos")


def test_a_server_without_a_command_for_this_platform_is_shown_and_does_not_start(desk: Desk) -> None:
    loaded = desk.load_text(
        HEAD + "transports: {stdio: {commandByPlatform: {windows: [node.exe]}}}\n", platform="macos"
    )
    assert "no command for macos" in loaded.gateway.servers["search"].blocked
    assert loaded.errors == ()


@pytest.mark.parametrize(
    ("integration_id", "key"),
    [
        ("acme.issue-search", "issue-search"),
        ("search", "search"),
        ("io.github.acme/finder", "finder"),
        ("a.b.c_d", "c_d"),
    ],
)
def test_the_key_comes_from_the_id_alone(desk: Desk, integration_id: str, key: str) -> None:
    loaded = desk.load_text(BASE.replace("acme.search", integration_id))
    assert list(loaded.gateway.servers) == [key]


def test_rules_written_with_the_key_in_front_are_pointed_out(desk: Desk) -> None:
    loaded = desk.load_text(BASE + "capability: {tools: {deny: [search/delete]}}\n")
    assert [(problem.code, problem.severity, problem.write) for problem in loaded.problems] == [
        ("prefixed-rule", "warning", "delete")
    ]


def test_auth_none_waits_for_nothing(desk: Desk) -> None:
    loaded = desk.load_text(BASE + "    auth: none\npolicy: {requireOutputSchema: false}\n")
    assert loaded.gateway.servers["search"].unenforced == ()
    loaded = desk.load_text(BASE + "    auth: oauth\npolicy: {requireOutputSchema: true}\n")
    assert loaded.gateway.servers["search"].unenforced == ("policy.requireOutputSchema",)
