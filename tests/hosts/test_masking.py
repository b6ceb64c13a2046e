"""hosts/masking.py: no secret of a person's file is ever shown, and what is no secret still is."""

from __future__ import annotations

import json

import pytest

from interlock.hosts.masking import MASK, difference, is_reference, masked, secret_texts

GITHUB = "gh" + "p_" + "A" * 36
STRIPE = "sk" + "_live_" + "B" * 24
WORD = "hunter" + "2hunter"
RANDOM = "Zk3vQ9tXb2LmR7pW5sYc1NfH8dJg4KaU"


@pytest.mark.parametrize(
    ("line", "secret"),
    [
        (f'"API_TOKEN": "{WORD}"', WORD),
        (f"API_TOKEN = '{WORD}' # mine", WORD),
        (f"api_token: {WORD}", WORD),
        (f'args = ["--key", "{GITHUB}"]', GITHUB),
        (f"# the old one was {STRIPE}", STRIPE),
        (f'"url": "https://user:{WORD}@x.example.com/mcp"', WORD),
        (f'"url": "https://x.example.com/mcp?token={WORD}"', WORD),
        (f'"Authorization": "Bearer {RANDOM}"', RANDOM),
        (f'"X": "{RANDOM}"', RANDOM),
        (f"X={RANDOM}", RANDOM),
    ],
)
def test_a_line_by_itself(line: str, secret: str) -> None:
    shown = masked(line)
    assert secret not in shown
    assert MASK in shown


@pytest.mark.parametrize(
    "line",
    [
        '"API_TOKEN": "${API_TOKEN}"',
        '"API_TOKEN": "$API_TOKEN"',
        '"API_TOKEN": "{env:API_TOKEN}"',
        '"Authorization": "Bearer ${API_TOKEN}"',
        '"Authorization": "Bearer {env:API_TOKEN}"',
        'args = ["--local-timezone", "Europe/Berlin"]',
        '"command": "/usr/local/bin/some-long-program-name"',
        '"url": "https://mcp.example.com/v1/mcp?tenant=acme"',
        '"version": "2026.11.30-rc1"',
    ],
)
def test_what_is_no_secret_is_shown(line: str) -> None:
    assert masked(line) == line


def test_what_only_the_structure_tells() -> None:
    value = {
        "servers": {
            "a": {"args": ["--token", WORD, "--mode", "fast"], "env": {"DB_PASSWORD": "correct horse", "MODE": "fast"}},
            "b": {"headers": {"Authorization": f"Bearer {WORD}x", "X-Team": "red"}},
        }
    }
    found = set(secret_texts(value))
    assert found == {WORD, "correct horse", f"{WORD}x"}
    assert "fast" in masked(json.dumps(value), found)


def test_names_of_variables_are_shown() -> None:
    after = b'[mcp_servers.a]\nbearer_token_env_var = "MY_TOKEN"\nenv_http_headers = { "X-Api-Key" = "MY_KEY" }\n'
    lines = difference("f", None, after, "toml")
    assert "MY_TOKEN" in "\n".join(lines)
    assert "MY_KEY" in "\n".join(lines)


def test_a_difference_holds_no_secret_and_says_what_changed() -> None:
    before = json.dumps({"a": {"env": {"PASSWORD": "correct horse\n" + WORD}}, "x": 1}, indent=1).encode()
    after = json.dumps({"a": {"env": {"PASSWORD": "correct horse\n" + WORD}}, "x": 2}, indent=1).encode()
    text = "\n".join(difference("f", before, after, "json"))
    assert WORD not in text
    assert "correct horse" not in text
    assert '- "x": 1' in text
    assert '+ "x": 2' in text


def test_a_file_that_cannot_be_parsed_is_masked_by_its_text() -> None:
    lines = difference("f", f'{{"API_KEY": "{WORD}",,}}'.encode(), b"{}", "json")
    assert WORD not in "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${A}", True),
        ("x ${A:-b}", True),
        ("$A", True),
        ("{env:A}", True),
        ("%A%", True),
        ("a$b c", False),
        ("{a}", False),
    ],
)
def test_references(text: str, expected: bool) -> None:
    assert is_reference(text) is expected
