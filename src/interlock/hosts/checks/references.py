"""References to variables in a text, in whichever host's spelling they are written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from interlock.hosts.adapter import Form

_FORMS: tuple[tuple[Form, str], ...] = (
    ("${{ secrets.V }}", r"\$\{\{\s*secrets\.(?P<n0>[A-Za-z0-9_.-]+)\s*\}\}"),
    ("${env:V}", r"\$\{env:(?P<n1>[^}:]+)[^}]*\}"),
    ("${input:V}", r"\$\{input:(?P<n2>[^}]+)\}"),
    ("${file:V}", r"\$\{file:(?P<n3>[^}]+)\}"),
    ("${V:-d}", r"\$\{(?P<n4>[A-Za-z_][A-Za-z0-9_]*):-[^}]*\}"),
    ("${V}", r"\$\{(?P<n5>[A-Za-z_][A-Za-z0-9_.]*)\}"),
    ("$env:V", r"\$env:(?P<n6>[A-Za-z_][A-Za-z0-9_]*)"),
    ("{env:V}", r"(?<!\$)\{env:(?P<n7>[^}]+)\}"),
    ("{file:V}", r"(?<!\$)\{file:(?P<n8>[^}]+)\}"),
    # Names in capitals of some length only: `100%25%20`, `^a$b` and `$1` are no references.
    ("%V%", r"%(?P<n9>[A-Z_][A-Z0-9_]{3,}(?:\(x86\))?)%"),
    ("$V", r"(?<![\\$])\$(?P<n10>[A-Z_][A-Z0-9_]{2,})(?![A-Za-z0-9_])"),
)
_ANY = re.compile("|".join(pattern for _, pattern in _FORMS))

INPUT: tuple[Form, ...] = ("${input:V}", "${file:V}", "{file:V}", "${{ secrets.V }}")
"""Filled in from elsewhere than the environment."""
PREDEFINED = frozenset(
    (
        "workspaceFolder", "workspaceFolderBasename", "workspaceRoot", "userHome", "pathSeparator", "extensionPath",
        "workspacePath", "fileWorkspaceFolder", "file", "cwd", "execPath",
    )
)  # fmt: skip
"""Names that editors fill in by themselves; which editor knows which is not told apart."""
PLUGIN = frozenset(("CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "PLUGIN_ROOT", "PLUGIN_DATA", "extensionPath"))
"""Filled in for what a plugin or extension brings."""


@dataclass(frozen=True, slots=True)
class Reference:
    form: Form
    name: str
    text: str
    """As it stands there."""
    start: int
    end: int

    @property
    def default(self) -> bool:
        return self.form == "${V:-d}"


def references(text: str) -> Iterator[Reference]:
    if "$" not in text and "%" not in text and "{" not in text:
        return
    for match in _ANY.finditer(text):
        group = match.lastgroup or "n0"
        yield Reference(_FORMS[int(group[1:])][0], match[group], match[0], match.start(), match.end())


def without(text: str) -> str:
    """The text without its references: what is literal in it."""
    return _ANY.sub("", text)
