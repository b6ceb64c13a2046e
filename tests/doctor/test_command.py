"""`interlock doctor bridge` as a command: what it examines, its exit codes, its JSON, and that nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from interlock.cli.main import main
from interlock.doctor import processes
from interlock.lab.auth import RemoteLab


@pytest.fixture
def quiet_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # Bridges of others that happen to run on this machine are no part of these tests.
    monkeypatch.setattr(processes, "running", list)
    return folder


def examine(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, list[dict[str, object]]]:
    code = main(["doctor", "bridge", "--json", "--timeout", "3", *args])
    return code, json.loads(capsys.readouterr().out)


def test_nothing_is_known_and_nothing_is_written(
    interlock_home: Path,
    quiet_folder: Path,
    capsys: pytest.CaptureFixture[str],
    snapshot: Callable[[Path], Mapping[str, object]],
) -> None:
    before = snapshot(interlock_home.parent)
    assert main(["doctor", "bridge"]) == 0
    out = capsys.readouterr().out
    assert "Nothing is wrong. Nothing was changed." in out
    assert "interlock doctor bridge URL" in out
    assert snapshot(interlock_home.parent) == before


def test_servers_of_the_manifest_and_one_by_name(
    interlock_home: Path, quiet_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = "schemaVersion: agent-routing/v1\nintegrationId: a.{0}\ntransports: {{http: {{endpoint: 'http://127.0.0.1:9/{0}'}}}}\n"
    (interlock_home / "interlock.yaml").write_text("---\n".join(map(entry.format, ("one", "two"))))
    code, sections = examine(capsys)
    assert (code, [section["server"] for section in sections]) == (1, [None, "one", "two"])
    code, sections = examine(capsys, "two")
    assert (code, [section["url"] for section in sections]) == (1, [None, "http://127.0.0.1:9/two"])
    assert not any("interlock login" in each["todo"] for each in sections[1]["findings"])
    (address, *_rest) = [each for each in sections[1]["findings"] if each["check"] == "address"]
    assert (address["severity"], address["stage"], address["seen"]) == (
        "problem",
        "discover",
        "nothing listens at 127.0.0.1:9",
    )
    assert address["why"]
    assert address["todo"]


@pytest.mark.parametrize(
    ("args", "words"), [(("nope",), "there is no server `nope`"), (("x", "--timeout", "0"), "--timeout")]
)
def test_usage(
    interlock_home: Path, quiet_folder: Path, capsys: pytest.CaptureFixture[str], args: tuple[str, ...], words: str
) -> None:
    assert main(["doctor", "bridge", *args]) == 2
    assert words in capsys.readouterr().err


async def test_for_people(interlock_home: Path, quiet_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    async with RemoteLab("--era", "modern") as lab:
        assert await asyncio.to_thread(main, ["doctor", "bridge", lab.url, "--quiet"]) == 0
        out = capsys.readouterr().out
        assert "warning grant: this machine has no grant for it" in out
        assert f"to do: `interlock login {lab.url}`" in out
        assert "1 warning. Nothing was changed." in out
        assert " ok " not in out
