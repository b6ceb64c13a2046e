"""Variables in the spellings of all hosts, read out of a text: which one, and what stands around it."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from interlock.hosts.adapter import Form

Kind = Literal["env", "input", "file"]
"""`input`: the host asks the person for it (VS Code). `file`: the content of a file."""

_BRACED = r"""
    \$\{\{\s*(?:secrets|inputs)\.(?P<secret>[A-Za-z_][\w-]*)\s*\}\}
  | \$\{(?P<kind>env|input|file):(?P<kind_name>[^}:]+)(?::-(?P<kind_default>[^}]*))?\}
  | \{(?P<curly>env|file):(?P<curly_name>[^}]+)\}
  | \$\{(?P<name>[A-Za-z_][\w.]*|/)(?::-(?P<default>[^}]*))?\}
"""
_BARE = r"| \$env:(?P<shell>[A-Za-z_]\w*) | \$(?P<bare>[A-Za-z_]\w*)"
_PERCENT = r"| %(?P<percent>[A-Za-z_]\w*)%"
_PLAIN = re.compile(_BRACED, re.VERBOSE)
_WITH_BARE = re.compile(_BRACED + _BARE, re.VERBOSE)
_WITH_ALL = re.compile(_BRACED + _BARE + _PERCENT, re.VERBOSE)
_WHOLE_BARE = re.compile(r"(?:\$env:|\$)[A-Z_][A-Z0-9_]+\Z")
"""All of a text (or of what follows the scheme in a header): then it is meant as a variable whatever the host does."""


@dataclass(frozen=True, slots=True)
class Reference:
    kind: Kind
    name: str
    default: str | None
    start: int
    end: int


def found(text: str, forms: Collection[Form] = ()) -> list[Reference]:
    """The references in a text. `$NAME` and `%NAME%` count only where the host fills them in: they are ordinary text elsewhere.

    Those in braces count always: nobody means them literally.
    """
    pattern = _WITH_ALL if "%V%" in forms else _WITH_BARE if {"$V", "$env:V"} & set(forms) else _PLAIN
    if _WHOLE_BARE.fullmatch(text.rpartition(" ")[2]):
        pattern = _WITH_ALL if pattern is _WITH_ALL else _WITH_BARE
    return [_reference(match) for match in pattern.finditer(text)]


def _reference(match: re.Match[str]) -> Reference:
    part = match.groupdict()
    kind: Kind = "env"
    for field in ("kind", "curly"):
        if part.get(field) in ("input", "file"):
            kind = "input" if part[field] == "input" else "file"
    names = ("secret", "kind_name", "curly_name", "name", "shell", "bare", "percent")
    name = next(part[each] for each in names if part.get(each))
    default = part.get("default") if part.get("default") is not None else part.get("kind_default")
    return Reference(kind, name.strip(), default, match.start(), match.end())


def normal(text: str, forms: Collection[Form] = ()) -> str:
    """The same text with every reference in one spelling, to compare."""
    made, done = "", 0
    for each in found(text, forms):
        made += f"{text[done : each.start]}${{{each.name}}}"
        done = each.end
    return made + text[done:]
