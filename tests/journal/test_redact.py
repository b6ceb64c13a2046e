"""No secret of a known shape survives, what is no secret does, and hostile text costs no more than any other."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from interlock.journal.redact import LIMIT, MASK, redact, redact_name, suspicious

S = "S3cr3t-v4lue"
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

# Built in halves, so that this file does not itself look like one that leaks.
TOKENS = [
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N",
    "eyJ" + "hbGciOiJkaXIiLCJlbmMiOiJB.." + "aXY.Y2lwaGVy.dGFn",
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ASIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "gho_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "github_pat_" + "11ABCDEFG0_abcdefghijklmnopqrstuv",
    "glpat-" + "abcdefghij0123456789",
    "sk-" + "abcdefghijklmnopqrstuvwxyz",
    "sk-proj-" + "abc_def-ghijklmnopqrstuvwxyz",
    "sk-ant-api03-" + "abcdefghijklmnop_qrst-uvwxyz",
    "xoxb-" + "123456789012-abcdefghijkl",
    "xapp-" + "1-A123-456-abcdef",
    "sk_live_" + "abcdefghijklmnop",
    "whsec_" + "abcdefghijklmnopqrst",
    "AIza" + "SyA1234567890abcdefghijklmnopqrstuv",
    "ya29." + "a0AfH6SMBabcdef",
    "GOCSPX-" + "abcdefghijklmnop",
    "npm_" + "abcdefghijklmnopqrstuvwxyz0123456789",
    "pypi-" + "AgEIcHlwaS5vcmcCJGFiY2Rl",
    "hf_" + "abcdefghijklmnopqrst",
    "SG." + "abcdefghijklmnop.qrstuvwxyz0123456789",
    "dop_v1_" + "0123456789abcdef0123456789abcdef",
    "dapi" + "0123456789abcdef0123456789abcdef",
    "hvs." + "CAESIabcdefghijklmnop",
    "shpat_" + "0123456789abcdef0123456789abcdef",
    "lin_api_" + "abcdefghijklmnopqrst",
    "AGE-SECRET-KEY-1" + "QQQQQQQQQQQQQQQQQQQQ",
    "hooks.slack.com/services/" + "T000/B000/XXXXXXXX",
]

MASKED = [
    # text, what becomes of it
    (f"token={S}", "token=[redacted]"),
    (f"token = {S}, next", "token = [redacted], next"),
    (f"GITHUB_TOKEN={S} OTHER=1", "GITHUB_TOKEN=[redacted] OTHER=1"),
    (f"OPENAI_KEY={S}", "OPENAI_KEY=[redacted]"),
    (f"DB_PASS={S}", "DB_PASS=[redacted]"),
    (f"_auth={S}", "_auth=[redacted]"),
    (f"//registry/:_authToken={S}", "//registry/:_authToken=[redacted]"),
    (f"apiKey: {S}", "apiKey: [redacted]"),
    (f"password: '{S}'", "password: '[redacted]'"),
    (f"password=b'{S}'", "password=b'[redacted]'"),
    (f"password=a,{S};b", "password=[redacted]"),
    (f"user[password]={S}&x=1", "user[password]=[redacted]&x=1"),
    (f"client_secret => {S}", "client_secret => [redacted]"),
    (f"secret := {S}", "secret := [redacted]"),
    (f'{{"api_key": "{S}", "x": 1}}', '{"api_key": "[redacted]", "x": 1}'),
    (f'{{"token":"a\\"{S}"}}', '{"token":"[redacted]"}'),
    (f'{{\\"api_key\\": \\"{S}\\", \\"y\\":2}}', '{\\"api_key\\": \\"[redacted]\\", \\"y\\":2}'),
    (f"{{'session_id': '{S}'}}", "{'session_id': '[redacted]'}"),
    (f'{{"token":{{"value":"{S}"}}}} end', '{"token":[redacted]} end'),
    (f"token=[x]{S} end", "token=[redacted] end"),
    (f'secrets: ["{S}", "b"] end', "secrets: [redacted] end"),
    (f"<password>{S}</password>", "<password>[redacted]</password>"),
    (f"token%3D{S}&x", "token%3D[redacted]&x"),
    (f"%22token%22%3A%22{S}", "%22token%22%3A%22[redacted]"),
    (f"run --token {S} --verbose", "run --token [redacted] --verbose"),
    (f"run --api-key={S}", "run --api-key=[redacted]"),
    (f'["run", "--token", "{S}", "x"]', '["run", "--token", "[redacted]", "x"]'),
    (f"[(b'x-api-key', b'{S}'), (b'a', b'b')]", "[(b'x-api-key', b'[redacted]'), (b'a', b'b')]"),
    (f"Authorization: Bearer {S} end", "Authorization: [redacted] end"),
    (f"authorization: Basic {S}\nnext", "authorization: [redacted]\nnext"),
    (f'Authorization: Digest username="x", response="{S}"\nnext', "Authorization: [redacted]\nnext"),
    (f'-H "Authorization: Bearer {S}" https://host', '-H "Authorization: [redacted]" https://host'),
    (f'{{"authorization": "Bearer {S}"}}', '{"authorization": "[redacted]"}'),
    (f"Proxy-Authorization: {S}", "Proxy-Authorization: [redacted]"),
    (f"sent Bearer {S}", "sent Bearer [redacted]"),
    ("sent bearer supersecret", "sent bearer [redacted]"),
    ("Basic dXNlcjpwYXNz=", "Basic [redacted]"),
    (f"Set-Cookie: sid={S}; Path=/\nnext", "Set-Cookie: [redacted]\nnext"),
    (f"cookie: a={S}; b=c", "cookie: [redacted]"),
    (f"https://user:{S}@host/path", "https://[redacted]@host/path"),
    (f"https://{S}@host/path", "https://[redacted]@host/path"),
    (f"https://user:a@{S}@host/path", "https://[redacted]@host/path"),
    (f"postgres://user:a/{S}@host/db", "postgres://[redacted]@host/db"),
    (f"https://h/cb?code={S}&x=1", "https://h/cb?code=[redacted]&x=1"),
    (f"https://h/cb#access_token={S}", "https://h/cb#access_token=[redacted]"),
    (f"https://h/o?X-Amz-Signature={S}&X-Amz-Date=1", "https://h/o?X-Amz-Signature=[redacted]&X-Amz-Date=1"),
    (f"-----BEGIN RSA PRIVATE KEY-----\n{S}\n-----END RSA PRIVATE KEY-----\nend", "[redacted]\nend"),
    (f"a -----BEGIN OPENSSH PRIVATE KEY-----\n{S}", "a [redacted]"),
    (f"{S}\n-----END PRIVATE KEY-----\nend", "[redacted]\nend"),
    (f"-----BEGIN PGP PRIVATE KEY BLOCK-----\\n{S}\\n-----END PGP PRIVATE KEY BLOCK-----", "[redacted]"),
    ("\\n" + TOKENS[4], "\\n[redacted]"),
    ("%20" + TOKENS[4], "%20[redacted]"),
]

KEPT = [
    "",
    "upstream timed out after 30 s: it left and no answer came",
    "token: expired",
    "the token is expired.",
    "authorization: needs approval from a person",
    "auth: denied",
    "password: wrong",
    "max_tokens: 512, total_tokens=99",
    "progressToken: 5",
    "token_count=7",
    "tokenizer: bpe",
    "primary_key=12 cache-key: abc",
    "secret_name=prod/db",
    "code: -32601, state=open, key=value",
    "Bearer authentication required",
    'WWW-Authenticate: Bearer realm="x", error="invalid_token", resource_metadata="https://h/.well-known"',
    "basic usage of the tool",
    "ssh://git@github.com/a/b",
    "http://localhost:4873/@scope/name",
    "mail me@example.com",
    "token: ${GITHUB_TOKEN}",
    'deny rule "write_*" at /home/me/interlock.yaml:12',
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "ask-permission and task-runner-with-long-name",
    "C:\\Users\\me\\interlock.yaml:3",
    '"required": ["password", "username"]',
]


@pytest.mark.parametrize(("text", "expected"), MASKED)
def test_secrets_are_masked(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert suspicious(text)


@pytest.mark.parametrize("text", KEPT)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == text


@pytest.mark.parametrize("token", TOKENS)
@pytest.mark.parametrize(
    "around", ["{}", "got {}, sorry", '"{}"', "x={}", "({})", "/{}/", "a\n{}\nb", "key_{}", "\\n{}"]
)
def test_tokens_with_a_known_beginning_are_masked(token: str, around: str) -> None:
    redacted = redact(around.format(token))
    assert token[-8:] not in redacted
    assert MASK in redacted


@pytest.mark.parametrize("token", TOKENS)
def test_also_in_names(token: str) -> None:
    assert token[-8:] not in redact_name(f"git/{token}", 1000)


@pytest.mark.parametrize("name", ["secrets:list", "vault/read_secret", "auth.token:refresh", "a=b", "x" * 500])
def test_names_of_tools_are_kept(name: str) -> None:
    assert redact_name(name, 1000) == name


secret_names = st.sampled_from(
    [
        *["token", "access_token", "api-key", "apiKey", "API_KEY", "password", "passwd", "client_secret"],
        *["refreshToken", "private_key", "x-api-key", "AWS_SECRET_ACCESS_KEY", "session_id", "credentials"],
        *["db.password", "ACCOUNT-KEY"],
    ]
)
secrets = st.text(LETTERS + "-_./+$!%*^~", min_size=12, max_size=40).map(lambda text: f"q{text}Z7")
before = st.text(st.characters(exclude_characters="-\\", exclude_categories=["Cs", "L", "N", "Pc", "M"]), max_size=10)
notations = st.sampled_from(
    [
        "{n}={s}",
        "{n}: {s}",
        "{n} : {s}",
        "'{n}': '{s}'",
        '"{n}":"{s}"',
        '\\"{n}\\":\\"{s}\\"',
        '\\\\\\"{n}\\\\\\": \\\\\\"{s}\\\\\\"',
        "--{n} {s}",
        "--{n}={s}",
        '["--{n}", "{s}"]',
        "?{n}={s}&a=b",
        "<{n}>{s}</{n}>",
        "{n} => '{s}'",
        "{n}=`{s}`",
        "(b'{n}', b'{s}')",
    ]
)


@given(before, notations, secret_names, secrets, st.text(max_size=10))
def test_a_named_secret_survives_in_no_notation(lead: str, notation: str, name: str, secret: str, tail: str) -> None:
    text = f"{lead} {notation.format(n=name, s=secret)} {tail}"
    redacted = redact(text)
    assert secret not in redacted
    assert secret[2:14] not in redacted.replace(lead, "").replace(tail, "")


fragments = st.sampled_from(
    [
        *["token", "password", "secret", "authorization", "cookie", "bearer", "basic", "key", "code"],
        *[
            "=",
            ":",
            ":=",
            "=>",
            "?",
            "&",
            "#",
            ";",
            ",",
            ".",
            "-",
            "--",
            "/",
            "//",
            "://",
            "@",
            "\\",
            '\\"',
            '"',
            "'",
            "`",
        ],
        *["(", ")", "[", "]", "{", "}", "<", ">", "%", "%3D", "%22", "\n", "\t", " "],
        *TOKENS[:3],
        MASK,
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "${A}",
        "expired",
        "x",
        S,
    ]
)
composed = st.lists(fragments | st.text(max_size=3), max_size=25).map("".join)


@given(composed | st.text())
@example("token=[redacted]x]")
@example("token=[a]bc")
@example("a://b@c@[redacted]")
@settings(max_examples=1000)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@given(composed, st.integers(10, 80))
def test_redacting_twice_is_redacting_once_also_where_it_cuts(text: str, limit: int) -> None:
    once = redact(text, limit)
    assert len(once) <= limit
    assert redact(once, limit) == once


@given(composed | st.text())
@settings(max_examples=500)
def test_a_text_that_is_not_suspicious_is_left_as_it_is(text: str) -> None:
    if not suspicious(text):
        assert redact(text) == text


def test_long_text_is_cut_at_a_word() -> None:
    text = "word " * LIMIT
    redacted = redact(text)
    assert len(redacted) <= LIMIT
    assert redacted.endswith("word [cut]")
    assert redact("x" * 200, 100) == "x" * 94 + " [cut]"


def test_half_a_secret_at_the_cut_goes_with_the_cut() -> None:
    text = "a " * 40 + TOKENS[4]
    assert redact(text, 95) == "a " * 39 + "a [cut]"


HOSTILE = [
    "eyJaaaaaaaaaa",
    "eyJaaaaaaaa.a.a.",
    'token="',
    "token='\"`",
    'token=\\\\\\"',
    "token=[",
    "token ",
    "--token ",
    "token%3D%22",
    "a://b:c",
    "://a@",
    "://",
    "@",
    "-",
    "a",
    " ",
    "\\",
    "bearer ",
    "-----BEGIN PRIVATE KEY-----",
    "-----END PRIVATE KEY-----",
    "-----BEGIN " + "A" * 48,
    "authorization: x ",
    "authorization: digest",
    'cookie:"',
    "SG.aaaaaaaa",
    "hooks.slack.com/services/",
    "a = = ",
]


def test_time_grows_no_faster_than_the_text(child_environ: dict[str, str]) -> None:
    """Anything worse than linear would take many minutes over such texts; the time limit only ends such a run."""
    code = (
        "import sys, json; from interlock.journal.redact import redact\n"
        "for unit in json.load(sys.stdin):\n"
        "    redact((unit * (300_000 // len(unit) + 1))[:300_000], 10**9)\n"
        "print('all')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=child_environ,
        input=json.dumps(HOSTILE),
        capture_output=True,
        text=True,
        timeout=55,
        check=True,
    )
    assert done.stdout == "all\n"
