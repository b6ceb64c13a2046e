"""What every command shares: the flags that say which manifests and which home, and what follows from them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.manifest.loading import Loaded

OK = 0
USAGE = 2
CONFIGURATION = 8

_HASH = re.compile(r"sha256:[0-9a-f]{64}\Z")


def add_common(parser: argparse.ArgumentParser) -> None:
    """The flags that every command takes."""
    group = parser.add_argument_group("common options")
    group.add_argument(
        "--manifest",
        action="append",
        type=Path,
        default=None,
        metavar="PATH",
        help="manifest file or folder; may be repeated (default: managed, project and user scope)",
    )
    add_home(group)
    group.add_argument(
        "--trusted-hash",
        action="append",
        type=trusted_hash,
        default=None,
        metavar="HASH",
        help="accept manifests with exactly this hash, as `interlock trust --hash FILE` prints it; may be repeated",
    )
    group.add_argument("--json", action="store_true", help="write JSON for machines")


def add_home(group: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The one flag of commands that read no manifest."""
    group.add_argument(
        "--home",
        type=Path,
        default=None,
        metavar="DIR",
        help="where Interlock keeps its state (default: $INTERLOCK_HOME, else ~/.interlock)",
    )


def trusted_hash(text: str) -> str:
    """An argument of `--trusted-hash`; argparse turns the error into a usage message."""
    if not _HASH.match(text):
        raise argparse.ArgumentTypeError("write sha256: and 64 hexadecimal digits, as `interlock trust --hash` prints")
    return text


def home_from(args: argparse.Namespace, environ: Mapping[str, str] | None = None) -> Path:
    """Absolute path of Interlock's home: `--home`, else INTERLOCK_HOME, else ~/.interlock. It need not exist yet."""
    environ = os.environ if environ is None else environ
    given: Path | None = getattr(args, "home", None)
    if given is None and environ.get("INTERLOCK_HOME"):
        given = Path(environ["INTERLOCK_HOME"])
    return Path(os.path.abspath((given or Path("~/.interlock")).expanduser()))


def load_from(args: argparse.Namespace, *, project_root: Path | None = None) -> Loaded:
    """The manifests that the flags name, or those of the scopes. `project_root` defaults to the working directory."""
    from interlock.manifest.loading import load

    return load(
        manifests=[path.expanduser() for path in getattr(args, "manifest", None) or ()],
        home=home_from(args),
        project_root=project_root or Path.cwd(),
        trusted_hashes=frozenset(getattr(args, "trusted_hash", None) or ()),
    )
