"""What `login`, `logout` and `doctor bridge` work on: servers of the manifests by key, or a URL as `interlock bridge` takes it."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Container, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interlock.manifest.config import HttpTransport, Origin, ServerConfig


class NoTarget(Exception):
    """What is wrong with the name that was given, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Target:
    """One remote server. `name` is its key in a manifest, or the URL."""

    name: str
    url: str
    transport: HttpTransport
    declared: Origin | None = None


def add_flags(parser: argparse.ArgumentParser, what: str) -> None:
    """SERVER or URL, and for a URL the settings that `interlock bridge` takes too."""
    parser.add_argument("server", nargs="?", metavar="SERVER|URL", help=what)
    group = parser.add_argument_group("with a URL, as for `interlock bridge`")
    group.add_argument("--scope", action="append", default=None, metavar="SCOPE", help="ask for this; may be repeated")
    group.add_argument(
        "--resource", default=None, metavar="URI", help="the resource to ask for, in place of the server's"
    )
    group.add_argument("--client-id", default=None, metavar="ID", help="a client that is registered already")
    group.add_argument(
        "--client-secret-env", default=None, metavar="NAME", help="the variable with that client's secret"
    )
    group.add_argument("--issuer", default=None, metavar="URL", help="sign in at this authorization server alone")
    group.add_argument("--client-metadata-url", default=None, metavar="URL", help="a Client ID Metadata Document")
    group.add_argument(
        "--flow", choices=("browser", "device", "client-credentials"), default="browser", help="how to sign in"
    )
    group.add_argument("--callback-port", type=int, default=None, metavar="N", help="the loopback port of the sign-in")
    group.add_argument("--allow-missing-pkce", action="store_true", help="go on without PKCE; not conforming")
    group.add_argument("--token-env", default=None, metavar="NAME", help="a variable with a personal access token")
    group.add_argument("--token-file", default=None, metavar="FILE", help="a file (0600) with such a token")
    group.add_argument("--transport", choices=("http", "sse"), default="http", help="sse: HTTP+SSE of 2024-11-05")


def seconds(text: str) -> float:
    """An argument that is a length of time; argparse turns the error into a usage message."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is no number of seconds; write 30 or 0.5") from None


def command(words: str, name: str) -> str:
    """`interlock WORDS NAME` for a server's key or URL, to be copied into a shell."""
    return f"`interlock {words} {shlex.quote(name)}`"


def is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))


def target_of(args: argparse.Namespace, environ: Mapping[str, str] | None = None) -> Target:
    """The one that was named. A URL that a manifest declares has the manifest's settings, unless flags give others.

    Raises NoTarget.
    """
    from urllib.parse import urlsplit

    from interlock.wire.address import is_loopback

    environ = os.environ if environ is None else environ
    if is_url(args.server):
        declared = None if has_settings(args) else _declared(args, args.server, environ)
        return declared or of_url(args, args.server, environ)
    config = _servers(args).get(args.server)
    if config is None:
        known = ", ".join(sorted(_servers(args))) or "none"
        meant = ""
        if "." in args.server and ("/" in args.server or ":" in args.server) and "://" not in args.server:
            scheme = "http" if is_loopback(urlsplit(f"//{args.server}").hostname or "") else "https"
            meant = f" Did you mean {scheme}://{args.server[:200]} ?"
        raise NoTarget(
            f"there is no server `{args.server[:80]}` (known: {known[:300]}). Write one of them, or a URL.{meant}"
        )
    return of_config(config, environ)


def has_settings(args: argparse.Namespace) -> bool:
    return bool(args.allow_missing_pkce) or any(
        getattr(args, name) is not None
        for name in ("scope", "resource", "client_id", "client_secret_env", "issuer", "client_metadata_url", "callback_port",
                     "token_env", "token_file")
    )  # fmt: skip


def _declared(args: argparse.Namespace, url: str, environ: Mapping[str, str]) -> Target | None:
    """The only server of the manifests with this very URL that may run; an error that names a URL leads here."""
    found = [
        target
        for target in remotes(args, environ, quiet=True)
        if target.url == url and _servers(args, quiet=True)[target.name].blocked is None
    ]
    return found[0] if len(found) == 1 else None


