"""The flags of `interlock bridge` that `interlock setup` writes into a host's configuration: judged before anything is written."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from interlock.cli.exit_codes import USAGE

if TYPE_CHECKING:
    from interlock.hosts.machine import Machine
    from interlock.install.hosts import Host


class Stop(Exception):
    """Ends the command with an exit code; the text says why."""

    def __init__(self, code: int, text: str, snippet: str | None = None) -> None:
        super().__init__(text)
        self.code = code
        self.snippet = snippet


class Bridge(NamedTuple):
    flags: tuple[str, ...]
    names: tuple[str, ...]
    """Environment variables that must reach it."""


def checked(host: Host, machine: Machine, url: str, flags: Sequence[str]) -> Bridge:
    """The bridge's own judgement of URL and flags, so that a wrong one is refused now and not by the host later."""
    from interlock.cli.bridge_config import BridgeError, gateway_from
    from interlock.cli.main import parser
    from interlock.install.hosts import passes_variables
    from interlock.journal.redact import redact

    if "://" not in url:
        scheme = "http" if re.match(r"(localhost|127\.|\[::1\])", url) else "https"
        meant = redact(f"{scheme}://{url}")
        raise Stop(USAGE, f"the URL needs a scheme; perhaps you meant this:\n  {meant}")
    parsed = parser("bridge").parse_args(["bridge", url, *flags])  # ends the command with usage where it must
    if getattr(parsed, "host", None) is not None:
        raise Stop(USAGE, "--host is set from HOST; leave it out")
    wanted = _variables(parsed)
    try:
        gateway_from(parsed, os.environ)
    except BridgeError as error:
        raise Stop(USAGE, str(error)) from None
    _refuse_secrets(flags)
    if redact(url) != url:
        raise Stop(USAGE, "the URL holds what looks like a secret, and would stand in the host's configuration. "
                    "Use --token-env, --token-file or --header-env.")  # fmt: skip
    token_file: Path | None = parsed.token_file
    passed = list(flags)
    if token_file is not None:
        # The host starts the bridge in a folder of its own choice.
        passed = _without(passed, "--token-file")
        passed += ["--token-file", str(token_file.expanduser().absolute())]
    if wanted and not passes_variables(host, machine):
        raise Stop(USAGE, f"{host.label} is not known to pass {', '.join(wanted)} on to a program that it starts. "
                    "Use --token-file FILE (mode 0600).")  # fmt: skip
    return Bridge(tuple(passed), wanted)


_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _variables(parsed: argparse.Namespace) -> tuple[str, ...]:
    """Names of the variables that must reach the bridge. What is no name may be the secret itself: it is not repeated."""
    from interlock.journal.redact import redact

    pairs = [("--header-env", parsed.header_env), ("--session-header-env", parsed.session_header_env)]
    named = [("--token-env", parsed.token_env), ("--client-secret-env", parsed.client_secret_env)]
    named += [(flag, pair.partition("=")[2]) for flag, given in pairs for pair in given or () if "=" in pair]
    for flag, name in named:
        if name is not None and (not _VARIABLE.match(name) or redact(name) != name):
            raise Stop(USAGE, f"{flag} takes the name of an environment variable, and what stands there is none. Put the "
                        f"secret into a variable, and write the variable's name.")  # fmt: skip
    return tuple(dict.fromkeys(name for _, name in named if name))


def _refuse_secrets(flags: Sequence[str]) -> None:
    """They would stand in the host's configuration, where every program of the user can read them."""
    from interlock.manifest.secrets import known_format

    for place, flag in enumerate(flags):
        kind = known_format(flag)
        if kind is not None:
            behind = next((one for one in reversed(flags[:place]) if one.startswith("--")), "a flag")
            name = flag.partition("=")[0] if flag.startswith("--") else behind
            raise Stop(
                USAGE, f"{name}: refused because it looks like {kind}, and would stand in the host's configuration."
            )


def _without(flags: Sequence[str], name: str) -> list[str]:
    """The flags without this one and its value."""
    kept: list[str] = []
    skip = False
    for flag in flags:
        if skip:
            skip = False
        elif flag == name:
            skip = True
        elif not flag.startswith(name + "="):
            kept.append(flag)
    return kept
