"""hosts/platforms.py: every platform's rules, tried on files of a made-up machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlock.hosts.machine import Machine, Platform, Surrounding
from interlock.hosts.platforms import (
    GATEWAYS,
    SHIMS,
    home_candidates,
    is_shim,
    launch_words,
    loopback,
    translated,
    unwrapped,
)


def machine(platform: Platform = "linux", surrounding: Surrounding = "native", **more: str) -> Machine:
    home = r"C:\Users\ada" if platform == "windows" else "/home/ada"
    root = more.pop("root", "/nowhere")
    return Machine(
        platform=platform, home=more.pop("home", home), folder=more.pop("folder", home), environ=more,
        surrounding=surrounding, root=root,
    )  # fmt: skip


WINDOWS = machine("windows")
LINUX = machine("linux")
MAC = machine("macos")
WSL = machine("linux", "wsl", WSL_DISTRO_NAME="Ubuntu")
NAMELESS = machine("linux", "wsl")
BOX = machine("linux", "container")
AROUND = machine("windows", "windows-of-wsl")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (("npx", "-y", "some-server"), ("cmd", "/c", "npx", "-y", "some-server")),
        (("pnpm", "dlx", "x"), ("cmd", "/c", "pnpm", "dlx", "x")),
        (("yarn",), ("cmd", "/c", "yarn")),
        (("NPX", "x"), ("cmd", "/c", "NPX", "x")),
        ((r"C:\Program Files\nodejs\npx.cmd", "x"), ("cmd", "/c", r"C:\Program Files\nodejs\npx.cmd", "x")),
        ((r"tools\Start.BAT",), ("cmd", "/c", r"tools\Start.BAT")),
        (("cmd", "/c", "npx", "x"), ("cmd", "/c", "npx", "x")),
        ((r"C:\Windows\System32\cmd.exe", "/c", "npx"), (r"C:\Windows\System32\cmd.exe", "/c", "npx")),
        (("uvx", "mcp-server-time"), ("uvx", "mcp-server-time")),
        (("node", "npx"), ("node", "npx")),
        (("npx.exe", "x"), ("npx.exe", "x")),
        (("bunx", "x"), ("bunx", "x")),
        ((), ()),
    ],
)
def test_batch_files_go_through_cmd_on_windows_only(command: tuple[str, ...], expected: tuple[str, ...]) -> None:
    assert launch_words(command, WINDOWS) == expected
    assert launch_words(expected, WINDOWS) == expected
    for other in (LINUX, MAC, WSL, BOX):
        assert launch_words(command, other) == command
    assert unwrapped(("cmd", "/c", "npx", "x")) == ("npx", "x")
    assert unwrapped(("cmd.exe", "/C", "npx", "x")) == ("npx", "x")
    assert unwrapped(("npx", "x")) == ("npx", "x")


def test_what_nobody_knows_of_a_name_is_not_taken_for_a_shim() -> None:
    assert not SHIMS["bunx"].known
    assert not is_shim("bunx")


@pytest.mark.parametrize(
    ("path", "source", "target", "expected"),
    [
        (r"C:\Users\ada\x y.json", WINDOWS, WSL, "/mnt/c/Users/ada/x y.json"),
        ("d:/code", WINDOWS, WSL, "/mnt/d/code"),
        ("C:\\", WINDOWS, WSL, "/mnt/c"),
        (r"\\wsl$\Ubuntu\home\ada\.codex", WINDOWS, WSL, "/home/ada/.codex"),
        (r"\\wsl.localhost\ubuntu\home\ada", AROUND, WSL, "/home/ada"),
        (r"\\WSL.LOCALHOST\Ubuntu", WINDOWS, WSL, "/"),
        (r"\\wsl$\Debian\home\ada", WINDOWS, WSL, None),
        (r"\\wsl$\Debian\home\ada", WINDOWS, NAMELESS, "/home/ada"),
        (r"\\server\share\x", WINDOWS, WSL, None),
        (r"relative\x", WINDOWS, WSL, None),
        ("C:x", WINDOWS, WSL, None),
        ("/mnt/c/Users/ada", WSL, WINDOWS, r"C:\Users\ada"),
        ("/mnt/c", WSL, AROUND, "C:\\"),
        ("/mnt/c/", WSL, WINDOWS, "C:\\"),
        ("/mnt/wsl/x", WSL, WINDOWS, r"\\wsl.localhost\Ubuntu\mnt\wsl\x"),
        ("/home/ada/.codex", WSL, WINDOWS, r"\\wsl.localhost\Ubuntu\home\ada\.codex"),
        ("/home/ada/.codex", NAMELESS, WINDOWS, None),
        ("relative", WSL, WINDOWS, None),
        ("/home/ada", WSL, WSL, "/home/ada"),
        ("/home/ada", WSL, machine("linux", "wsl", WSL_DISTRO_NAME="Debian"), None),
        (r"C:\x", WINDOWS, AROUND, r"C:\x"),
        ("/home/ada", LINUX, LINUX, "/home/ada"),
        ("/home/ada", LINUX, BOX, None),
        ("/home/ada", BOX, LINUX, None),
        ("/home/ada", BOX, BOX, "/home/ada"),
        ("/home/ada", LINUX, MAC, None),
        ("/home/ada", LINUX, WINDOWS, None),
    ],
)
def test_a_path_as_the_other_machine_writes_it(
    path: str, source: Machine, target: Machine, expected: str | None
) -> None:
    assert translated(path, source, target) == expected


def test_a_wsl_may_mount_drives_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "wsl.conf").write_text("[automount]\nroot = /\n")
    here = machine("linux", "wsl", root=str(tmp_path))
    assert translated(r"C:\x", WINDOWS, here) == "/c/x"
    assert translated("/c/x", here, WINDOWS) == r"C:\x"
    (tmp_path / "etc" / "wsl.conf").write_text("nothing of the kind")
    assert translated(r"C:\x", WINDOWS, here) == "/mnt/c/x"


@pytest.mark.parametrize(
    ("url", "loops"),
    [
        ("http://localhost:3000/mcp", True),
        ("http://127.0.0.1/mcp", True),
        ("http://127.9.9.9:1/x", True),
        ("http://[::1]:8080/", True),
        ("http://LOCALHOST/", True),
        ("http://me.localhost/", True),
        ("https://mcp.example.com/mcp", False),
        ("http://127.0.0.1.example.com/", False),
        ("not a url", False),
        ("http://[broken", False),
    ],
)
def test_which_addresses_loop(url: str, loops: bool) -> None:
    assert loopback(url, LINUX).loops is loops
    assert loopback(url, BOX).loops is loops
    if not loops:
        assert loopback(url, BOX).outside == ()


def test_what_a_loopback_address_means_around_each_machine() -> None:
    url = "http://localhost:3000/mcp?x=1"
    assert loopback(url, LINUX).outside == ()
    box = loopback(url, BOX)
    assert "container" in box.reaches
    assert [each.url for each in box.outside] == [
        "http://host.docker.internal:3000/mcp?x=1",
        "http://host.containers.internal:3000/mcp?x=1",
        "http://127.0.0.1:3000/mcp?x=1",
    ]
    wsl = loopback(url, WSL)
    assert [each.url for each in wsl.outside] == ["http://127.0.0.1:3000/mcp?x=1", None]
    # No rule of these holds everywhere, so none may be given as one.
    for rules in GATEWAYS.values():
        for _name, fact in rules:
            assert not fact.known
            assert fact.note


def test_homes_of_the_windows_around_a_wsl(tmp_path: Path) -> None:
    for name in ("ada", "Public", "Default", "bob"):
        (tmp_path / "mnt" / "c" / "Users" / name).mkdir(parents=True)
    here = machine("linux", "wsl", root=str(tmp_path), WSL_DISTRO_NAME="Ubuntu", folder="/mnt/c/code/app")
    found = home_candidates(here)
    assert [(each.home, each.surrounding) for each in found] == [
        ("/home/ada", "wsl"),
        (r"C:\Users\ada", "windows-of-wsl"),
        (r"C:\Users\bob", "windows-of-wsl"),
    ]
    assert found[1].folder == r"C:\code\app"
    assert found[1].real(r"C:\Users\ada\.cursor\mcp.json") == str(tmp_path / "mnt/c/Users/ada/.cursor/mcp.json")

    named = machine("linux", "wsl", root=str(tmp_path), USERPROFILE="/mnt/c/Users/bob", folder="/home/ada/x")
    other = home_candidates(named)
    assert [each.home for each in other] == ["/home/ada", r"C:\Users\bob"]
    assert other[1].folder == r"C:\Users\bob"


def test_homes_in_a_container_and_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "home" / "vscode").mkdir(parents=True)
    here = machine("linux", "container", root=str(tmp_path), home="/root")
    assert [each.home for each in home_candidates(here)] == ["/root", "/home/vscode"]
    for plain in (LINUX, MAC, WINDOWS):
        assert home_candidates(plain) == [plain]
