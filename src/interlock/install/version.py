"""Which of two versions is newer: PEP 440 ordering for the versions that Interlock's releases have, and no library for it."""

from __future__ import annotations

Key = tuple[tuple[int, ...], int, int, int, int]
"""Release without trailing zeros; then kind and number of a pre-release, post-release number, development number."""

_PRE = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "rc": 2, "c": 2, "pre": 2, "preview": 2}
_FINAL = 3
_LAST = 1 << 62


def key(text: str) -> Key | None:
    """A value that sorts as the version does (PEP 440, "Summary of permitted suffixes and relative ordering").

    A leading `v` and a local part (`+hash`) are ignored. None for anything else, so that a strange name never counts as
    newer.
    """
    import re  # where nothing has to be compared, a start does not pay for it

    found = re.fullmatch(
        r"v?(\d{1,9}(?:\.\d{1,9}){0,7})(?:[-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?(\d{0,9}))?"
        r"(?:(?:[-_.]?(post|rev|r)[-_.]?|-)(\d{1,9}))?(?:[-_.]?(dev)[-_.]?(\d{0,9}))?(?:\+[a-z0-9._-]{1,64})?",
        text.strip().lower(),
        re.ASCII,
    )
    if found is None:
        return None
    release = [int(part) for part in found[1].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    post = -1 if found[5] is None else int(found[5])
    dev = _LAST if found[6] is None else int(found[7] or 0)
    if found[2] is not None:
        kind, number = _PRE[found[2]], int(found[3] or 0)
    elif found[6] is not None and post < 0:
        kind, number = -1, 0  # 1.0.dev1 comes before 1.0a1
    else:
        kind, number = _FINAL, 0
    return tuple(release), kind, number, post, dev


def newer(one: str, other: str) -> bool:
    """Whether `one` is strictly newer than `other`; False where either cannot be read."""
    a, b = key(one), key(other)
    return a is not None and b is not None and a > b
