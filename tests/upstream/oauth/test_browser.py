"""A browser is started only where the person who made the call would see it, and never in the way of anything."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from interlock.upstream.oauth import browser

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the rules of Linux sessions")
URL = "https://as.test/authorize?a=1&b=$(touch x)"
HARMLESS = "https://as.test/authorize?a=1&b=%24%28touch%20x%29"
SCREEN = {"DISPLAY": ":0"}


@pytest.fixture
def plain_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if this were neither a container nor WSL."""
    monkeypatch.setattr(browser, "is_wsl", lambda environ: bool(environ.get("WSL_DISTRO_NAME")))
    monkeypatch.setattr(browser, "is_container", lambda environ: bool(environ.get("container")))


@pytest.mark.usefixtures("plain_linux")
@pytest.mark.parametrize(
    ("environ", "seen"),
    [
        (SCREEN, True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, True),
        ({}, False),
        (SCREEN | {"INTERLOCK_NO_BROWSER": "1"}, False),
        (SCREEN | {"INTERLOCK_NO_BROWSER": "0"}, True),
        (SCREEN | {"INTERLOCK_NO_BROWSER": ""}, True),
        (SCREEN | {"CI": "true"}, False),
        (SCREEN | {"SSH_CONNECTION": "10.0.0.1 1 10.0.0.2 22"}, False),
        (SCREEN | {"SSH_TTY": "/dev/pts/1"}, False),
        (SCREEN | {"WSL_DISTRO_NAME": "Ubuntu"}, False),
        (SCREEN | {"container": "podman"}, False),
        ({"BROWSER": "helper"}, True),
        ({"BROWSER": "helper", "SSH_TTY": "/dev/pts/1"}, True),
        ({"BROWSER": "helper", "WSL_DISTRO_NAME": "Ubuntu"}, True),
        ({"BROWSER": "helper", "INTERLOCK_NO_BROWSER": "yes"}, False),
        (SCREEN | {"BROWSER": "none"}, False),
        (SCREEN | {"BROWSER": "/bin/true"}, False),
    ],
)
def test_where_a_browser_would_be_seen(environ: dict[str, str], seen: bool) -> None:
    assert browser.has_screen(environ) is seen


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, True),
        ({"REMOTE_CONTAINERS": "true"}, True),
        ({"CODESPACES": "true"}, True),
    ],
)
def test_containers_are_known_by_their_variables(environ: dict[str, str], expected: bool) -> None:
    assert browser.is_container(environ) is expected


def test_wsl_is_known_by_its_variables() -> None:
    assert browser.is_wsl({"WSL_INTEROP": "/run/WSL/1_interop"})


def script(path: Path, body: str) -> Path:
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def wait_for(path: Path) -> str:
    end = time.monotonic() + 10
    while time.monotonic() < end:
        if path.exists() and (text := path.read_text(encoding="utf-8")).endswith("\n"):
            return text.strip()
        time.sleep(0.01)
    raise AssertionError(f"{path} was not written")


@pytest.mark.parametrize(
    ("form", "expected"),
    [("{program}", HARMLESS), ("{program} --new %s", f"--new {HARMLESS}"), ("missing:{program}", HARMLESS)],
)
def test_browser_names_the_program_and_no_shell_reads_the_url(tmp_path: Path, form: str, expected: str) -> None:
    out = tmp_path / "out"
    program = script(tmp_path / "helper", f'printf "%s\\n" "$*" > {out}.tmp; mv {out}.tmp {out}')
    environ = {"BROWSER": form.format(program=program), "PATH": "/usr/bin:/bin"}
    assert browser.open_browser(URL, environ) is True
    assert wait_for(out) == expected
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://as.test/a?scope=a+b&x=%2F~-_.!@,:/?", "https://as.test/a?scope=a+b&x=%2F~-_.!@,:/?"),
        ("https://[::1]:8443/a;b?c=[d]", "https://[::1]:8443/a%3Bb?c=%5Bd%5D"),
        ("https://a.test/`x`|y>z<'\"\\", "https://a.test/%60x%60%7Cy%3Ez%3C%27%22%5C"),
        ("https://a.test/$(x)*{y} z\n\u00e9", "https://a.test/%24%28x%29%2A%7By%7D%20z%0A%C3%A9"),
        ("https://a;b$c.test", "https://a%3Bb%24c.test"),
    ],
)
def test_what_a_shell_could_misread_is_encoded(url: str, expected: str) -> None:
    assert browser.harmless(url) == expected


@pytest.mark.parametrize(
    ("form", "runs"),
    [
        ("sh -c '{program} %s'", False),
        ("sh -c %s", False),
        ("sh -c", False),
        ("bash -c -- %s", False),
        ("env A=1 bash -ec '{program} \"%s\"'", False),
        ("ssh somewhere {program}", False),
        ("%s", False),
        ("sh -c '{program} \"$1\"' sh %s", True),
        ("sh -c '{program} \"$0\"'", True),
        ("{program} --app=%s", True),
    ],
)
def test_no_shell_is_given_the_url_as_commands(tmp_path: Path, form: str, runs: bool) -> None:
    """`&` ends a command and has to stay in a URL."""
    out, hit = tmp_path / "out", tmp_path / "hit"
    program = script(tmp_path / "helper", f'printf "%s\\n" "$*" > {out}.tmp; mv {out}.tmp {out}')
    environ = {"BROWSER": form.format(program=program), "PATH": f"{tmp_path}:/usr/bin:/bin"}
    url = f"https://as.test/?a&touch$IFS{hit}&b"
    assert browser.open_browser(url, environ) is runs
    if runs:
        assert wait_for(out).endswith(f"https://as.test/?a&touch%24IFS{hit}&b")
    assert not hit.exists()


def test_nothing_to_start_is_said(tmp_path: Path) -> None:
    assert browser.open_browser(URL, {"BROWSER": "no-such-program", "PATH": str(tmp_path)}) is False


@pytest.mark.parametrize("url", ["file:///etc/passwd", "javascript:alert(1)", "-version", "ftp://a.test/"])
def test_only_web_addresses_are_opened(tmp_path: Path, url: str) -> None:
    program = script(tmp_path / "helper", f"touch {tmp_path / 'ran'}")
    assert browser.open_browser(url, {"BROWSER": str(program), "PATH": "/usr/bin:/bin"}) is False


def test_a_loud_and_slow_browser_neither_blocks_nor_writes_to_our_output(tmp_path: Path) -> None:
    done = tmp_path / "done"
    program = script(tmp_path / "loud", f"echo noise; echo noise >&2; echo x > {done}; exec sleep 5")
    code = (
        "from interlock.upstream.oauth.browser import open_browser; import sys;"
        f"sys.exit(0 if open_browser('https://a.test/', {{'BROWSER': {str(program)!r}, 'PATH': '/usr/bin:/bin'}}) else 1)"
    )
    started = time.monotonic()
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=20, check=False)
    assert ran.returncode == 0
    assert time.monotonic() - started < 4.5  # not for as long as the browser runs
    wait_for(done)
    assert (ran.stdout, ran.stderr) == (b"", b"")
