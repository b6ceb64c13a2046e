"""The sentence that says this Interlock is behind, for the next tool answer and for `interlock doctor`."""

from __future__ import annotations

import os
from collections.abc import Mapping

from interlock import __version__
from interlock.install import look, origin
from interlock.install.places import Places, off, read_current, version_of
from interlock.install.settings import read as read_settings
from interlock.install.version import newer


def notice(home: str | os.PathLike[str], environ: Mapping[str, str] | None = None) -> str | None:
    """None where nothing newer is known, or a person does not want to hear of it. Reads three small files; never raises.

    A home copy that is newer than this process is named first: nothing has to be fetched for it, only restarted. What an
    index holds is news only to an Interlock that came from one.
    """
    if off(os.environ if environ is None else environ) is not None:
        return None
    settings = read_settings(home)
    current = read_current(Places(home))
    if current is not None and newer(version_of(current.name), __version__):
        return f"Interlock {__version__} is behind: {version_of(current.name)} is laid; restart this host to run it"
    seen = look.read(home).newest if settings.updates is True and origin.here().from_index() else None
    if seen is None or seen == settings.held or not newer(seen, __version__):
        return None
    return f"Interlock {__version__} is behind: {seen} is out; `interlock update`"
