"""Windows, WSL and containers: how a program is started, a path written, and a loopback address meant on each.

Tables with evidence, and functions over them that only look at their arguments, so that every platform is tested on any.
Where no rule holds everywhere, the answer says so and is no guess.
"""

from __future__ import annotations

import configparser
import ntpath
import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine, Surrounding

# Starting a program

_SHIM_SOURCE = "npm's cmd-shim: a package's command is installed as NAME, NAME.cmd and NAME.ps1, none of them a program"

SHIMS: Mapping[str, Fact[bool]] = {
    "npx": Fact(True, "ST", _SHIM_SOURCE, "cline/cline#902, RooCodeInc/Roo-Code#1062"),
    "npm": Fact(True, "S", _SHIM_SOURCE),
    "pnpm": Fact(True, "S", "as npx where npm or corepack installed it; a stand-alone pnpm.exe starts this way too"),
    "pnpx": Fact(True, "S", "as pnpm"),
    "yarn": Fact(True, "S", "as npx"),
    "yarnpkg": Fact(True, "S", "as npx"),
    "corepack": Fact(True, "S", "as npx"),
    "bunx": unknown("whether it is a program: `where bunx` after Bun's own installer and after `npm install -g bun`"),
    "uvx": Fact(False, "D", "uvx.exe is a program"),
    "node": Fact(False, "D", "node.exe is a program"),
}
"""Bare names and whether on Windows they are batch files, which a program cannot start without `cmd /c`."""
BATCH = (".cmd", ".bat")
WRAPPER = ("cmd", "/c")


def is_shim(program: str) -> bool:
    """Whether Windows has to go through `cmd` for it: a batch file by its ending, or a name known to be one."""
    name = ntpath.basename(program).lower()
    if name.endswith(BATCH):
        return True
    known = SHIMS.get(name)
    return known is not None and known.value is True


def launch_words(command: Sequence[str], machine: Machine) -> tuple[str, ...]:
    """The command as a host on this machine has to be told it: on Windows batch files begin with `cmd /c`."""
    words = tuple(command)
    if machine.platform != "windows" or not words or not is_shim(words[0]):
        return words
    return (*WRAPPER, *words)


def unwrapped(command: Sequence[str]) -> tuple[str, ...]:
    """Without a leading `cmd /c`, so that a command compares alike on every platform."""
    words = tuple(command)
    if len(words) > 2 and ntpath.basename(words[0]).lower() in ("cmd", "cmd.exe") and words[1].lower() == "/c":
        return words[2:]
    return words


# Writing a path

MOUNT = Fact("/mnt/", "D", "where WSL mounts drives unless /etc/wsl.conf says otherwise: [automount] root",
             "learn.microsoft.com/windows/wsl/wsl-config")  # fmt: skip
SHARES: Mapping[str, Fact[bool]] = {
    "wsl.localhost": Fact(True, "D", "newer Windows (11, and 10 with the Store's WSL); both names are read",
                          "learn.microsoft.com/windows/wsl/filesystems"),
    "wsl$": Fact(True, "D", "every Windows with WSL; the first name is preferred where it is known"),
}  # fmt: skip
"""Names under which Windows shows the files of a distribution: `\\\\NAME\\DISTRIBUTION\\path`."""

_DRIVE = re.compile(r"([A-Za-z]):(?:[\\/]|\Z)")
_SHARE = re.compile(r"[\\/]{2}(wsl\$|wsl\.localhost)[\\/]([^\\/]+)((?:[\\/].*)?)\Z", re.IGNORECASE | re.DOTALL)
_INSIDE: frozenset[Surrounding] = frozenset(("wsl", "wsl-of-windows"))


def in_wsl(machine: Machine) -> bool:
    return machine.platform == "linux" and machine.surrounding in _INSIDE


def distribution(machine: Machine) -> str | None:
    """The name of a WSL's distribution, where its environment tells."""
    return machine.environ.get("WSL_DISTRO_NAME") or None


