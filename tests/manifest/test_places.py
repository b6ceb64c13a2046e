"""Which files of a folder are manifests: every one that a person would take for one."""

from __future__ import annotations

from pathlib import Path

from interlock.manifest.places import files_of


def test_files_of_a_folder(tmp_path: Path) -> None:
    for name in ("b.yml", "a.yaml", "c.yaml", ".hidden.yaml", "notes.md", "d.yaml.bak", "yaml"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder.yaml").mkdir()
    assert [file.name for file in files_of(tmp_path)] == ["a.yaml", "b.yml", "c.yaml"]


def test_a_file_is_itself_whatever_its_name(tmp_path: Path) -> None:
    assert files_of(tmp_path / "servers.conf") == [tmp_path / "servers.conf"]
