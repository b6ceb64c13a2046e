"""Files that nobody would write: whatever stands in one, no host is lost, nothing hangs, and no secret or escape gets out."""

from __future__ import annotations

import json
import os
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from interlock.cli.inventory_json import objects
from interlock.cli.inventory_text import Style, report
from interlock.hosts import registry
from interlock.hosts.adapter import Adapter
from interlock.hosts.checks.codes import CODES
from interlock.hosts.inventory import take
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.writing import Json

TOKENS = ("gh" + "p_" + "Zq7" * 12, "AK" + "IA" + "Q7ZK2M4X9B3VN5TD", "gl" + "pat-" + "Kq9vB2mZ7xT4nR1sLw3y")
NAMES = ("a", "", "a.b", "my server", "__proto__", "\x1b[31mred", "a\u202eb", "two\nlines", "x" * 200, *TOKENS)
FIELDS = (
    "command", "args", "env", "url", "headers", "type", "cwd", "serverUrl", "httpUrl", "disabled", "enabled", "timeout", "trust",
    "tools", "oauth", "auth", "bearer_token", "env_vars", "http_headers", "headersHelper", "envFile", "cmd", "uri", "envs",
    "env_keys", "name", "includeTools", "excludeTools", "disabledTools", "autoApprove", "environment",
)  # fmt: skip
KEYS = {"host", "scope", "file", "server", "state", "decided_by", "problems"}
UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b-\u200f\u2028\u2029\ufeff]")


def _value(dice: random.Random, depth: int = 0) -> object:
    if depth > 3 or dice.random() < 0.6:
        token = dice.choice(TOKENS)
        return dice.choice(
            (None, True, 0, -1, 1.5, 10**30, "", "x", "~/x", "${X}", "${", "{env:", "%X%", "http://[::1", "a" * 3000,
             dice.choice(NAMES), token,
             f"Bearer {token}", f"https://h/{token}", f"https://h/?k={token}", f"--token={token}", f"npx x --y {token}")
        )  # fmt: skip
    if dice.random() < 0.5:
        return [_value(dice, depth + 1) for _ in range(dice.randint(0, 3))]
    return {dice.choice((*FIELDS, *NAMES)): _value(dice, depth + 1) for _ in range(dice.randint(0, 3))}


def _entry(dice: random.Random) -> object:
    if dice.random() < 0.1:
        return _value(dice)
    base: dict[str, object] = dict(
        dice.choice(
            (
                {"command": "node"},
                {"url": "https://h"},
                {"type": "http", "url": "x"},
                {"command": ["a"], "type": "local"},
                {},
            )
        )
    )
    return base | {dice.choice(FIELDS): _value(dice, 1) for _ in range(dice.randint(0, 4))}


def _content(dice: random.Random, place: Place, machine: Machine) -> str:
    top: dict[str, object] = {}
    for table in place.tables:
        inner = top
        for step in table[:-1]:
            below = inner.setdefault({"*": "any", "{project}": machine.folder}.get(step, step), {})
            inner = below if isinstance(below, dict) else {}
        entries: object = {dice.choice(NAMES): _entry(dice) for _ in range(dice.randint(0, 4))}
        inner[table[-1]] = [_entry(dice) for _ in range(3)] if place.listed else entries
    if place.format == "toml":
        from interlock.hosts.text import toml_edit

        return "\n".join(f"{toml_edit.key(name)} = {toml_edit.inline(value)}" for name, value in _for_toml(top).items())
    return json.dumps(top, indent=1)  # which is YAML, too


def _for_toml(value: object) -> dict[str, Json]:
    def inner(value: object) -> Json:
        if isinstance(value, dict):
            return {name: inner(each) for name, each in value.items() if each is not None}
        if isinstance(value, list):
            return [inner(each) for each in value if each is not None]
        if isinstance(value, (str, float, bool)):
            return value
        return min(value, 2**62) if isinstance(value, int) else ""

    made = inner(value)
    assert isinstance(made, dict)
    return made


def _places(machine: Machine) -> list[tuple[Adapter, Place, str]]:
    found = []
    for adapter in registry.every():
        for sign in adapter.signs(machine) if adapter.signs is not None else ():
            Path(machine.real(sign)).mkdir(parents=True, exist_ok=True)
        found += [(adapter, place, path) for place in adapter.places for path in list(place.find(machine))[:1]]
    return found


def _machine(root: Path, platform: str = "linux") -> Machine:
    if platform == "windows":
        return Machine(
            platform="windows", home="C:\\Users\\me", folder="C:\\Users\\me\\p", environ={"PATH": ""}, root=str(root)
        )
    return Machine(platform="linux", home="/home/me", folder="/home/me/p", environ={"PATH": "/bin"}, root=str(root))


def _looked_at(machine: Machine) -> tuple[str, list[dict[str, object]]]:
    inventory = take(machine)
    assert inventory.problems == []
    assert [each.adapter.id for each in inventory.readings] == list(registry.IDS)
    return "\n".join(report([inventory], Style(all=True))), [*objects(inventory)]


@pytest.mark.parametrize("seed", range(12))
def test_whatever_stands_in_the_files_of_all_hosts(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    machine = _machine(tmp_path, dice.choice(("linux", "windows")))
    for _, place, path in _places(machine):
        real = Path(machine.real(path))
        if dice.random() < 0.7 and not os.path.lexists(real):
            real.parent.mkdir(parents=True, exist_ok=True)
            real.write_text(_content(dice, place, machine), encoding="utf-8")
    text, listed = _looked_at(machine)
    told = json.dumps(listed, ensure_ascii=False, allow_nan=False)
    assert UNSAFE.findall(text) == []
    for token in TOKENS:
        assert token not in told
        assert token not in text.replace("\n", "")
    for each in listed:
        assert set(each) >= KEYS
        codes = each["problems"]
        assert isinstance(codes, list)
        assert set(codes) <= set(CODES)


def _socket(path: Path) -> None:
    import socket

    with socket.socket(socket.AF_UNIX) as made:
        before = os.getcwd()
        os.chdir(path.parent)  # the address of a socket is short
        try:
            made.bind(path.name)
        finally:
            os.chdir(before)


STRANGE: dict[str, Callable[[Path], None]] = {
    "folder": Path.mkdir,
    "link to itself": lambda path: path.symlink_to(path),
    "link to nothing": lambda path: path.symlink_to("/nonexistent/x"),
    "noise": lambda path: path.write_bytes(b"\xff\xfe\x00{" * 50) and None,
    "deep": lambda path: path.write_bytes(b'{"a":' * 5000) and None,
    "deep list": lambda path: path.write_bytes(b"[" * 5000) and None,
    "null": lambda path: path.write_bytes(b"null") and None,
    "cut off": lambda path: path.write_bytes(b'{"mcpServers": {"a": {"command": "') and None,
}
if sys.platform != "win32":
    STRANGE |= {"pipe": os.mkfifo, "socket": _socket, "endless": lambda path: path.symlink_to("/dev/zero")}


@pytest.mark.parametrize("kind", STRANGE)
def test_every_file_of_every_host_may_be_something_else(tmp_path: Path, kind: str) -> None:
    machine = _machine(tmp_path)
    for _, _, path in _places(machine):
        real = Path(machine.real(path))
        if not os.path.lexists(real):
            real.parent.mkdir(parents=True, exist_ok=True)
            STRANGE[kind](real)
    _looked_at(machine)
