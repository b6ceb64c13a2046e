"""Text of others made safe for a terminal.

What is not visible is shown as an escape, so that it cannot move the cursor, colour, reorder or hide what is around it.
"""

from __future__ import annotations


def printable(text: str) -> str:
    """The text on one line, with control, format and unassigned characters written as `\\xNN` or `\\uNNNN`."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(ord(char)) for char in text)


def _escaped(code: int) -> str:
    if code < 0x100:
        return {9: "\\t", 10: "\\n", 13: "\\r"}.get(code, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
