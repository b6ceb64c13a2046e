"""A fetched release is looked through before anything of it runs: is it Interlock, and the version that was asked for?

Names on an index belong to whoever took them first, and an index may be set up to hold another's packages. So the wheel is
read as an archive: nothing in it is imported, built or started until all of this holds.
"""

from __future__ import annotations

import ast
import base64
import configparser
import csv
import hashlib
import os
import zipfile
from collections.abc import Iterator
from email.parser import HeaderParser

from interlock.install.closure import DISTRIBUTION, normal
from interlock.install.version import key

NEEDED = (
    "interlock/__init__.py",
    "interlock/__main__.py",
    "interlock/build.py",
    "interlock/cli/main.py",
    "interlock/cli/bridge.py",
    "interlock/cli/connect.py",
    "interlock/install/align.py",
    "interlock/install/places.py",
    "interlock/install/record.py",
    "interlock/install/start.py",
)
"""What the launcher, `align` and hosts start in a copy."""
ENTRY_POINT = "interlock.cli.main:main"
_MOST_BYTES = 64 * 1024 * 1024
"""Of one member: a small archive may claim to hold anything."""


class NotOurs(Exception):
    """It is something else. The text says what was found; nothing of it ran."""


def look_through(wheel: str, version: str) -> dict[str, str]:
    """Name and SHA-256 (hex) of each file of the `interlock` package in this wheel. Raises NotOurs."""
    label = os.path.basename(wheel)
    try:
        with zipfile.ZipFile(wheel) as archive:
            return _looked_through(archive, label, version)
    except (zipfile.BadZipFile, OSError, UnicodeDecodeError, ValueError, KeyError) as error:
        raise NotOurs(f"{label} cannot be read as a wheel ({type(error).__name__})") from None


def _looked_through(archive: zipfile.ZipFile, label: str, version: str) -> dict[str, str]:
    names = set(archive.namelist())
    infos = {name.partition("/")[0] for name in names if name.partition("/")[0].endswith(".dist-info")}
    if len(infos) != 1:
        raise NotOurs(f"{label} has {len(infos)} metadata folders where a wheel has one")
    info = infos.pop()
    told = HeaderParser().parsestr(_text(archive, f"{info}/METADATA"))
    name, claimed = str(told["Name"]), str(told["Version"])
    if normal(name) != DISTRIBUTION:
        raise NotOurs(f"{label} is {_cut(name)}, and {DISTRIBUTION} was asked for")
    if key(claimed) is None or key(claimed) != key(version):
        raise NotOurs(f"{label} is version {_cut(claimed)}, and {version} was asked for")
    missing = [one for one in NEEDED if one not in names]
    if missing:
        raise NotOurs(
            f"{label} has the name, but is not Interlock: it lacks {', '.join(missing[:3])}"
            + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        )
    entry = _entry_point(_text(archive, f"{info}/entry_points.txt") if f"{info}/entry_points.txt" in names else "")
    if entry != ENTRY_POINT:
        raise NotOurs(f"{label} starts {_cut(entry) or 'nothing'} as `interlock`, and {ENTRY_POINT} was expected")
    said = _version_in(_text(archive, "interlock/__init__.py"))
    if key(said) is None or key(said) != key(version):
        raise NotOurs(
            f"{label} calls itself {_cut(said) or 'nothing'} in interlock/__init__.py, and {version} was asked for"
        )
    recorded = dict(_recorded(_text(archive, f"{info}/RECORD")))
    files: dict[str, str] = {}
    for one in sorted(names):
        if one.startswith("interlock/") and not one.endswith("/"):
            files[one] = hashlib.sha256(_bytes(archive, one)).hexdigest()
            if recorded.get(one) != files[one]:
                raise NotOurs(f"{label} has a file that its own RECORD does not vouch for: {one}")
    return files


def still_ours(lib: str, files: dict[str, str]) -> None:
    """Whether `interlock` in this folder is what the wheel held, and no requirement put a file over it. Raises NotOurs."""
    found: dict[str, str] = {}
    top = os.path.join(lib, "interlock")
    for parent, _, children in os.walk(top):
        for child in children:
            path = os.path.join(parent, child)
            name = os.path.relpath(path, lib).replace(os.sep, "/")
            if not child.endswith(".pyc"):
                with open(path, "rb") as stream:
                    found[name] = hashlib.sha256(stream.read()).hexdigest()
    strange = sorted(name for name in found.keys() | files.keys() if found.get(name) != files.get(name))
    if strange:
        raise NotOurs(f"another package changed Interlock's own files while it was installed: {', '.join(strange[:3])}")


def _bytes(archive: zipfile.ZipFile, name: str) -> bytes:
    if archive.getinfo(name).file_size > _MOST_BYTES:
        raise ValueError(name)
    return archive.read(name)


def _text(archive: zipfile.ZipFile, name: str) -> str:
    return _bytes(archive, name).decode("utf-8")


def _recorded(text: str) -> Iterator[tuple[str, str]]:
    """File names and SHA-256 (hex) of a RECORD (PyPA: recording installed projects)."""
    for row in csv.reader(text.splitlines()):
        if len(row) >= 2 and row[1].startswith("sha256="):
            digest = row[1].removeprefix("sha256=")
            yield row[0], base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4)).hex()


def _entry_point(text: str) -> str:
    found = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    try:
        found.read_string(text)
    except configparser.Error:
        return ""
    return found.get("console_scripts", "interlock", fallback="").replace(" ", "")


def _version_in(source: str) -> str:
    """What `__version__ = "..."` says, read and not run."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return ""
    for line in body:
        if isinstance(line, ast.Assign) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str):
            for target in line.targets:
                if isinstance(target, ast.Name) and target.id == "__version__":
                    return line.value.value
    return ""


def _cut(text: str) -> str:
    """A stranger's words for a terminal: short, and nothing in them that moves the cursor."""
    return "".join(char if char.isprintable() else "?" for char in text)[:80]
