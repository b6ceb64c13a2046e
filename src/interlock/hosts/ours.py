"""Whether an entry of a host's file starts Interlock itself: what was adopted already is not adopted again."""

from __future__ import annotations

from typing import Literal

from interlock.hosts.entry import Entry

_PROGRAMS = frozenset(("interlock", "interlock.cmd", "interlock.exe"))
Ours = Literal["connect", "bridge"]


def ours(entry: Entry) -> Ours | None:
    """`interlock connect` or `interlock bridge`, by whatever path, through `cmd /c`, a runner, or `python -m interlock`."""
    words = entry.command
    for index, word in enumerate(words[:-1]):
        if not _program(word) and not (word.lower() == "interlock" and words[index - 1 : index] == ("-m",)):
            continue
        following = words[index + 1]
        if following == "connect":
            return "connect"
        if following == "bridge":
            return "bridge"
    return None


def plain(entry: Entry) -> bool:
    """`interlock connect` with nothing that makes it lead elsewhere than Interlock's usual entry."""
    words = entry.command
    if ours(entry) != "connect" or entry.env or entry.cwd is not None:
        return False
    rest = words[words.index("connect") + 1 :]
    return not rest or (len(rest) == 2 and rest[0] == "--host")


def _program(word: str) -> bool:
    return word.replace("\\", "/").rpartition("/")[2].lower() in _PROGRAMS
