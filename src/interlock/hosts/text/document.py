"""A host's file as it was read: its value, where every member stands, and which liberties it takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Step = str | int
At = tuple[int, int]
"""Line and column, from 1; the column counts characters."""


class Damaged(Exception):
    """The file cannot be read. The text says why, for people, without the place and without anything that stands there."""

    def __init__(self, why: str, at: At | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.at = at


@dataclass(frozen=True, slots=True)
class Document:
    """`spots` has the place of each member's key (or of a list's item) by its path from the top."""

    value: object
    spots: Mapping[tuple[Step, ...], At]
    bom: bool = False
    comment: At | None = None
    """The first comment (JSON only: in TOML and YAML they are no liberty)."""
    trailing_comma: At | None = None
    duplicates: tuple[tuple[tuple[Step, ...], At], ...] = field(default=())
    """Keys that stand twice in one object: the path, and the later place. The value is the later one's."""
    scan: Callable[[tuple[Step, ...]], Mapping[tuple[Step, ...], At]] | None = field(default=None, compare=False)
    """Finds the places below one path without those of the whole file, which may be very large."""

    def at(self, *path: Step) -> At | None:
        return self.spots.get(path)

    def below(self, *path: Step) -> Mapping[tuple[Step, ...], At]:
        """The places of everything below `path`, by the path from there."""
        if self.scan is not None:
            return self.scan(path)
        depth = len(path)
        return {at[depth:]: spot for at, spot in self.spots.items() if len(at) > depth and at[:depth] == path}