def mount_of(machine: Machine) -> str:
    """Where this WSL mounts Windows drives, with a `/` at the end."""
    settings = configparser.ConfigParser(strict=False, interpolation=None)
    try:
        with open(machine.real("/etc/wsl.conf"), encoding="utf-8-sig") as file:
            settings.read_string(file.read(65536))
    except (OSError, ValueError, configparser.Error):
        return MOUNT.value or "/mnt/"
    root = settings.get("automount", "root", fallback=MOUNT.value or "/mnt/").strip().strip('"')
    return root.rstrip("/") + "/"


def translated(path: str, from_machine: Machine, to_machine: Machine) -> str | None:
    """The same file as the other machine writes it; None where it cannot be reached from there, or nobody can tell."""
    source, target = from_machine, to_machine
    if source.platform == "windows" and in_wsl(target):
        return _to_wsl(path, target)
    if in_wsl(source) and target.platform == "windows":
        return _to_windows(path, source)
    if "container" in (source.surrounding, target.surrounding) and source.surrounding != target.surrounding:
        return None  # which folders are mounted where is up to whoever started the container
    if source.platform == target.platform and in_wsl(source) == in_wsl(target):
        one, other = distribution(source), distribution(target)
        if in_wsl(source) and one and other and one.lower() != other.lower():
            return None
        return path
    return None


def _to_wsl(path: str, target: Machine) -> str | None:
    share = _SHARE.match(path)
    if share is not None:
        own = distribution(target)
        if own is not None and own.lower() != share[2].lower():
            return None
        return posixpath.normpath("/" + share[3].replace("\\", "/").lstrip("/"))
    drive = _DRIVE.match(path)
    if drive is None:
        return None  # relative, or another share: not mounted in a WSL
    rest = path[2:].replace("\\", "/").strip("/")
    return posixpath.normpath(f"{mount_of(target)}{drive[1].lower()}/{rest}")


def _to_windows(path: str, source: Machine) -> str | None:
    if not path.startswith("/"):
        return None
    mount = mount_of(source)
    found = re.match(rf"{re.escape(mount)}([A-Za-z])(?:/(.*))?\Z", path, re.DOTALL)
    if found is not None:
        return f"{found[1].upper()}:\\" + (found[2] or "").strip("/").replace("/", "\\")
    own = distribution(source)
    if own is None:
        return None
    return "\\".join(["", "", next(iter(SHARES)), own, *[part for part in path.split("/") if part]])


# Meaning a loopback address


@dataclass(frozen=True, slots=True)
class Outside:
    """An address under which what surrounds this machine may be reached. `url` is None where it has to be looked up."""

    url: str | None
    when: Fact[bool]
    """Whether it is there: None, because no rule holds everywhere; the note says where it does."""


@dataclass(frozen=True, slots=True)
class Loopback:
    """What a URL means to a program on one machine."""

    url: str
    loops: bool
    """It names the machine itself."""
    reaches: str
    """In words: what answers there."""
    outside: tuple[Outside, ...] = ()
    """Other ways to what stands around this machine, where that was meant."""


_LOOPS = re.compile(r"127(?:\.\d{1,3}){3}\Z|localhost\Z|.*\.localhost\Z|::1\Z")

GATEWAYS: Mapping[Surrounding, tuple[tuple[str | None, Fact[bool]], ...]] = {
    "wsl": (
        ("127.0.0.1", Fact(None, "UD", "the Windows around it only with networkingMode=mirrored (Windows 11 22H2 and later); "
                           "`wslinfo --networking-mode` tells", "learn.microsoft.com/windows/wsl/networking")),
        (None, Fact(None, "UD", "with NAT, the default: the address that `ip route show default` names, and only what "
                    "listens on more than Windows' loopback", "learn.microsoft.com/windows/wsl/networking")),
    ),
    "container": (
        ("host.docker.internal", Fact(None, "UD", "Docker Desktop; Docker Engine on Linux only with "
                                      "--add-host=host.docker.internal:host-gateway; Podman from 5.0",
                                      "docs.docker.com/desktop/features/networking; moby/moby#40007")),
        ("host.containers.internal", Fact(None, "UD", "Podman, unless --no-hosts or its configuration takes it away",
                                          "containers/podman docs/source/markdown/options/add-host.md")),
        ("127.0.0.1", Fact(None, "UD", "a container started with --network=host shares the loopback of its host")),
    ),
    "windows-of-wsl": (
        ("localhost", Fact(None, "UD", "what listens in the WSL, while localhostForwarding is on (it is by default, with NAT) or "
                           "with mirrored networking",
                           "learn.microsoft.com/windows/wsl/wsl-config")),
    ),
}  # fmt: skip
GATEWAYS = {**GATEWAYS, "wsl-of-windows": GATEWAYS["wsl"]}

