"""Literal secrets are refused wherever they stand and never echoed; ordinary configuration is not taken for one.

The secrets here are made at run time from parts, so that no scanner takes this file for a leak.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from interlock.manifest import secrets

if TYPE_CHECKING:
    from conftest import Desk

HEAD = "schemaVersion: agent-routing/v1\nintegrationId: acme.search\n"
LETTERS = "aB3dE5fG7hJ9kL1mN2pQ4rS6tU8vW0xY"

FORMATS = {
    "github": "ghp" + "_" + LETTERS[:30],
    "github fine": "github" + "_pat_" + LETTERS,
    "sk": "sk" + "-ant-" + LETTERS,
    "slack": "xoxb" + "-123456789012-" + LETTERS[:12],
    "aws": "AKIA" + "ABCDEFGH12345678",
    "google": "AIza" + LETTERS + "abcd",
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9." + "eyJ" + "zdWIiOiIxMjM0In0.sig",
    "pem": "-----BEGIN " + "RSA PRIVATE KEY-----",
    "stripe": "sk" + "_live_" + LETTERS[:16],
    "npm": "npm" + "_" + LETTERS + "abcd",
    "gitlab": "glpat" + "-" + LETTERS[:20],
    "bearer": "Bearer " + LETTERS[:20],
    "database": "postgres://user:" + "hunter2hunter@db.example.com/app",
}


@pytest.mark.parametrize("text", FORMATS.values(), ids=FORMATS)
def test_known_formats_are_refused_everywhere_and_never_shown(desk: Desk, text: str) -> None:
    places = [
        f"transports: {{stdio: {{command: [node], env: {{SETTING: '{text}'}}}}}}\n",
        f"transports: {{stdio: {{command: [node], env: {{SETTING: {{literal: '{text}', notSecret: true}}}}}}}}\n",
        f"transports: {{stdio: {{command: [node, '{text}']}}}}\n",
        f"transports: {{stdio: {{command: [node, '--value={text}']}}}}\n",
        f"transports: {{http: {{endpointEnv: U, headers: {{X-Thing: '{text}'}}}}}}\n",
        f"transports: {{http: {{endpointEnv: U}}}}\nowner: '{text}'\n",
        f"transports: {{http: {{endpointEnv: U}}}}\npolicy: {{defaultApproval: '{text}'}}\n",
        f"transports: {{http: {{endpointEnv: U}}}}\ncapability: {{purpose: 'use {text}'}}\n",
    ]
    for place in places:
        loaded = desk.load_text(HEAD + place)
        assert not loaded.gateway.servers, place
        assert "literal-secret" in {problem.code for problem in loaded.errors}, place
        assert not any(text in str(problem) for problem in loaded.problems), place


@pytest.mark.parametrize(
    "text",
    [
        *(f"{value}: x\n" for value in (FORMATS["github"], FORMATS["sk"], LETTERS)),
        f"enabled: {FORMATS['github']}\n",
        f"owner: [{FORMATS['github']}]\n",
        f"policy: {{{FORMATS['github']}: 1}}\n",
        f"policy: {{defaultApproval: {LETTERS}}}\n",
        f"owner: '{FORMATS['github']}\n",
        f"? {{{FORMATS['github']}: a}}\n: b\n",
        f"{FORMATS['github']}: a\n{FORMATS['github']}: b\n",
    ],
)
def test_no_message_repeats_a_secret(desk: Desk, text: str) -> None:
    loaded = desk.load_text(HEAD + "transports: {http: {endpointEnv: U}}\n" + text)
    assert loaded.errors
    for problem in loaded.problems:
        assert FORMATS["github"] not in str(problem)
        assert LETTERS not in str(problem)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_TOKEN", "whatever"),
        ("DB_PASSWORD", "1234"),
        ("apiKey", "abc"),
        ("X-Api-Key", "abc"),
        ("Authorization", "Basic"),
        ("CLIENT_SECRET", "s"),
        ("COOKIE", "a=b"),
        ("SETTING", LETTERS[:24]),
        ("SETTING", "0123456789abcdef0123456789abcdef"[::-1]),
    ],
)
def test_names_and_randomness_give_a_secret_away(name: str, value: str) -> None:
    assert secrets.named_literal(name, value) is not None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LOG_LEVEL", "debug"),
        ("TOKEN_FILE", "/run/secrets/token"),
        ("TOKEN_LIMIT", "4096"),
        ("MAX_TOKENS", "4096"),
        ("SECRET_NAME", "db"),
        ("API_TOKEN", ""),
        ("USE_TOKEN", "false"),
        ("KEYBOARD", "qwerty"),
        ("PRIMARY_KEY", "id"),
        ("SORT_KEY", "name"),
        ("PROJECT_ID", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"),
        ("URL", "https://api.example.com/v1/things"),
        ("DIGEST", "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        ("MODEL", "claude-sonnet-4-5-20250929"),
        ("PACKAGE", "ModelContextProtocolServer2"),
        ("DIRS", "/home/me/Projects/Thing2:/opt/Tools"),
        ("FEATURES", "Feature-One,Feature-Two"),
        ("AUTHOR", "someone"),
    ],
)
def test_ordinary_values_pass(name: str, value: str) -> None:
    assert secrets.named_literal(name, value) is None


@pytest.mark.parametrize(
    ("before", "word", "refused"),
    [
        (None, "--api-key=abc123", True),
        ("--api-key", "abc123", True),
        ("--token", "abc123", True),
        ("-p", "8080", False),
        ("--api-key", "--verbose", False),
        ("--api-key", "$API_KEY", False),
        ("--api-key-file", "key.pem", False),
        ("--max-tokens", "100", False),
        (None, "--token=", False),
        ("--author", "me", False),
        ("token", "abc123", False),
        (None, "git+https://example.com/x@9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", False),
    ],
)
def test_arguments(before: str | None, word: str, refused: bool) -> None:
    assert (secrets.argument(before, word) is not None) is refused


@pytest.mark.parametrize(
    ("url", "refused"),
    [
        ("https://mcp.example.com/mcp", False),
        ("https://mcp.example.com/mcp?team=platform&version=2", False),
        ("https://mcp.example.com/v1/projects/3f2504e0-4f89-41d3-9a0c-0305e82c3301/mcp", False),
        ("https://mcp.example.com/mcp?api_key=abc", True),
        ("https://mcp.example.com/mcp?token=abc", True),
        ("https://mcp.example.com/mcp?key=abc", True),
        (f"https://mcp.example.com/s/{LETTERS}/mcp", True),
        (f"https://mcp.example.com/mcp?x={LETTERS}", True),
        ("https://user:pw123456@mcp.example.com/mcp", True),
        ("https://[broken", False),
    ],
)
def test_urls(url: str, refused: bool) -> None:
    assert (secrets.url(url) is not None) is refused


VALUE = "S02rJGFdLc3Hq"


@pytest.mark.parametrize(
    ("before", "word"),
    [
        (None, f"-y server --token {VALUE}"),
        ("-c", f"API_KEY={VALUE} npx server"),
        ("-lc", f"export TOKEN={VALUE}; npx server"),
        ("-c", f"npx server --token '{VALUE}'"),
        ("-c", f'curl -H "X-Api-Key: {VALUE}" example.com'),
        ("-e", f"API_TOKEN={VALUE}"),
        (None, f"--env=API_TOKEN={VALUE}"),
        ("--header", f"Authorization:{VALUE}"),
        ("-H", f"Cookie: s={VALUE}"),
        (None, f"--header=X-Api-Key: {VALUE}"),
        (None, f"https://example.com/mcp?key={VALUE}"),
        (None, f"--endpoint=https://example.com/mcp?api_key={VALUE}"),
        (None, f"--dsn=postgresql://me:{VALUE}@db/x"),
        (None, f"Server=db;User=me;Password={VALUE}"),
        (None, f'{{"token": "{VALUE}"}}'),
        (None, f"--token:{VALUE}"),
        ("--auth", f"me:{VALUE}"),
        (None, f"--user=me:{VALUE}"),
    ],
)
def test_secrets_inside_of_a_longer_argument(before: str | None, word: str) -> None:
    reason = secrets.argument(before, word)
    assert reason is not None
    assert VALUE not in reason


@pytest.mark.parametrize(
    ("before", "word"),
    [
        ("-e", "API_KEY"),
        (None, "--env=API_KEY"),
        ("-e", "PASSWORD_FILE=/run/x"),
        ("--header", "Accept: application/json"),
        ("--header", "Authorization: Bearer ${TOKEN}"),
        ("-c", "npx server --token $TOKEN"),
        ("-c", "API_KEY=$(pass show x) npx server"),
        ("-c", 'curl -H "Authorization: Bearer $TOKEN" x'),
        (None, "https://example.com/a/archive/" + "0123456789abcdef" * 2 + "01234567"),
        ("-u", "1000:1000"),
        ("--user", "node:node"),
        ("-v", "/home/me:/data"),
        ("-p", "8080:80"),
        (None, "type=bind,src=/a,dst=/b"),
        (None, '{"maxTokens": "100"}'),
        (None, "postgresql://localhost/db"),
        (None, "Use the token: it is needed"),
    ],
)
def test_ordinary_longer_arguments_pass(before: str | None, word: str) -> None:
    assert secrets.argument(before, word) is None
