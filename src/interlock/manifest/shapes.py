"""The kinds of field that a manifest has; a table of these (fields.py) drives reading, JSON Schema and docs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Status = Literal["enforced", "information", "not enforced", "refused"]
"""What this release does with a field: act on it, show it, accept it without acting, or not start a server with it."""

ONE_LINE = r"^[^\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*$"
"""No control characters and none that change how a terminal or an editor shows the rest."""
SEVERAL_LINES = r"^[^\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufeff]*$"


@dataclass(frozen=True, slots=True, kw_only=True)
class TextField:
    """`pattern` is a regular expression that Python and ECMA-262 read alike; `rule` says in words what it asks."""

    about: str
    example: str
    status: Status = "enforced"
    pattern: str = ONE_LINE
    rule: str = "without control or invisible characters"
    choices: tuple[str, ...] = ()
    least: int = 1
    most: int = 1024
    default: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberField:
    about: str
    example: str
    least: float
    most: float
    whole: bool = False
    status: Status = "enforced"
    default: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagField:
    about: str
    example: str
    status: Status = "enforced"
    default: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralField:
    """A text, number or boolean that is used as the text that stands in the file."""

    about: str
    example: str
    status: Status = "enforced"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListField:
    about: str
    example: str
    item: TextField | RecordField
    least: int = 0
    most: int = 1000
    status: Status = "enforced"


@dataclass(frozen=True, slots=True, kw_only=True)
class MapField:
    """A table with names of the author's choosing; `key` says which are allowed."""

    about: str
    example: str
    key: TextField
    value: EitherField | RecordField
    status: Status = "enforced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Implies:
    """Where `field` has one of `values` (none named: whatever it has), one of `needs` must be there too."""

    field: str
    needs: tuple[str, ...]
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Only:
    """`field` is possible only where the field `other` of the same table has the value `value`."""

    field: str
    other: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordField:
    """A table with known fields. `only_one`: exactly one of these; `some`: at least one; `at_most_one`: one or none.

    `secret`: the table says where a secret is read, so a text in its place is taken for the secret itself.
    """

    about: str
    example: str
    fields: Mapping[str, Field]
    required: tuple[str, ...] = ()
    only_one: tuple[str, ...] = ()
    some: tuple[str, ...] = ()
    at_most_one: tuple[str, ...] = ()
    implies: tuple[Implies, ...] = ()
    only: tuple[Only, ...] = ()
    secret: bool = False
    status: Status = "enforced"


@dataclass(frozen=True, slots=True, kw_only=True)
class EitherField:
    """A plain literal, or a table."""

    about: str
    example: str
    literal: LiteralField
    table: RecordField
    status: Status = "enforced"


Field = TextField | NumberField | FlagField | LiteralField | ListField | MapField | RecordField | EitherField
