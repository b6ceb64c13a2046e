"""Characters that a model reads and a person does not see: tags, zero-width letters, changes of writing direction."""

from __future__ import annotations

import re

from interlock.hosts.declaration import Spot

_HIDDEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufff9-\ufffb"
    "\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINED = re.compile("(?<=[^\x00-\x7f])[\u200d\u200c](?=[^\x00-\x7f])|(?<=\U0001f3f4)[\U000e0020-\U000e007f]+")
"""A joiner between letters of another script or parts of an emoji, and the tags behind a black flag, belong there."""
MOST = 100


def invisible(text: str, path: str) -> list[Spot]:
    """Where they stand, at most MOST of them. A byte order mark at the very beginning is none."""
    spots: list[Spot] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if line.isascii():
            continue
        fine = {at for found in _JOINED.finditer(line) for at in range(*found.span())}
        for found in _HIDDEN.finditer(line):
            if found.start() not in fine:
                spots.append(Spot(path, number, found.start() + 1))
                if len(spots) == MOST:
                    return spots
    return spots
