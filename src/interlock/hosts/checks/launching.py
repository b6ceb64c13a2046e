"""What a command really starts: the program behind `cmd /c`, `env` and shells, and the package behind npx and its kin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_SHELLS = frozenset(("sh", "bash", "zsh", "dash", "fish", "ksh"))
_POWERSHELLS = frozenset(("powershell", "pwsh"))
_ENDING = re.compile(r"\.(?:exe|cmd|bat|ps1)\Z", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")

Runner = Literal["npm", "python", "container"]


def name_of(program: str) -> str:
    """`C:\\nodejs\\npx.cmd` and `/usr/bin/npx` are both `npx`."""
    return _ENDING.sub("", re.split(r"[/\\]", program)[-1]).lower()


@dataclass(frozen=True, slots=True)
class Launch:
    """`program` and `args` after wrappers; `offset` is the place of `program` in the command as written."""

    program: str
    args: tuple[str, ...]
    offset: int
    shell: bool
    """A shell fills in variables and `~` by itself; `program` and `args` are then the shell's own."""
    through_cmd: bool = False
    elsewhere: bool = False
    """It runs in another system (WSL, ssh, a container): this machine's paths say nothing about it."""


def launch(command: tuple[str, ...]) -> Launch | None:
    """None for an empty command."""
    offset, through_cmd = 0, False
    while offset < len(command):
        name = name_of(command[offset])
        rest = command[offset + 1 :]
        if name == "cmd" and rest and rest[0].lower() in ("/c", "/s", "/d", "/q"):
            offset += 1
            while offset < len(command) and command[offset].lower() in ("/c", "/s", "/d", "/q"):
                offset += 1
            through_cmd = True
            continue
        if name == "env" and rest:
            skip = 1
            while offset + skip < len(command) and _ASSIGNMENT.match(command[offset + skip]):
                skip += 1
            if offset + skip < len(command) and not command[offset + skip].startswith("-"):
                offset += skip
                continue
        shell = (name in _SHELLS and any(re.fullmatch(r"-[a-z]*c", word) for word in rest)) or (
            name in _POWERSHELLS and any(word.lower() in ("-c", "-command", "-encodedcommand") for word in rest)
        )
        elsewhere = name in ("wsl", "ssh", "docker", "podman", "nerdctl", "kubectl", "vagrant")
        return Launch(command[offset], tuple(rest), offset, shell, through_cmd, elsewhere)
    return None


@dataclass(frozen=True, slots=True)
class Package:
    """Something that is fetched and run by one command."""

    runner: Runner
    tool: str
    """`npx`, `uvx`, `docker` ... as a person calls it."""
    name: str
    """Without version."""
    version: str
    """As written; empty where none is."""
    pinned: bool
    index: int
    """Of the word in the whole command."""
    asks: bool = False
    """npx without `-y`."""


def package(command: tuple[str, ...]) -> Package | None:
    """None where nothing is fetched by name: a program of the machine, a path, a URL."""
    found = launch(command)
    if found is None or found.shell:
        return None
    name, args, base = name_of(found.program), list(found.args), found.offset + 1
    if name in ("npx", "bunx", "pnpx"):
        return _npm(name, args, base)
    if len(args) > 1 and (name, args[0]) in (
        ("npm", "exec"), ("npm", "x"), ("pnpm", "dlx"), ("yarn", "dlx"), ("bun", "x"),
    ):  # fmt: skip
        return _npm(f"{name} {args[0]}", args[1:], base + 1)
    if name == "uvx":
        return _python("uvx", args, base)
    if name == "uv" and args[:2] == ["tool", "run"]:
        return _python("uv tool run", args[2:], base + 2)
    if name == "pipx" and args[:1] == ["run"]:
        return _python("pipx run", args[1:], base + 1)
    if name in ("docker", "podman", "nerdctl") and "run" in args[:1]:
        return _image(name, args[1:], base + 1)
    return None


_NPM_VALUES = frozenset(("--registry", "--cache", "--prefix", "--userconfig", "-w", "--workspace", "-c", "--call"))
_EXACT = re.compile(r"v?\d+\.\d+\.\d+(?:[-+.][0-9A-Za-z.+-]+)?\Z")


def _npm(tool: str, args: list[str], base: int) -> Package | None:
    asks = tool in ("npx", "npm exec", "npm x") and not any(word in ("-y", "--yes", "--yes=true") for word in args)
    index = 0
    spec: tuple[str, int] | None = None
    while index < len(args):
        word = args[index]
        if word in ("-p", "--package") and index + 1 < len(args):
            spec = spec or (args[index + 1], index + 1)
            index += 2
        elif word.startswith("--package="):
            spec = spec or (word.partition("=")[2], index)
            index += 1
        elif word in _NPM_VALUES:
            index += 2
        elif word == "--" or word.startswith("-"):
            index += 1
        else:
            spec = spec or (word, index)
            break
    if spec is None:
        return None
    text, where = spec
    if re.match(r"(?:[./~]|[A-Za-z]:[\\/]|file:|https?:|git|\$|%)", text) or ":" in text:
        return None
    head, at, version = text[1:].partition("@") if text.startswith("@") else text.partition("@")
    name = f"@{head}" if text.startswith("@") else head
    if name.count("/") > (1 if name.startswith("@") else 0):
        return None
    return Package("npm", tool, name, version if at else "", bool(_EXACT.match(version)), base + where, asks)


