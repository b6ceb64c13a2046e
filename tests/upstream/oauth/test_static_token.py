"""Personal access tokens: where they are read, what is refused, and that the store of grants is never touched."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path

import pytest
from tests.upstream.oauth.machine import fault_of

from interlock.manifest.config import TokenSource
from interlock.model.fault import Fault
from interlock.model.verdict import Verdict
from interlock.upstream.oauth.static_token import StaticToken


def made() -> str:
    return f"pat-{secrets.token_urlsafe(18)}"


def file_with(path: Path, content: bytes, mode: int = 0o600) -> Path:
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    one, other = made(), made()
    path = file_with(tmp_path / "token", other.encode())
    source = TokenSource(env="PAT", file=path)
    assert StaticToken("srv", source, {"PAT": one}).current() == f"Bearer {one}"
    for empty in ({}, {"PAT": ""}, {"PAT": "  \n"}):
        assert StaticToken("srv", source, empty).current() == f"Bearer {other}"


@pytest.mark.parametrize("frame", ["{}", "{}\n", "  {}\r\n", "\ufeff{}\n", "Bearer {}", "bearer  {}\n"])
def test_what_people_and_editors_put_around_a_token_does_no_harm(tmp_path: Path, frame: str) -> None:
    token = made()
    path = file_with(tmp_path / "token", frame.format(token).encode())
    assert StaticToken("srv", TokenSource(file=path), {}).current() == f"Bearer {token}"


async def test_a_file_that_changes_is_read_again_and_an_old_token_stays_masked(tmp_path: Path) -> None:
    old, new = made(), made()
    path = file_with(tmp_path / "token", old.encode())
    ours = StaticToken("srv", TokenSource(file=path), {})
    assert await ours.ready(1) == f"Bearer {old}"
    file_with(path, new.encode())
    assert await ours.refused(f"Bearer {old}", 401, {}, 1) == f"Bearer {new}"
    assert ours.mask(f"not {old} and not {new}") == "not [redacted] and not [redacted]"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "there is no token there"),
        (b"Bearer ", "there is no token there"),
        (b"two words", "spaces"),
        (b"one\ntwo", "spaces, line breaks"),
        ("nämlich".encode(), "other characters"),
        (b"\xff\xfe\x00", "it is not text"),
    ],
)
async def test_what_cannot_be_a_token_is_refused_and_not_shown(tmp_path: Path, content: bytes, words: str) -> None:
    path = file_with(tmp_path / "token", content)
    ours = StaticToken("srv", TokenSource(file=path), {})
    assert ours.current() is None
    fault = await fault_of(ours.ready(1))
    assert (fault.slug, fault.verdict) == ("token-rejected", Verdict.NEVER_REACHED)
    assert words in fault.message
    assert str(path) in fault.message
    assert "nämlich" not in fault.message
    assert "two words" not in fault.message


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
async def test_a_file_that_others_may_read_is_refused_with_the_cure(tmp_path: Path, mode: int) -> None:
    path = file_with(tmp_path / "token", made().encode(), mode)
    fault = await fault_of(StaticToken("srv", TokenSource(file=path), {}).ready(1))
    assert f"chmod 600 {path}" in fault.message


async def test_no_file_no_variable_and_a_pipe(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert "No such file" in (await fault_of(StaticToken("srv", TokenSource(file=missing), {}).ready(1))).message
    assert "variable PAT" in (await fault_of(StaticToken("srv", TokenSource(env="PAT"), {}).ready(1))).message
    assert "plain file" in (await fault_of(StaticToken("srv", TokenSource(file=tmp_path), {}).ready(1))).message
    if sys.platform != "win32":
        os.mkfifo(tmp_path / "pipe", 0o600)
        fault = await fault_of(StaticToken("srv", TokenSource(file=tmp_path / "pipe"), {}).ready(1))
        assert "plain file" in fault.message


@pytest.mark.parametrize(("status", "words"), [(401, "was rejected"), (403, "too narrow")])
async def test_a_refusal_names_the_source_and_the_only_move(status: int, words: str) -> None:
    token = made()
    ours = StaticToken("srv", TokenSource(env="PAT"), {"PAT": token})
    with pytest.raises(Fault) as raised:
        await ours.refused(f"Bearer {token}", status, {b"www-authenticate": b'Bearer error="x"'}, 1)
    fault = raised.value
    assert (fault.slug, fault.verdict, fault.http_status) == ("token-rejected", Verdict.NEVER_REACHED, status)
    assert "the environment variable PAT" in fault.message
    assert words in fault.message
    assert token not in fault.message
    assert token not in repr(fault)
    assert token not in repr(ours)
