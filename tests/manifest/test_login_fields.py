"""`auth`, `scopes`, `oauth`, `token` and `session`: what they mean, and each contradiction with its line and advice."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from interlock.manifest.config import HeaderValue, OAuth, Replay, TokenSource
from interlock.manifest.json_schema import schema
from interlock.manifest.launch import launch_plan, plan_hash
from interlock.manifest.login_fields import LOGIN
from interlock.manifest.shapes import RecordField

if TYPE_CHECKING:
    from conftest import Desk

HEAD = "schemaVersion: agent-routing/v1\nintegrationId: acme.search\ntransports:\n"
HTTP = HEAD + "  http:\n    endpoint: https://mcp.example.com/mcp\n"
OAUTH = HTTP + "    auth: oauth\n"
TOKEN = HTTP + "    auth: token\n"
VALIDATOR = Draft202012Validator(schema())

MEANS: dict[str, tuple[str, OAuth | None]] = {
    "none": (HTTP + "    auth: none\n", None),
    "oauth alone": (OAUTH, OAuth()),
    "scopes, each once": (OAUTH + "    scopes: [a.read, 'b:write', a.read]\n", OAuth(scopes=("a.read", "b:write"))),
    "empty settings": (OAUTH + "    oauth: {}\n", OAuth()),
    "device": (OAUTH + "    oauth: {flow: device}\n", OAuth(flow="device")),
    "preset": (
        OAUTH + "    oauth: {clientId: desk, clientSecretEnv: S, callbackPort: 4000}\n",
        OAuth(client_id="desk", client_secret_env="S", callback_port=4000),
    ),
    "client credentials": (
        OAUTH + "    oauth: {flow: client-credentials, clientIdEnv: I, clientSecretEnv: S}\n",
        OAuth(flow="client-credentials", client_id_env="I", client_secret_env="S"),
    ),
    "document": (
        OAUTH + "    oauth: {clientMetadataUrl: 'https://example.com:8443/client.json'}\n",
        OAuth(client_metadata_url="https://example.com:8443/client.json"),
    ),
    "issuer": (
        OAUTH + "    oauth: {clientId: desk, issuer: 'https://login.example.com/t1'}\n",
        OAuth(client_id="desk", issuer="https://login.example.com/t1"),
    ),
    "resource that is no URL": (OAUTH + "    oauth: {resource: 'api://issues'}\n", OAuth(resource="api://issues")),
    "resource with its slash kept": (
        OAUTH + "    oauth: {resource: 'https://mcp.example.com/'}\n",
        OAuth(resource="https://mcp.example.com/"),
    ),
    "sse": (HEAD + "  sse: {endpoint: 'https://x.example/sse', auth: oauth}\n", OAuth()),
}


@pytest.mark.parametrize(("text", "oauth"), MEANS.values(), ids=MEANS)
def test_what_oauth_settings_mean(desk: Desk, text: str, oauth: OAuth | None) -> None:
    loaded = desk.load_text(text)
    assert [str(problem) for problem in loaded.problems] == []
    config = loaded.gateway.servers["search"]
    assert (config.transport.oauth, config.transport.token) == (oauth, None)
    assert config.unenforced == ()
    assert VALIDATOR.is_valid(YAML(typ="safe", pure=True).load(text))


def test_pkce_can_be_waived_and_that_is_said(desk: Desk) -> None:
    loaded = desk.load_text(OAUTH + "    oauth: {allowMissingPkce: true}\n")
    assert loaded.gateway.servers["search"].transport.oauth == OAuth(allow_missing_pkce=True)
    assert [(problem.code, problem.severity) for problem in loaded.problems] == [("missing-pkce", "warning")]


def test_a_resource_of_another_machine_is_said(desk: Desk) -> None:
    loaded = desk.load_text(OAUTH + "    oauth: {resource: 'https://other.example/mcp'}\n")
    assert [(problem.code, problem.severity, problem.line) for problem in loaded.problems] == [
        ("other-resource", "warning", 7)
    ]


def test_a_token_by_variable_and_file(desk: Desk) -> None:
    file = desk.home / "tokens" / "acme"
    file.parent.mkdir()
    file.write_text("x")
    file.chmod(0o600)
    loaded = desk.load_text(TOKEN + "    token: {fromEnv: ACME_TOKEN, fromFile: tokens/acme}\n")
    assert [str(problem) for problem in loaded.problems] == []
    transport = loaded.gateway.servers["search"].transport
    assert (transport.token, transport.oauth) == (TokenSource(env="ACME_TOKEN", file=file), None)


@pytest.mark.parametrize(("mode", "code"), [(0o600, None), (0o640, "wide-file"), (None, "no-file")])
def test_a_token_file_is_looked_at(desk: Desk, mode: int | None, code: str | None) -> None:
    if mode is not None:
        (desk.home / "t").write_text("x")
        (desk.home / "t").chmod(mode)
    loaded = desk.load_text(TOKEN + "    token: {fromFile: t}\n")
    assert [(problem.code, problem.severity) for problem in loaded.problems] == ([(code, "warning")] if code else [])
    assert loaded.gateway.servers["search"].transport.token == TokenSource(file=desk.home / "t")


def test_a_session_s_headers_and_replayed_calls(desk: Desk) -> None:
    loaded = desk.load_text(
        HTTP
        + "    headers: {X-Team: platform}\n"
        + "    session:\n"
        + '      headers: {X-Agent: {fromEnv: AGENT, prefix: "agent "}, X-Desk: "7"}\n'
        + "      replay: [{tool: register, remember: [name, role]}, {tool: join}]\n"
    )
    assert [str(problem) for problem in loaded.problems] == []
    transport = loaded.gateway.servers["search"].transport
    assert transport.headers == (HeaderValue("X-Team", literal="platform"),)
    assert transport.session_headers == (
        HeaderValue("X-Agent", source="AGENT", prefix="agent "),
        HeaderValue("X-Desk", literal="7"),
    )
    assert transport.replay == (Replay("register", ("name", "role")), Replay("join"))


@dataclass(frozen=True)
class Refused:
    text: str
    code: str
    line: int
    field: str
    write: str = ""
    schema_says: bool = True


H = "transports.http"
REFUSED = {
    "another word": Refused(HTTP + "    auth: oauth2\n", "wrong-word", 6, f"{H}.auth", "auth: oauth"),
    "token without its source": Refused(TOKEN, "contradiction", 6, f"{H}.auth", "token: {fromEnv: ACME_TOKEN}"),
    "token with oauth": Refused(
        OAUTH + "    token: {fromEnv: T}\n", "contradiction", 7, f"{H}.token", "auth: token, or the entry without"
    ),
    "token without auth": Refused(HTTP + "    token: {fromEnv: T}\n", "contradiction", 6, f"{H}.token", "auth: token"),
    "oauth settings with token": Refused(
        TOKEN + "    token: {fromEnv: T}\n    oauth: {flow: device}\n", "contradiction", 8, f"{H}.oauth", "auth: oauth"
    ),
    "oauth settings without auth": Refused(
        HTTP + "    oauth: {flow: device}\n", "contradiction", 6, f"{H}.oauth", "auth: oauth"
    ),
    "scopes without auth": Refused(HTTP + "    scopes: [a]\n", "contradiction", 6, f"{H}.scopes", "auth: oauth"),
    "scopes with none": Refused(HTTP + "    auth: none\n    scopes: [a]\n", "contradiction", 7, f"{H}.scopes"),
    "two scopes in one": Refused(OAUTH + "    scopes: ['a b']\n", "wrong-form", 7, f"{H}.scopes[0]"),
    "authorization header with oauth": Refused(
        OAUTH + '    headers: {authorization: {fromEnv: T, prefix: "Bearer "}}\n',
        "contradiction",
        7,
        f"{H}.headers.authorization",
        "one of the two",
        schema_says=False,
    ),
    "authorization header with token": Refused(
        TOKEN + "    token: {fromEnv: T}\n    headers: {Authorization: {fromEnv: T}}\n",
        "contradiction",
        8,
        f"{H}.headers.Authorization",
        schema_says=False,
    ),
    "authorization for the session": Refused(
        OAUTH + "    session: {headers: {Authorization: {fromEnv: T}}}\n",
        "contradiction",
        7,
        f"{H}.session.headers.Authorization",
        schema_says=False,
    ),
    "header in both": Refused(
        HTTP + "    headers: {X-A: x}\n    session: {headers: {x-a: y}}\n",
        "duplicate-field",
        7,
        f"{H}.session.headers.x-a",
        "one of the two",
        schema_says=False,
    ),
    "our header for the session": Refused(
        HTTP + "    session: {headers: {Mcp-Session-Id: x}}\n",
        "our-header",
        6,
        f"{H}.session.headers.Mcp-Session-Id",
        schema_says=False,
    ),
    "client credentials without a secret": Refused(
        OAUTH + "    oauth: {flow: client-credentials, clientId: x}\n",
        "contradiction",
        7,
        f"{H}.oauth.flow",
        "clientSecretEnv:",
    ),
    "client credentials without an id": Refused(
        OAUTH + "    oauth: {flow: client-credentials, clientSecretEnv: S}\n",
        "contradiction",
        7,
        f"{H}.oauth.clientSecretEnv",
        "clientId:",
    ),
    "secret without an id": Refused(
        OAUTH + "    oauth: {clientSecretEnv: S}\n", "contradiction", 7, f"{H}.oauth.clientSecretEnv", "clientId:"
    ),
    "two ids": Refused(OAUTH + "    oauth: {clientId: a, clientIdEnv: B}\n", "contradiction", 7, f"{H}.oauth"),
    "id and document": Refused(
        OAUTH + "    oauth: {clientId: a, clientMetadataUrl: 'https://x.example/c'}\n", "contradiction", 7, f"{H}.oauth"
    ),
    "id as a variable": Refused(
        OAUTH + '    oauth: {clientId: "${ID}"}\n',
        "placeholder",
        7,
        f"{H}.oauth.clientId",
        "clientIdEnv",
        schema_says=False,
    ),
    "secret in the file": Refused(
        OAUTH + "    oauth: {clientId: a, clientSecret: x}\n",
        "unknown-field",
        7,
        f"{H}.oauth.clientSecret",
        "clientSecretEnv",
    ),
    "low port": Refused(OAUTH + "    oauth: {callbackPort: 80}\n", "out-of-range", 7, f"{H}.oauth.callbackPort"),
    "high port": Refused(OAUTH + "    oauth: {callbackPort: 65536}\n", "out-of-range", 7, f"{H}.oauth.callbackPort"),
    "port without a browser": Refused(
        OAUTH + "    oauth: {flow: device, callbackPort: 4000}\n",
        "contradiction",
        7,
        f"{H}.oauth.callbackPort",
        "without `callbackPort`",
        schema_says=False,
    ),
    "document by http": Refused(
        OAUTH + "    oauth: {clientMetadataUrl: 'http://x.example/c'}\n",
        "wrong-form",
        7,
        f"{H}.oauth.clientMetadataUrl",
    ),
    "document without a path": Refused(
        OAUTH + "    oauth: {clientMetadataUrl: 'https://x.example/'}\n",
        "wrong-form",
        7,
        f"{H}.oauth.clientMetadataUrl",
    ),
    "document with dots": Refused(
        OAUTH + "    oauth: {clientMetadataUrl: 'https://x.example/a/../c'}\n",
        "wrong-form",
        7,
        f"{H}.oauth.clientMetadataUrl",
        schema_says=False,
    ),
    "issuer by http": Refused(
        OAUTH + "    oauth: {issuer: 'http://login.example'}\n",
        "wrong-form",
        7,
        f"{H}.oauth.issuer",
        "issuer: https://",
        schema_says=False,
    ),
    "issuer with a query": Refused(
        OAUTH + "    oauth: {issuer: 'https://login.example?t=1'}\n", "wrong-form", 7, f"{H}.oauth.issuer"
    ),
    "issuer with dots": Refused(
        OAUTH + "    oauth: {issuer: 'https://login.example/a/../b'}\n",
        "wrong-form",
        7,
        f"{H}.oauth.issuer",
        schema_says=False,
    ),
    "endpoint with dots": Refused(
        HEAD + "  http:\n    endpoint: https://mcp.example.com/a/../mcp\n",
        "wrong-form",
        5,
        f"{H}.endpoint",
        schema_says=False,
    ),
    "resource with a fragment": Refused(
        OAUTH + "    oauth: {resource: 'https://x.example/#a'}\n", "wrong-form", 7, f"{H}.oauth.resource"
    ),
    "resource that is relative": Refused(
        OAUTH + "    oauth: {resource: /mcp}\n", "wrong-form", 7, f"{H}.oauth.resource"
    ),
    "token in place": Refused(
        TOKEN + "    token: hunter2\n", "literal-secret", 7, f"{H}.token", "token: {fromEnv: ACME_TOKEN}"
    ),
    "token as a literal": Refused(
        TOKEN + "    token: {fromEnv: T, literal: x}\n", "unknown-field", 7, f"{H}.token.literal"
    ),
    "no source": Refused(TOKEN + "    token: {}\n", "missing", 7, f"{H}.token", "token: {fromEnv: ACME_TOKEN}"),
    "variable in the file's name": Refused(
        TOKEN + '    token: {fromFile: "${HOME}/t"}\n', "placeholder", 7, f"{H}.token.fromFile", schema_says=False
    ),
    "empty session": Refused(HTTP + "    session: {}\n", "missing", 6, f"{H}.session"),
    "replay without a tool": Refused(
        HTTP + "    session: {replay: [{remember: [a]}]}\n", "missing", 6, f"{H}.session.replay[0].tool", "tool:"
    ),
    "replay as texts": Refused(
        HTTP + "    session: {replay: [register]}\n", "wrong-type", 6, f"{H}.session.replay[0]", "{tool: register"
    ),
    "replay twice": Refused(
        HTTP + "    session: {replay: [{tool: a}, {tool: a}]}\n",
        "duplicate-field",
        6,
        f"{H}.session.replay[1].tool",
        schema_says=False,
    ),
    "unknown in replay": Refused(
        HTTP + "    session: {replay: [{tool: a, rememeber: [b]}]}\n",
        "unknown-field",
        6,
        f"{H}.session.replay[0].rememeber",
        "remember:",
    ),
    "auth of a child process": Refused(
        HEAD + "  stdio:\n    command: [node]\n    auth: oauth\n", "unknown-field", 6, "transports.stdio.auth", "env"
    ),
    "token of a child process": Refused(
        HEAD + "  stdio:\n    command: [node]\n    token: {fromEnv: T}\n", "unknown-field", 6, "transports.stdio.token"
    ),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_refused(desk: Desk, case: Refused) -> None:
    loaded = desk.load_text(case.text)
    assert not loaded.gateway.servers
    assert [(problem.code, problem.line, problem.field) for problem in loaded.errors] == [
        (case.code, case.line, case.field)
    ]
    assert case.write in loaded.errors[0].write
    if case.schema_says:
        assert not VALIDATOR.is_valid(YAML(typ="safe", pure=True).load(case.text))


@pytest.mark.parametrize(
    "place",
    [
        "auth: token\n    token: {}",
        "auth: token\n    token: {{fromEnv: {}}}",
        "auth: token\n    token: {{fromFile: {}}}",
        "auth: oauth\n    oauth: {{clientId: a, clientSecretEnv: {}}}",
        "auth: oauth\n    oauth: {{clientIdEnv: {}}}",
        "auth: oauth\n    oauth: {{resource: 'https://mcp.example.com/?token={}'}}",
        "session: {{headers: {{X-Agent: {}}}}}",
    ],
)
def test_a_pasted_secret_is_refused_and_never_repeated(desk: Desk, place: str) -> None:
    secret = "a" + secrets.token_hex(24)
    loaded = desk.load_text(f"{HTTP}    {place.format(secret)}\n")
    assert {problem.code for problem in loaded.errors} == {"literal-secret"}
    assert not any(secret in str(problem) for problem in loaded.problems)


def plan_of(desk: Desk, text: str) -> object:
    return launch_plan(desk.load_text(text).gateway.servers["search"], {})


def test_the_plan_that_a_person_trusts_names_login_and_session(desk: Desk) -> None:
    plan = plan_of(
        desk,
        OAUTH
        + "    scopes: [a, b]\n"
        + "    oauth: {resource: 'https://mcp.example.com/x', clientIdEnv: I, callbackPort: 4000}\n"
        + "    session: {headers: {X-Agent: {fromEnv: AGENT}}, replay: [{tool: join}, {tool: say, remember: [who]}]}\n",
    )
    assert plan.login == (
        "oauth, browser",
        "scopes: a b",
        "resource: https://mcp.example.com/x",
        "client id from: $I",
        "callback port: 4000",
    )
    assert plan.session == ("X-Agent: $AGENT", "repeats join(all arguments)", "repeats say(who)")
    token = plan_of(desk, TOKEN + "    token: {fromEnv: T, fromFile: /etc/acme/token}\n")
    assert token.login == ("token from $T or /etc/acme/token",)


def test_each_of_them_is_part_of_what_is_trusted(desk: Desk) -> None:
    texts = [
        HTTP,
        OAUTH,
        OAUTH + "    scopes: [a]\n",
        OAUTH + "    oauth: {resource: 'https://mcp.example.com/x'}\n",
        OAUTH + "    oauth: {allowMissingPkce: true}\n",
        OAUTH + "    oauth: {flow: device}\n",
        OAUTH + "    oauth: {clientId: a}\n",
        OAUTH + "    oauth: {clientId: a, issuer: 'https://login.example.com'}\n",
        TOKEN + "    token: {fromEnv: T}\n",
        TOKEN + "    token: {fromFile: /etc/a}\n",
        HTTP + "    session: {headers: {X-Agent: a}}\n",
        HTTP + "    session: {replay: [{tool: a}]}\n",
        HTTP + "    session: {replay: [{tool: a, remember: [b]}]}\n",
    ]
    assert len({plan_hash([plan_of(desk, text)]) for text in texts}) == len(texts)


def test_what_was_trusted_before_these_fields_existed_stays_trusted(desk: Desk) -> None:
    # The hash of this very plan as the release before wrote it.
    plan = plan_of(desk, HTTP)
    assert plan_hash([plan]) == "sha256:94b3c8aacc4f0696a82e465f703852c09bb81255225ebd1d4e2158144323f3dc"


_NAMES = sorted({*LOGIN, *(n for f in LOGIN.values() if isinstance(f, RecordField) for n in f.fields), "tool"})
_scalars = st.none() | st.booleans() | st.integers() | st.text(max_size=6) | st.sampled_from(["oauth", "token", "A"])
_trees = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=200)
@given(tree=st.dictionaries(st.sampled_from(sorted(LOGIN)), _trees, max_size=5))
def test_whatever_stands_there_the_schema_accepts_what_the_loader_accepts(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, object]
) -> None:
    from interlock.manifest.loading import load

    document = {
        "schemaVersion": "agent-routing/v1",
        "integrationId": "a.b",
        "transports": {"http": {"endpoint": "https://x", **tree}},
    }
    home = tmp_path_factory.mktemp("home")
    (home / "interlock.yaml").write_text(json.dumps(document), encoding="utf-8")
    loaded = load(manifests=(), home=home, project_root=None, environ={}, managed_dir=home / "none")
    assert VALIDATOR.is_valid(document) or loaded.errors


def test_a_person_is_shown_how_it_logs_in_before_they_trust_it(desk: Desk) -> None:
    from interlock.cli.trust import description

    desk.write("project", OAUTH + "    scopes: [a]\n    session: {replay: [{tool: join}]}\n")
    (trust,) = desk.load().trusts
    lines = list(description(trust, None))
    assert "    logs in    oauth, browser" in lines
    assert "    logs in    scopes: a" in lines
    assert "    session    repeats join(all arguments)" in lines
