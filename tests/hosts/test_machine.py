"""Paths of every platform, tried on this one."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.hosts.machine import Machine, Platform, here


def machine(platform: Platform = "linux", **more: object) -> Machine:
    home, folder = {
        "linux": ("/home/ada", "/home/ada/code"), "macos": ("/Users/ada", "/Users/ada/code"),
        "windows": ("C:\\Users\\ada", "D:\\code"),
    }[platform]  # fmt: skip
    values: dict[str, object] = {"home": home, "folder": folder, "environ": {}, **more}
    return Machine(platform=platform, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("platform", "environ", "config", "application"),
    [
        ("linux", {}, "/home/ada/.config/x", "/home/ada/.config/x"),
        ("linux", {"XDG_CONFIG_HOME": "/cfg"}, "/cfg/x", "/cfg/x"),
        ("linux", {"XDG_CONFIG_HOME": ""}, "/home/ada/.config/x", "/home/ada/.config/x"),
        ("macos", {}, "/Users/ada/.config/x", "/Users/ada/Library/Application Support/x"),
        ("macos", {"XDG_CONFIG_HOME": "/cfg"}, "/cfg/x", "/Users/ada/Library/Application Support/x"),
        ("windows", {}, "C:\\Users\\ada\\.config\\x", "C:\\Users\\ada\\AppData\\Roaming\\x"),
        ("windows", {"APPDATA": "E:\\roam"}, "C:\\Users\\ada\\.config\\x", "E:\\roam\\x"),
    ],
)
def test_the_folders_of_configurations(
    platform: Platform, environ: dict[str, str], config: str, application: str
) -> None:
    on = machine(platform, environ=environ)
    assert (on.config("x"), on.application("x")) == (config, application)


@pytest.mark.parametrize(
    ("platform", "path", "real"),
    [
        ("linux", "/etc/codex/config.toml", "etc/codex/config.toml"),
        ("windows", "C:\\ProgramData\\x\\y.json", "c/ProgramData/x/y.json"),
        ("windows", "D:/code/.mcp.json", "d/code/.mcp.json"),
        ("macos", "/Library/Application Support/x", "Library/Application Support/x"),
    ],
)
def test_where_a_path_is_reached_from_here(tmp_path: Path, platform: Platform, path: str, real: str) -> None:
    assert Path(machine(platform, root=str(tmp_path)).real(path)) == tmp_path / real
    assert machine(platform).real(path) == path


@pytest.mark.parametrize(
    ("platform", "path", "expanded"),
    [
        ("linux", "~", "/home/ada"),
        ("linux", "~/x/../y", "/home/ada/y"),
        ("linux", "x", "/home/ada/code/x"),
        ("linux", "/x", "/x"),
        ("linux", "~bob/x", "/home/ada/code/~bob/x"),
        ("windows", "~\\x", "C:\\Users\\ada\\x"),
        ("windows", "~/x", "C:\\Users\\ada\\x"),
        ("windows", "sub\\x", "D:\\code\\sub\\x"),
    ],
)
def test_what_a_person_writes(platform: Platform, path: str, expanded: str) -> None:
    assert machine(platform).expanded(path) == expanded


@pytest.mark.parametrize(
    ("platform", "folders"),
    [
        ("linux", ["/home/ada/code", "/home/ada", "/home", "/"]),
        ("windows", ["D:\\code", "D:\\"]),
    ],
)
def test_upward_ends_at_the_top(platform: Platform, folders: list[str]) -> None:
    assert list(machine(platform).upward()) == folders


@pytest.mark.parametrize("kind", ["folder", "file", "dangling"])
def test_a_project_goes_up_to_its_repository(tmp_path: Path, kind: str) -> None:
    on = machine(folder="/home/ada/code/a/b", root=str(tmp_path))
    assert (on.repository(), on.project_folders()) == (None, ["/home/ada/code/a/b"])
    marker = tmp_path / "home/ada/code/.git"
    marker.parent.mkdir(parents=True)
    if kind == "folder":
        marker.mkdir()
    elif kind == "file":
        marker.write_text("gitdir: elsewhere\n")
    else:
        marker.symlink_to("/nowhere")
    assert on.repository() == "/home/ada/code"
    assert on.project_folders() == ["/home/ada/code/a/b", "/home/ada/code/a", "/home/ada/code"]


def test_names_in_a_folder(tmp_path: Path) -> None:
    on = machine(root=str(tmp_path))
    assert on.names_in("/opt") == []
    for name in ("b", "a"):
        (tmp_path / "opt" / name).mkdir(parents=True)
    assert on.names_in("/opt") == ["a", "b"]


def test_here_is_this_machine(tmp_path: Path) -> None:
    on = here({"A": "b"}, str(tmp_path))
    assert (on.folder, on.environ, on.root) == (str(tmp_path), {"A": "b"}, None)
    assert on.home == str(Path.home())