_ITSELF: Mapping[Surrounding, str] = {
    "native": "this machine",
    "wsl": "this WSL, and not the Windows around it unless networking is mirrored",
    "wsl-of-windows": "the WSL, and not the Windows around it unless networking is mirrored",
    "windows-of-wsl": "Windows, and what listens in the WSL where that is forwarded",
    "container": "this container, and not the machine that it runs on",
}


def loopback(url: str, machine: Machine) -> Loopback:
    """What a program on this machine reaches at `url`, and where else what surrounds the machine may be."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if host is None or not _LOOPS.match(host):
        return Loopback(url, False, "another machine" if host else "nothing: this is no URL with a host")
    tail = f":{port}" if port is not None else ""
    outside = tuple(
        Outside(None if name is None else parts._replace(netloc=f"{name}{tail}").geturl(), fact)
        for name, fact in GATEWAYS.get(machine.surrounding, ())
    )
    return Loopback(url, True, _ITSELF[machine.surrounding], outside)


# Finding homes

CONTAINER_HOMES: Mapping[str, Fact[str]] = {
    "/root": Fact("root", "D", "most images"),
    "/home/vscode": Fact("vscode", "D", "development containers of the base images", "devcontainers/images"),
    "/home/node": Fact("node", "D", "the Node.js images", "nodejs/docker-node"),
    "/home/codespace": Fact("codespace", "D", "the universal image of Codespaces", "devcontainers/images"),
}
_NOT_PEOPLE = frozenset(("all users", "default", "default user", "defaultapppool", "public", "wdagutilityaccount"))


def home_candidates(machine: Machine) -> list[Machine]:
    """This machine, and the others whose homes hold files of hosts that a person here may mean: those that are there.

    From a WSL the Windows around it; in a container the usual users. From Windows, distributions are not looked for: their
    list is in the registry, and reading a share starts a distribution that sleeps.
    """
    found = [machine]
    if machine.surrounding == "wsl" and machine.platform == "linux":
        found += _windows_homes(machine)
    elif machine.surrounding == "container":
        for home in CONTAINER_HOMES:
            if home != machine.home and os.path.isdir(machine.real(home)):
                found.append(
                    Machine(
                        platform=machine.platform, home=home, folder=machine.folder, environ={}, surrounding="container",
                        root=machine.root,
                    )
                )  # fmt: skip
    return found


def _windows_homes(machine: Machine) -> Iterator[Machine]:
    mount = mount_of(machine)
    for home in _profiles(machine, mount):
        shell = Machine(
            platform="windows",
            home=home,
            folder=home,
            environ={},
            surrounding="windows-of-wsl",
            root=machine.real(mount),
        )
        folder = translated(machine.folder, machine, shell)
        yield Machine(
            platform="windows", home=home, folder=folder if folder is not None and _DRIVE.match(folder) else home,
            environ={}, surrounding="windows-of-wsl", root=machine.real(mount),
        )  # fmt: skip


def _profiles(machine: Machine, mount: str) -> Iterator[str]:
    """The profile that the environment names (WSLENV can pass it), else every person's on drive C."""
    given = machine.environ.get("USERPROFILE", "")
    if given.startswith(mount):
        given = _to_windows(given, machine) or ""
    if _DRIVE.match(given):
        yield ntpath.normpath(given)
        return
    folder = machine.real(f"{mount}c/Users")
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return
    for name in names:
        if name.lower() not in _NOT_PEOPLE and os.path.isdir(os.path.join(folder, name)) and not name.startswith("."):
            yield f"C:\\Users\\{name}"
