"""The one way in which changing files fails: nothing was changed, or everything was put back."""

from __future__ import annotations

from interlock.hosts.text.document import At


class Refused(Exception):
    """`file` is left as it was. The text is for people, with the place; it holds nothing that stands in the file."""

    def __init__(self, file: str, why: str, at: At | None = None) -> None:
        super().__init__(f"{file}{f':{at[0]}:{at[1]}' if at is not None else ''}: {why}")
        self.file = file
        self.why = why
        self.at = at
