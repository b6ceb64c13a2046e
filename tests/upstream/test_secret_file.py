"""Values from files (`fromFile`): what is read and what is refused, and that the value is masked wherever it comes back."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

import pytest

from interlock.manifest.config import EnvValue, HeaderValue, HttpTransport, StdioTransport
from interlock.model.fault import Fault
from interlock.upstream import declared, secret_file
from interlock.upstream.environment import child_environment
from interlock.upstream.known_secrets import masker


def made() -> str:
    return f"pat-{secrets.token_urlsafe(18)}"


def file_with(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("frame", ["{}", "{}\n", "{}\r\n", "\ufeff{}\n"])
def test_only_the_line_break_at_the_end_is_taken_off(tmp_path: Path, frame: str) -> None:
    secret = f" {made()}\nsecond line "
    path = file_with(tmp_path / "key", frame.format(secret).encode())
    assert child_environment((EnvValue("TOKEN", file=path),), {})["TOKEN"] == secret


def test_it_is_read_again_at_each_start(tmp_path: Path) -> None:
    path = tmp_path / "key"
    for secret in (made(), made()):
        file_with(path, secret.encode())
        assert child_environment((EnvValue("TOKEN", file=path),), {"TOKEN": "of the environment"})["TOKEN"] == secret
        assert declared.headers("s", (HeaderValue("X-Key", prefix="Bearer ", file=path),), {}) == [
            ("X-Key", f"Bearer {secret}")
        ]


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0, "it cannot be read (No such file or directory)"),
        (b"", 0o600, "it is empty"),
        (b"\n", 0o600, "it is empty"),
        (b"\xff\xfe", 0o600, "it is not text"),
        pytest.param(b"x", 0o640, "chmod 600", marks=pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")),
        pytest.param(b"x", 0o602, "chmod 600", marks=pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")),
    ],
)
def test_what_cannot_be_used_is_an_error_that_names_server_and_file(
    tmp_path: Path, content: bytes | None, mode: int, words: str
) -> None:
    path = tmp_path / "key"
    if content is not None:
        file_with(path, content, mode)
    with pytest.raises(Fault) as child:
        child_environment((EnvValue("TOKEN", file=path),), {}, server="issues")
    with pytest.raises(Fault) as remote:
        declared.headers("issues", (HeaderValue("X-Key", file=path),), {})
    for error in (child.value, remote.value):
        assert error.slug == "env-missing"
        assert all(part in str(error) for part in ("issues", str(path), words))


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX owners")
def test_a_file_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = file_with(tmp_path / "key", b"value")
    own = os.stat(path).st_uid
    monkeypatch.setattr(os, "geteuid", lambda: own + 1)
    with pytest.raises(secret_file.Unreadable, match="another user"):
        secret_file.value(path)


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(secret_file.Unreadable, match="no plain file"):
        secret_file.value(tmp_path)


@pytest.mark.parametrize("kind", ["child", "remote"])
def test_the_value_is_masked_also_the_one_before(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "key"
    transport: StdioTransport | HttpTransport = StdioTransport(("x",), Path("/"), (EnvValue("K", file=path),))
    if kind == "remote":
        transport = HttpTransport("http", endpoint="https://h/", headers=(HeaderValue("X-Key", file=path),))
    mask = masker(transport, {})
    old, new = made(), made()
    assert mask(f"bad key {old}") == f"bad key {old}"
    file_with(path, f"{old}\n".encode())
    assert mask(f"bad key {old}") == "bad key [redacted]"
    file_with(path, f"{new}\n".encode())
    assert mask(f"neither {old} nor {new}") == "neither [redacted] nor [redacted]"
    path.unlink()
    assert mask(f"still {new}") == "still [redacted]"
