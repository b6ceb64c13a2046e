"""Credentials: how they are kept, and what a running gateway notices of changes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from interlock.model.principal import Principal
from interlock.serve import credentials as module
from interlock.serve.credentials import FILE_NAME, CredentialError, Credentials

pytestmark = pytest.mark.usefixtures("look_always")
on_posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")


@pytest.fixture
def look_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK_SECONDS", -1.0)


def test_a_token_is_random_and_long_and_stays(tmp_path: Path) -> None:
    made = Credentials(tmp_path)
    token = made.token("claude-code")
    assert len(token) >= 43  # 32 bytes
    assert made.token("claude-code") == token
    assert Credentials(tmp_path).token("claude-code") == token
    assert made.token("codex") != token
    assert made.names() == ["claude-code", "codex"]


@on_posix
def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        Credentials(tmp_path / "home").token("a")
    finally:
        os.umask(mask)
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    file = tmp_path / "home" / FILE_NAME
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o644)  # restored from a backup, say
    Credentials(tmp_path / "home")
    assert file.stat().st_mode & 0o777 == 0o600


def test_whose_token_it_is(tmp_path: Path) -> None:
    made = Credentials(tmp_path)
    token = made.token("codex").encode()
    assert made.principal(token) == Principal("host:codex", "credential", "codex")
    for wrong in (b"", token[:-1], token + b"x", token.upper(), b"codex", b"\xff"):
        assert made.principal(wrong) is None


def test_a_running_gateway_notices_new_revoked_and_replaced_tokens(tmp_path: Path) -> None:
    gateway, person = Credentials(tmp_path), Credentials(tmp_path)
    first = person.token("codex").encode()
    principal = gateway.principal(first)
    assert principal is not None
    assert gateway.valid(principal)
    assert person.revoke("codex")
    assert gateway.principal(first) is None
    assert not gateway.valid(principal)
    assert not person.revoke("codex")
    second = person.token("codex").encode()
    assert gateway.principal(first) is None
    assert gateway.principal(second) == principal


def test_between_two_looks_the_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway, person = Credentials(tmp_path), Credentials(tmp_path)
    token = person.token("codex").encode()
    now = 1000.0
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.1)
    monkeypatch.setattr(module.time, "monotonic", lambda: now)
    assert gateway.principal(token) is not None  # an unknown token is always looked up
    looked: list[Path] = []
    stamp = module._stamp
    monkeypatch.setattr(module, "_stamp", lambda file: looked.append(file) or stamp(file))
    for _ in range(10):
        now += 0.009
        assert gateway.principal(token) is not None
    assert looked == []
    for _ in range(100):  # however busy the gateway is
        now += 0.009
        gateway.principal(token)
    assert 5 <= len(looked) <= 20


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "7",
        '{"tokens": []}',
        '{"tokens": {"a": 7}}',
        '{"tokens": {"a": ""}}',
        '{"tokens": null}',
        "{}",
        "\ud800",
    ],
)
def test_a_damaged_file_is_said_so_and_lets_nobody_in(
    tmp_path: Path, content: str, capsys: pytest.CaptureFixture[str]
) -> None:
    running = Credentials(tmp_path)
    token = running.token("codex").encode()
    (tmp_path / FILE_NAME).write_bytes(content.encode("utf-8", "surrogatepass"))
    with pytest.raises(CredentialError, match=FILE_NAME):
        Credentials(tmp_path)
    with pytest.raises(CredentialError):
        running.token("other")  # it would be lost in what is damaged
    assert running.principal(token) is None
    said = capsys.readouterr().err
    assert "no host can connect" in said
    assert token.decode() not in said
    assert running.principal(token) is None
    assert capsys.readouterr().err == ""  # once is enough


@pytest.mark.parametrize("name", ["", ".", "-a", "../x", "a/b", "a b", "a\n", "\u00e4", "x" * 65, "a\0"])
def test_names_that_cannot_be_one(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not a usable name"):
        Credentials(tmp_path).token(name)
    assert not (tmp_path / FILE_NAME).exists()


@on_posix
def test_a_home_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CredentialError, match="cannot be written"):
        Credentials(tmp_path / "file" / "home").token("codex")


def test_processes_that_make_tokens_at_once_lose_none(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from interlock.serve.credentials import Credentials\n"
        "made = Credentials(Path(sys.argv[1]))\n"
        "for n in range(10): print(made.token(f'{sys.argv[2]}{n}'))\n"
    )
    source = str(Path(module.__file__).parents[2])
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path), letter],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": source},
        )
        for letter in "abc"
    ]
    printed = [child.communicate(timeout=30)[0].split() for child in children]
    tokens = json.loads((tmp_path / FILE_NAME).read_text())["tokens"]
    assert {token for each in printed for token in each} == set(tokens.values())
    assert len(tokens) == 30
