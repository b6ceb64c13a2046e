"""The environment of a child: a base that is safe to share, and exactly what the manifest names."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from interlock.manifest.config import EnvValue
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream import secret_file

_POSIX_BASE = frozenset(
    {
        "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER",
        # Where to find trusted certificates: without them no server reaches anything behind a company's proxy.
        "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
        # Where programs keep caches and settings (XDG Base Directory Specification): directories, no content.
        "XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
        "XDG_STATE_HOME",
    }
)  # fmt: skip
_WINDOWS_BASE = frozenset(
    {
        "ALLUSERSPROFILE", "APPDATA", "COMMONPROGRAMFILES", "COMMONPROGRAMFILES(X86)", "COMMONPROGRAMW6432", "COMSPEC",
        "HOMEDRIVE", "HOMEPATH", "LANG", "LOCALAPPDATA", "NUMBER_OF_PROCESSORS", "OS", "PATH", "PATHEXT",
        "PROCESSOR_ARCHITECTURE", "PROGRAMDATA", "PROGRAMFILES", "PROGRAMFILES(X86)", "PROGRAMW6432", "PUBLIC",
        "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "TZ", "USERDOMAIN", "USERNAME", "USERPROFILE", "WINDIR",
        "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
    }
)  # fmt: skip
_BASE_PREFIXES = ("LC_",)


def base_environment(environ: Mapping[str, str], *, windows: bool = sys.platform == "win32") -> dict[str, str]:
    """The part of `environ` that every child gets. No variable in it is meant to carry a secret."""
    base: dict[str, str] = {}
    for name, value in environ.items():
        # Names are not case-sensitive on Windows.
        known = name.upper() in _WINDOWS_BASE if windows else name in _POSIX_BASE
        # A value that starts with `()` is a function exported by an old bash: code, not a setting.
        if (known or name.startswith(_BASE_PREFIXES)) and not value.startswith("()"):
            base[name] = value
    return base


def child_environment(
    wanted: Sequence[EnvValue],
    environ: Mapping[str, str],
    *,
    server: str | None = None,
    windows: bool = sys.platform == "win32",
) -> dict[str, str]:
    """The whole environment of a child: the base, overlaid with what the manifest names.

    `environ` is Interlock's own. Raises Fault `env-missing` that names every variable that is not set there.
    """
    child = base_environment(environ, windows=windows)
    missing: list[str] = []
    for entry in wanted:
        value = _value(entry, environ, windows, server)
        if value is None:
            missing.append(entry.source or entry.name)
            continue
        if "\0" in value or "=" in entry.name or not entry.name:
            raise Fault(
                "spawn-failed",
                f"The environment variable {entry.name!r} cannot be given to a process: it holds a NUL character or "
                "its name is not valid. The server was not started.",
                stage=Stage.DISCOVER,
                verdict=Verdict.NEVER_REACHED,
                server=server,
            )
        if windows:
            for name in [name for name in child if name.upper() == entry.name.upper()]:
                del child[name]
        child[entry.name] = value
    if missing:
        raise _missing(sorted(set(missing)), server)
    return child


def _value(entry: EnvValue, environ: Mapping[str, str], windows: bool, server: str | None) -> str | None:
    """None where the variable that it is copied from is not set. Raises Fault where its file cannot be used."""
    if entry.file is not None:
        try:
            return secret_file.value(entry.file)
        except secret_file.Unreadable as error:
            raise Fault(
                "env-missing",
                f"{f'Server {server!r}' if server else 'The server'} was not started: {entry.name} is to be read from the file "
                f"{entry.file}: {error.why}.",
                stage=Stage.DISCOVER,
                verdict=Verdict.NEVER_REACHED,
                server=server,
            ) from None
    return entry.literal if entry.literal is not None else _look_up(environ, entry.source or entry.name, windows)


def _look_up(environ: Mapping[str, str], name: str, windows: bool) -> str | None:
    if not windows or name in environ:
        return environ.get(name)
    return next((value for key, value in environ.items() if key.upper() == name.upper()), None)


def _missing(names: list[str], server: str | None) -> Fault:
    listed = ", ".join(names)
    what = f"the environment variable {listed}" if len(names) == 1 else f"the environment variables {listed}"
    which = f"Server {server!r}" if server else "The server"
    return Fault(
        "env-missing",
        f"{which} was not started: its manifest entry needs {what}, not set where Interlock runs. "
        "Set it in the environment of Interlock (or of the AI host that starts Interlock) and try again.",
        stage=Stage.DISCOVER,
        verdict=Verdict.NEVER_REACHED,
        server=server,
    )


def search_path(environment: Mapping[str, str], *, windows: bool = sys.platform == "win32") -> list[str]:
    """The directories that a command is looked up in, in order."""
    value = _look_up(environment, "PATH", windows)
    return [entry for entry in (os.defpath if value is None else value).split(";" if windows else ":") if entry]
