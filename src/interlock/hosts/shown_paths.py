"""Paths inside of sentences, as people write them: `~` for the home, and from the working directory where they are below it."""

from __future__ import annotations

import re

from interlock.hosts.machine import Machine

_BEFORE = r"(?<![\w.~/\\-])"


def shortened(text: str, machine: Machine) -> str:
    """For what is printed here and now."""
    folder = machine.folder.rstrip("/\\")
    if folder and folder != machine.home:
        text = re.sub(rf"{_BEFORE}{re.escape(folder)}[/\\](?=[^\s/\\])", "", text)
    return with_tilde(text, machine)


def with_tilde(text: str, machine: Machine) -> str:
    """For what is kept, and read from another directory."""
    home = machine.home.rstrip("/\\")
    return re.sub(rf"{_BEFORE}{re.escape(home)}(?=[/\\]|\.?(?:[^\w.-]|\Z))", "~", text) if home else text
