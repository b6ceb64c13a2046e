"""A command line from somebody's file as it may be shown: short, on one line, without secrets or invisible characters."""

from __future__ import annotations

from interlock.hosts.masking import MASK, masked
from interlock.manifest import secrets

LONGEST = 200


def command(text: str) -> str:
    words = masked(text).split()
    before: str | None = None
    for index, word in enumerate(words):
        bare = word.strip("\"'")
        if MASK not in word and secrets.argument(before, bare):
            name, equals, _ = bare.partition("=")
            words[index] = f"{name}={MASK}" if equals and secrets.secret_name(name) else MASK
        before = bare
    line = "".join(letter if letter.isprintable() else "?" for letter in " ".join(words))
    return line if len(line) <= LONGEST else line[: LONGEST - 3] + "..."
