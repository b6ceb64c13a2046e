"""The home copy that hosts' entries start: laid where it is missing or older than the Interlock that runs."""

from __future__ import annotations

from pathlib import Path


def lay(home: Path) -> tuple[str | None, str | None]:
    """(what was done, why it cannot be): both None where a fit copy is there already."""
    from interlock import __version__
    from interlock.install import laying, record
    from interlock.install.closure import NotCopyable
    from interlock.install.places import version_of
    from interlock.install.version import newer

    standing = record.standing(home)
    fit = standing.current is not None and standing.trouble is None
    if fit and not newer(__version__, version_of(standing.current or "")):
        return None, None
    try:
        laid = laying.lay_self(home)
    except (laying.LayingFailed, NotCopyable) as error:
        return None, str(error)
    except OSError as error:
        return None, f"{error.filename or home}: {error.strerror or error}"
    return f"Laid {laid.name} in {laid.path}.", None