def of_url(args: argparse.Namespace, url: str, environ: Mapping[str, str], *, of_environment: bool = False) -> Target:
    """The settings come from the flags alone, so that a bridge for the same URL finds the same grant. Raises NoTarget.

    `of_environment`: it does not stand in a command line, so a secret may be in it.
    """
    from pathlib import Path

    from interlock.cli.bridge_config import TIMEOUT_SECONDS, BridgeError, add_server_flags, gateway_from
    from interlock.manifest.config import HttpTransport

    defaults = argparse.ArgumentParser()
    add_server_flags(defaults)
    given = defaults.parse_args([])
    for name in ("scope", "resource", "client_id", "client_secret_env", "issuer", "client_metadata_url", "callback_port",
                 "allow_missing_pkce", "token_env", "transport"):  # fmt: skip
        setattr(given, name, getattr(args, name))
    given.token_file = Path(args.token_file) if args.token_file is not None else None
    given.url, given.timeout = None if of_environment else url, TIMEOUT_SECONDS
    given.flow = "device" if getattr(args, "device", False) else args.flow
    try:
        (server,) = gateway_from(given, environ).servers.values()
    except BridgeError as error:
        raise NoTarget(str(error)) from None
    assert isinstance(server.transport, HttpTransport)
    return Target(url, url, server.transport)


def of_config(config: ServerConfig, environ: Mapping[str, str]) -> Target:
    """Raises NoTarget for a server that is not reached by URL, or whose URL is not known here."""
    from interlock.manifest.config import HttpTransport

    transport = config.transport
    if not isinstance(transport, HttpTransport):
        raise NoTarget(
            f"`{config.key}` is a process on this machine ({config.origin}); nobody signs in to it in this way."
        )
    url = transport.endpoint or environ.get(transport.endpoint_env or "", "")
    if not is_url(url):
        raise NoTarget(f"the URL of `{config.key}` stands in ${transport.endpoint_env}, which is not set here.")
    return Target(config.key, url, replace(transport, endpoint=url), config.origin)


def runnable(args: argparse.Namespace, name: str) -> str | None:
    """Why this server of the manifests may not be used at all, or None."""
    config = _servers(args).get(name)
    return None if config is None else config.blocked


def with_oauth(args: argparse.Namespace, environ: Mapping[str, str] | None = None) -> list[Target]:
    """All servers of the manifests that are signed in to with OAuth and may run, and the one that the environment names."""
    environ = os.environ if environ is None else environ
    found = [
        target
        for target in remotes(args, environ)
        if target.transport.oauth is not None and runnable(args, target.name) is None
    ]
    return [*found, *_of_environment(args, environ, {target.url for target in found})]


def blocked(args: argparse.Namespace) -> Mapping[str, str]:
    """Servers of the manifests that have OAuth and may not run, each with the reason."""
    return {
        target.name: reason
        for target in remotes(args, os.environ, quiet=True)
        if target.transport.oauth is not None and (reason := runnable(args, target.name)) is not None
    }


def everything(args: argparse.Namespace, environ: Mapping[str, str]) -> list[Target]:
    """All remote servers of the manifests, and the one that the environment names."""
    found = remotes(args, environ)
    return [*found, *_of_environment(args, environ, {target.url for target in found})]


def _of_environment(args: argparse.Namespace, environ: Mapping[str, str], known: Container[str]) -> list[Target]:
    """What `interlock bridge` serves without a URL."""
    from interlock.cli.bridge_config import URL_VARIABLE

    url = environ.get(URL_VARIABLE, "")
    return [of_url(args, url, environ, of_environment=True)] if is_url(url) and url not in known else []


def remotes(args: argparse.Namespace, environ: Mapping[str, str], *, quiet: bool = False) -> list[Target]:
    """All enabled servers of the manifests that are reached by a URL which is known here."""
    found = []
    for config in _servers(args, quiet=quiet).values():
        if not config.enabled:
            continue
        try:
            found.append(of_config(config, environ))
        except NoTarget:
            continue
    return found


def _servers(args: argparse.Namespace, *, quiet: bool = False) -> Mapping[str, ServerConfig]:
    """The manifests are read once for a command. `quiet`: what is wrong in them is no matter of the one that was named."""
    loaded: Mapping[str, ServerConfig] | None = getattr(args, "loaded_servers", None)
    if loaded is None:
        from interlock.cli.common import load_from
        from interlock.cli.starting import report_problems

        read = load_from(args)
        if not quiet:
            report_problems(read)
        loaded = args.loaded_servers = read.gateway.servers
    return loaded
