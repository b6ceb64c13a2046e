"""`settings.json` in Interlock's home: what a person decided once, for the whole machine."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

from interlock.install.places import Places, private_folder, write_whole

_MAX_BYTES = 64 * 1024


class Settings(NamedTuple):
    updates: bool | None = None
    """Whether newer releases may be looked for; None where nobody was asked, which counts as no."""
    held: str | None = None
    """The version that a person went back from: not laid by itself, and not announced."""


def read(home: str | os.PathLike[str]) -> Settings:
    """Never raises: an unreadable file decides nothing."""
    values = _values(Places(home))
    updates, held = values.get("updates"), values.get("held")
    return Settings(updates if isinstance(updates, bool) else None, held if isinstance(held, str) else None)


def keep(home: str | os.PathLike[str], settings: Settings) -> None:
    """Write these, and leave what else is in the file. Raises OSError."""
    places = Places(home)
    values = _values(places)
    values.update(updates=settings.updates, held=settings.held)
    private_folder(places.home)
    kept = {name: value for name, value in values.items() if value is not None}
    write_whole(places.settings, (json.dumps(kept, indent=2) + "\n").encode())


def _values(places: Places) -> dict[str, object]:
    try:
        with open(places.settings, "rb") as file:
            values = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}