_UV_VALUES = frozenset(
    (
        "--with", "--python", "-p", "--index", "--index-url", "--extra-index-url", "--default-index", "--directory",
        "--project", "--cache-dir", "--config-file", "--env-file", "-i", "--with-requirements", "--constraints",
        "--exclude-newer", "--refresh-package", "--pip-args",
    )
)  # fmt: skip


def _python(tool: str, args: list[str], base: int) -> Package | None:
    index = 0
    spec: tuple[str, int] | None = None
    while index < len(args):
        word = args[index]
        if word in ("--from", "--spec") and index + 1 < len(args):
            spec = (args[index + 1], index + 1)
            break
        if word.startswith(("--from=", "--spec=")):
            spec = (word.partition("=")[2], index)
            break
        if word in _UV_VALUES:
            index += 2
        elif word.startswith("-"):
            index += 1
        else:
            spec = (word, index)
            break
    if spec is None:
        return None
    text, where = spec
    if text.startswith("git+"):
        address, at, ref = text.rpartition("@")
        pinned = bool(at and "/" not in ref and (re.fullmatch(r"[0-9a-f]{40}", ref) or re.match(r"v?\d+\.\d+", ref)))
        return Package(
            "python", tool, address if at and "/" not in ref else text, ref if pinned else "", pinned, base + where
        )
    if re.match(r"(?:[./~]|[A-Za-z]:[\\/]|file:|https?:|\$|%)", text):
        return None
    match = re.match(r"([A-Za-z0-9._-]+)(\[[^\]]*\])?\s*(.*)\Z", text)
    if match is None:
        return None
    name, _, version = match.groups()
    pinned = bool(re.fullmatch(r"(?:@|===?)\s*v?\d+(?:\.\d+)*[0-9A-Za-z.+!-]*", version)) and "*" not in version
    return Package("python", tool, name, version.lstrip("=@ ") if version else "", pinned, base + where)


_IMAGE_FLAGS = frozenset(
    (
        "-i", "-t", "-d", "-it", "-ti", "-dit", "--interactive", "--tty", "--rm", "--init", "--detach", "--privileged",
        "--read-only", "-P", "--publish-all", "--no-healthcheck", "--oom-kill-disable", "--quiet", "-q", "--sig-proxy",
    )
)  # fmt: skip
"""Flags of `docker run` that take no value; all others take one."""


def image_at(args: list[str] | tuple[str, ...]) -> int | None:
    """Where the image stands behind `docker run`."""
    index = 0
    while index < len(args):
        word = args[index]
        if word == "--":
            return index + 1 if index + 1 < len(args) else None
        if not word.startswith("-"):
            return index
        short_with_value = re.fullmatch(r"-[a-zA-Z]..*", word) and not re.fullmatch(r"-[itdPq]+", word)
        alone = word in _IMAGE_FLAGS or "=" in word or re.fullmatch(r"-[itdPq]+", word) or short_with_value
        if word.startswith("--"):
            alone = word in _IMAGE_FLAGS or "=" in word
        index += 1 if alone else 2
    return None


def _image(tool: str, args: list[str], base: int) -> Package | None:
    where = image_at(args)
    if where is None:
        return None
    text = args[where]
    if "$" in text or "{" in text:
        return None
    name, at, digest = text.partition("@")
    if at:
        return Package("container", tool, name, digest, True, base + where)
    head, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    pinned = bool(tag) and tag not in ("latest", "main", "master", "edge", "nightly", "dev", "stable")
    return Package("container", tool, f"{head}{slash}{last}", tag, pinned, base + where)


def passed_by_name(found: Launch) -> list[tuple[str, int]]:
    """Variables that `docker run -e NAME` takes from its own environment, and where each stands in the whole command."""
    if name_of(found.program) not in ("docker", "podman", "nerdctl") or found.args[:1] != ("run",):
        return []
    names: list[tuple[str, int]] = []
    args = found.args[1:]
    end = image_at(args)
    for index, word in enumerate(args[: len(args) if end is None else end]):
        if word in ("-e", "--env") and index + 1 < len(args):
            name, where = args[index + 1], index + 1
        elif word.startswith("--env="):
            name, where = word.partition("=")[2], index
        else:
            continue
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            names.append((name, found.offset + 2 + where))
    return names
