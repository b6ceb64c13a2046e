"""Which installed files Interlock consists of: its own package and the distributions that it needs at run time.

Taken from what is installed (importlib.metadata), with no network. Interlock itself may be installed in any way, also as
an editable install or run from a source checkout; what it needs must be installed as ordinary files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

DISTRIBUTION = "interlock-gateway"
"""Its name where packages are published. Whose files have that name is checked all the same (release.py)."""

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[([^\]]*)\])?")
_EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")
# Records of the installation it came from: of no use in a copy, and `direct_url.json` may hold a private address.
_NOT_COPIED = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json"})


class NotCopyable(Exception):
    """A part that is needed is not installed as ordinary files; the text says which and what to do."""


class Part(NamedTuple):
    """One file: its path below the folder that goes onto `sys.path`, with slashes, and where it is now."""

    name: str
    source: Path


class Closure(NamedTuple):
    parts: tuple[Part, ...]
    imports: tuple[str, ...]
    """Top-level modules of what Interlock asks for itself: a copy in which they can be imported is complete."""


def package_root() -> Path:
    """The folder of the running `interlock` package."""
    return Path(__file__).resolve().parents[1]


def gather() -> Closure:
    """All files of Interlock and of its requirements, no bytecode among them. Raises NotCopyable."""
    parts = {part.name: part for part in _own()}
    imports: list[str] = []
    wanted = list(_parsed(_own_requirements()))
    direct = {name for name, _, _ in wanted}
    done: set[tuple[str, str]] = set()
    while wanted:
        name, extras, optional = wanted.pop()
        new = {(name, extra) for extra in ("", *extras)} - done
        if not new:
            continue
        done |= new
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if optional:
                continue  # its condition does not hold here, or pip would have installed it
            raise NotCopyable(
                f"{name} is not installed, and Interlock needs it: `pip install {name}`, or install Interlock again"
            ) from None
        files = list(_files_of(name, found))
        parts.update((part.name, part) for part in files)
        if name in direct:
            imports += _modules(files)
        wanted += _parsed(found.requires or (), frozenset(extra for _, extra in new))
    return Closure(tuple(sorted(parts.values())), tuple(sorted(set(imports))))


def _own() -> Iterator[Part]:
    """The running package as it lies there, the same files that its build hash is made of (build.py)."""
    root = package_root()
    for file in sorted(root.rglob("*")):
        if file.is_file() and file.suffix != ".pyc":
            yield Part(f"{root.name}/{file.relative_to(root).as_posix()}", file)


def _own_requirements() -> tuple[str, ...]:
    """From the checkout's pyproject.toml where we run from a checkout: what is installed beside it may be another version."""
    project = package_root().parents[1] / "pyproject.toml"
    if package_root().parent.name == "src" and project.is_file():
        import tomllib

        declared = tomllib.loads(project.read_text(encoding="utf-8")).get("project", {})
        if declared.get("name") == DISTRIBUTION:
            return tuple(declared.get("dependencies", ()))
    try:
        return tuple(metadata.distribution(DISTRIBUTION).requires or ())
    except metadata.PackageNotFoundError:
        raise NotCopyable(
            f"{package_root()} is not an installed {DISTRIBUTION}, so what it needs is not known; install it with pip"
        ) from None


def _parsed(
    requirements: Iterable[str], extras: frozenset[str] = frozenset({""})
) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """Name, extras, and whether a condition stands behind it. Those of extras that nobody asked for are left out.

    Conditions are not evaluated: pip did that when it installed. What it left out is not there, and what is there and
    not needed does no harm in a copy.
    """
    for requirement in requirements:
        text, _, condition = requirement.partition(";")
        extra = _EXTRA.search(condition)
        if extra is not None and normal(extra[1]) not in extras:
            continue
        found = _REQUIREMENT.match(text)
        if found is not None:
            asked = tuple(normal(part) for part in (found[2] or "").split(",") if part.strip())
            yield normal(found[1]), asked, bool(condition)


def normal(name: str) -> str:
    """Names of distributions and extras are compared in this form (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _files_of(name: str, found: metadata.Distribution) -> Iterator[Part]:
    listed = found.files
    if listed is None:
        raise NotCopyable(
            f"nothing says which files belong to {name} (a package of the system, perhaps): "
            f"install {DISTRIBUTION} into an environment of its own with pip, and lay the copy from there"
        )
    some = False
    for file in listed:
        if ".." in file.parts or file.is_absolute() or file.suffix in (".pyc", ".pth") or file.name in _NOT_COPIED:
            continue  # scripts and data outside the folder, bytecode, and notes of the installer
        source = Path(os.fspath(file.locate()))
        if source.is_file():
            some = some or not file.parts[0].endswith(".dist-info")
            yield Part(file.as_posix(), source)
    if not some:
        raise NotCopyable(
            f"{name} is installed as a link to a checkout: install it as a package (`pip install --force-reinstall {name}`)"
        )


def _modules(parts: Iterable[Part]) -> Iterator[str]:
    for part in parts:
        first, slash, _ = part.name.partition("/")
        module = first if slash else first.partition(".")[0] if first.endswith((".py", ".so", ".pyd")) else ""
        if module.isidentifier() and part.name.endswith((".py", ".so", ".pyd")):
            yield module
