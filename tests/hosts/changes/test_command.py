"""`interlock restore`, as a person and a program see it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from interlock.cli.main import main
from interlock.hosts.changes.applying import apply
from interlock.hosts.machine import here
from interlock.hosts.writing import Edit, FileEdits


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "a.json"
    made.write_bytes(b"{}")
    return made


def changed(home: Path, file: Path, name: str) -> str:
    edits = FileEdits(file=str(file), format="jsonc", comments=True, edits=(Edit(("m", name), 1),))
    return apply(home, here({}), [edits], command="generate").id


def run(home: Path, *words: str) -> int:
    return main(["restore", "--home", str(home), *words])


def test_what_a_person_reads(home: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    id = changed(home, file, "x")
    assert run(home, "--list") == 0
    assert capsys.readouterr().out.splitlines()[0].startswith(f"{id}  ")
    assert run(home, "--dry-run") == 0
    assert file.read_bytes() == b'{"m": {"x": 1}}'
    assert "Nothing was changed." in capsys.readouterr().out
    assert run(home) == 0
    assert file.read_bytes() == b"{}"
    said = capsys.readouterr().out
    assert f"Undone: the run {id} (interlock generate)." in said
    assert f"{file}: as it was, byte for byte" in said
    assert run(home) == 0
    assert "There is nothing to undo" in capsys.readouterr().out
    assert run(home, "nonsense") == 2
    assert "No run has the id nonsense" in capsys.readouterr().err
    assert run(home, "--list") == 0
    assert len(re.findall(r"\(undone\)", capsys.readouterr().out)) == 1


def test_what_a_program_reads(home: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(home, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"id": None, "dryRun": False, "files": []}
    first, second = changed(home, file, "x"), changed(home, file, "y")
    assert run(home, "--list", "--json") == 0
    assert [each["id"] for each in json.loads(capsys.readouterr().out)] == [second, first]
    assert run(home, first, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["id"], told["complete"], told["files"][0]["file"]) == (first, True, str(file))
    assert told["files"][0]["how"] == "undone"
    assert file.read_bytes() == b'{"m": {"y": 1}}'


def test_what_is_left_is_told_with_the_exit_code(home: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(home, file, "x")
    file.write_bytes(b'{"broken')
    assert run(home) == 8
    assert "left as it is (it was changed since, and cannot be changed safely" in capsys.readouterr().out
    assert run(home, "--force") == 0
    assert file.read_bytes() == b"{}"


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX systems")
def test_what_is_refused_is_told_on_standard_error(home: Path, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(home, file, "x")
    file.chmod(0o400)
    assert run(home) == 8
    assert "nothing was changed" in capsys.readouterr().err
