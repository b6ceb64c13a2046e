"""Interlock's home and the key in it: taken from nobody else, and open to nobody else."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

from interlock.serve import own_home
from interlock.serve.seal_key import FILE_NAME, seal_key

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@posix
def test_a_home_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    own_home.take(tmp_path / "a" / "home")
    assert mode(tmp_path / "a" / "home") == 0o700


@posix
@pytest.mark.parametrize(
    ("before", "after"), [(0o700, 0o700), (0o755, 0o755), (0o777, 0o700), (0o775, 0o700), (0o720, 0o700)]
)
def test_write_access_of_others_is_taken(
    before: int, after: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(before)
    own_home.take(home)
    assert mode(home) == after
    assert bool(capsys.readouterr().err) == (before != after)


@posix
@pytest.mark.skipif(os.name == "posix" and os.geteuid() != 0, reason="needs root to make another user's folder")
def test_another_users_home_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, 65534, 65534)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PermissionError, match="belongs to another user"):
        own_home.take(home)


def test_the_key_stays_the_same(tmp_path: Path) -> None:
    assert len(seal_key(tmp_path)) == 32
    assert seal_key(tmp_path) == seal_key(tmp_path)


@posix
def test_a_key_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    first = seal_key(tmp_path)
    (tmp_path / FILE_NAME).chmod(0o644)
    second = seal_key(tmp_path)
    assert second != first
    assert mode(tmp_path / FILE_NAME) == 0o600
    assert seal_key(tmp_path) == second


@posix
def test_a_planted_link_is_no_key(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    planted.write_bytes(b"k" * 32)
    planted.chmod(0o600)
    home = tmp_path / "home"
    home.mkdir()
    (home / FILE_NAME).symlink_to(planted)
    assert seal_key(home) != b"k" * 32
    assert not (home / FILE_NAME).is_symlink()
    assert planted.read_bytes() == b"k" * 32
