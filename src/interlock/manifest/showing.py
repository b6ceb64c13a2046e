"""What of a manifest's own text may stand in a message: short, printable, and nothing that may be a secret."""

from __future__ import annotations

from interlock.manifest import secrets

HIDDEN = "(not shown)"


def showable(text: str) -> bool:
    return (
        len(text) <= 80 and text.isprintable() and secrets.known_format(text) is None and not secrets.looks_random(text)
    )


def shown(text: str) -> str:
    """A name or word between backquotes, or words that stand for it."""
    return f"`{text}`" if showable(text) else HIDDEN


def joined(path: str, name: str) -> str:
    """The dotted path of a field in a table."""
    safe = name if showable(name) else HIDDEN
    return f"{path}.{safe}" if path else safe
