"""The vendor-neutral example loads as it stands, and what is not enforced is said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from interlock.manifest.config import OAuth
from interlock.manifest.json_schema import schema

if TYPE_CHECKING:
    from conftest import Desk

# The published example, kept word for word because it is the promise that is tested.
EXAMPLE = """\
# Example integration in the vendor-neutral form; Interlock must accept it as it stands.
schemaVersion: agent-routing/v1
integrationId: acme.issue-search
owner: platform-team
source:
  repository: https://example.com/acme/issue-mcp
  version: 2.3.1
  digest: sha256:REPLACE_WITH_PINNED_DIGEST

capability:
  purpose: Search issues in the current tenant
  dataClass: internal
  tools:
    allow: [issues.search, issues.get]
    deny: [issues.delete, admin.*]

transports:
  preferred: streamable-http
  http:
    endpointEnv: ACME_MCP_URL
    auth: oauth
    scopes: [issues.read]
  stdio:
    commandByPlatform:
      windows: [node.exe, tools/issue-mcp/server.js]
      linux: [node, tools/issue-mcp/server.js]
    envNames: [ACME_MCP_TOKEN]

policy:
  defaultApproval: prompt
  writesApproval: always
  startupTimeoutSeconds: 10
  toolTimeoutSeconds: 45
  maxResultBytes: 200000
  requireOutputSchema: true

isolation:
  tenantFrom: verified-token
  cachePartition: [tenant, subject, scopes]
  allowNetwork: [api.example.com]

observability:
  log: [correlationId, subjectId, tenantId, tool, latencyMs, status]
  redact: [authorization, cookies, token, secret, pii]
"""


@pytest.fixture
def example(desk: Desk) -> str:
    return EXAMPLE


def test_it_loads(desk: Desk, example: str) -> None:
    loaded = desk.load_text(example)
    assert loaded.errors == ()
    config = loaded.gateway.servers["issue-search"]
    assert config.integration_id == "acme.issue-search"
    assert (config.transport.kind, config.transport.endpoint_env) == ("http", "ACME_MCP_URL")
    assert config.transport.oauth == OAuth(scopes=("issues.read",))
    assert [rule.glob for rule in config.allow] == ["issues.search", "issues.get"]
    assert [(rule.glob, rule.origin.line) for rule in config.deny] == [("issues.delete", 15), ("admin.*", 15)]
    assert (config.policy.default_approval, config.policy.writes_approval) == ("prompt", "always")
    assert (config.policy.startup_timeout_seconds, config.policy.tool_timeout_seconds) == (10.0, 45.0)


def test_it_does_not_start_because_tenants_could_mix(desk: Desk, example: str) -> None:
    config = desk.load_text(example).gateway.servers["issue-search"]
    assert "isolation.tenantFrom" in config.blocked
    without = desk.load_text(example.replace("  tenantFrom: verified-token\n", ""))
    assert without.gateway.servers["issue-search"].blocked is None


def test_what_is_accepted_and_not_enforced_is_named(desk: Desk, example: str) -> None:
    assert desk.load_text(example).gateway.servers["issue-search"].unenforced == (
        "source.digest",
        "capability.dataClass",
        "policy.maxResultBytes",
        "policy.requireOutputSchema",
        "isolation.cachePartition",
        "isolation.allowNetwork",
        "observability.log",
        "observability.redact",
    )


def test_the_json_schema_accepts_it(example: str) -> None:
    errors = Draft202012Validator(schema()).iter_errors(YAML(typ="safe", pure=True).load(example))
    assert [error.message for error in errors] == []
