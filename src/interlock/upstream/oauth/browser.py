"""Opens a person's browser where there is one to open. Never blocks, and never writes to standard output.

Standard output belongs to MCP on stdio, and browsers' launchers write what they like: so they get no stream of ours.

A server chooses most of the URL, so no shell may read it as commands. What a shell or a launcher's script could misread goes out
percent-encoded. `&` has to stay, for it separates the query's fields: so the URL is never put into a word that a shell runs.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_FALSE = frozenset({"", "0", "false", "no", "off"})
_NO_BROWSER = frozenset({"none", "false", "true", ":", "/bin/false", "/bin/true", "/usr/bin/false", "/usr/bin/true"})
"""Values of BROWSER that people set to switch browsers off."""
_HARMLESS = re.compile(r"[A-Za-z0-9._~:/?#@!,=+&%-]")
"""Left as they are. All else is data in a URL that reaches a browser (RFC 3986 section 2.2), so encoding it changes nothing there."""
_CODE = re.compile(r"[\s;|&$`<>()'\"]")
"""A word of BROWSER with these around its `%s` is a program for somebody to run, and not an argument."""
_SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh"})
_REREADERS = frozenset(
    ("fish", "csh", "tcsh", "busybox", "cmd", "powershell", "pwsh", "osascript", "ssh", "mosh", "su", "watch", "script")
)
"""They join their arguments for a shell to read, or take commands in ways that are not looked into here."""
_OPENERS = ("xdg-open", "gio", "sensible-browser", "x-www-browser", "firefox", "chromium", "google-chrome")


def open_browser(url: str, environ: Mapping[str, str] | None = None) -> bool:
    """Start a browser on the URL and do not wait for it. True where one was started, so a person may be looking at it.

    False where no graphical session of the person's own is here (SSH, containers, WSL without BROWSER, CI), where
    INTERLOCK_NO_BROWSER is set, and where nothing could be started. A command in BROWSER that would have a shell read the
    URL is passed over: `sh -c 'firefox %s'` is, `sh -c 'firefox "$1"' sh %s` is not.
    """
    environ = os.environ if environ is None else environ
    if not url.startswith(("https://", "http://")) or not has_screen(environ):
        return False
    return any(_start(command, environ) for command in _commands(harmless(url), environ))


def harmless(url: str) -> str:
    """The same URL with everything encoded that a shell may take for more than data, but for `&`. Brackets stay in the host."""
    scheme, separator, rest = url.partition("://")
    host = re.match(r"[^/?#]*", rest)
    authority = host[0] if host is not None else ""
    plain = "".join(each if each in "[]" or _HARMLESS.match(each) else _encoded(each) for each in authority)
    tail = "".join(each if _HARMLESS.match(each) else _encoded(each) for each in rest[len(authority) :])
    return f"{scheme}{separator}{plain}{tail}"


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "replace"))


def has_screen(environ: Mapping[str, str]) -> bool:
    """Whether a browser that is started here would be seen by the person who made the call."""
    if environ.get("INTERLOCK_NO_BROWSER", "").strip().lower() not in _FALSE:
        return False
    browser = environ.get("BROWSER", "").strip()
    if browser:
        # Editors' remote sessions set it to a helper that opens the browser on the person's own machine.
        return browser not in _NO_BROWSER
    if environ.get("CI", "").strip().lower() not in _FALSE:
        return False
    if any(environ.get(name) for name in ("SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY")):
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    if is_wsl(environ) or is_container(environ):
        return False
    return bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))


def is_wsl(environ: Mapping[str, str]) -> bool:
    """Windows Subsystem for Linux: the browser is on the other side, and loopback there may not be ours."""
    if environ.get("WSL_DISTRO_NAME") or environ.get("WSL_INTEROP"):
        return True
    try:
        return "microsoft" in Path("/proc/sys/kernel/osrelease").read_text(encoding="ascii", errors="replace").lower()
    except OSError:
        return False


def is_container(environ: Mapping[str, str]) -> bool:
    """Docker, Podman, Kubernetes and editors' containers: the browser's loopback is not this one."""
    if any(environ.get(name) for name in ("KUBERNETES_SERVICE_HOST", "REMOTE_CONTAINERS", "CODESPACES", "container")):
        return True
    return any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv"))


def _commands(url: str, environ: Mapping[str, str]) -> list[list[str]]:
    """Commands to try in order. BROWSER is a list of commands, `%s` in one stands for the URL (as in Python's webbrowser)."""
    chosen = [part.strip() for part in environ.get("BROWSER", "").split(os.pathsep) if part.strip()]
    if chosen:
        return [_with_url(command, url) for command in chosen if command not in _NO_BROWSER]
    if sys.platform == "darwin":
        return [["/usr/bin/open", url]]
    if sys.platform == "win32":
        # Not through cmd.exe, which would read `&` in the URL as an end of the command.
        return [["rundll32", "url.dll,FileProtocolHandler", url]]
    return [[opener, "open", url] if opener == "gio" else [opener, url] for opener in _OPENERS]


def _with_url(command: str, url: str) -> list[str]:
    try:
        words = shlex.split(command, posix=sys.platform != "win32")
    except ValueError:
        return []
    if not any("%s" in word for word in words):
        words = [*words, "%s"]
    return [word.replace("%s", url) for word in words] if _takes_arguments(words) else []


def _takes_arguments(words: list[str]) -> bool:
    """Whether each word with `%s` reaches a program as one argument, whatever stands in it."""
    names = [re.split(r"[/\\]", word)[-1].lower().removesuffix(".exe") for word in words]
    if any(name in _REREADERS for name in names):
        return False
    if any("%s" in word and _CODE.search(word) for word in words) or "%s" in words[0]:
        return False
    if not any(name in _SHELLS for name in names):
        return True
    # The code of `-c` is the word after it; the arguments come later. Without `-c`, the first argument is a script to run.
    place = next((at for at, word in enumerate(words) if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word)), None)
    if place is None:
        place = next(at for at, name in enumerate(names) if name in _SHELLS)
    code = next((at for at, word in enumerate(words) if at > place and not word.startswith(("-", "+"))), len(words))
    return not any("%s" in word for word in words[: code + 1])


def _start(command: list[str], environ: Mapping[str, str]) -> bool:
    if not command:
        return False
    program = shutil.which(command[0], path=environ.get("PATH"))
    if program is None:
        return False
    try:
        subprocess.Popen(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=dict(environ),
            start_new_session=sys.platform != "win32",  # a browser outlives us, and our Ctrl-C is not for it
            creationflags=getattr(subprocess, "DETACHED_PROCESS", 0),
        )
    except OSError:
        return False
    return True
