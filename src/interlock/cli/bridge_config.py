"""From the flags of `interlock bridge` to the one server of its gateway: the same values that a manifest would give."""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from interlock.manifest.config import Gateway, HeaderValue, OAuth, Replay, TokenSource

URL_VARIABLE = "INTERLOCK_BRIDGE_URL"
TOKEN_VARIABLE = "INTERLOCK_BRIDGE_TOKEN"
TIMEOUT_SECONDS = 120.0


class BridgeError(Exception):
    """What is wrong with the flags, and what to write instead."""


def add_server_flags(parser: argparse.ArgumentParser) -> None:
    """The flags that say which server, and how its requests are authorized."""
    parser.add_argument("url", nargs="?", metavar="URL", help=f"the server's URL (default: ${URL_VARIABLE})")
    parser.add_argument("--name", default=None, help="what errors call the server (default: its host)")
    parser.add_argument(
        "--timeout", type=float, default=TIMEOUT_SECONDS, metavar="S",
        help=f"seconds until a request must be answered (default: {TIMEOUT_SECONDS:g})",
    )  # fmt: skip
    parser.add_argument(
        "--era",
        choices=("auto", "modern", "legacy"),
        default="auto",
        help="which era the server speaks (default: found out)",
    )
    parser.add_argument("--transport", choices=("http", "sse"), default="http", help="sse: HTTP+SSE of 2024-11-05")
    auth = parser.add_argument_group("authorization")
    auth.add_argument("--scope", action="append", default=None, metavar="SCOPE", help="ask for this; may be repeated")
    auth.add_argument(
        "--resource", default=None, metavar="URI", help="the resource to ask for, in place of the server's own"
    )
    auth.add_argument("--client-id", default=None, metavar="ID", help="a client that is registered already")
    auth.add_argument(
        "--client-secret-env", default=None, metavar="NAME", help="the variable with that client's secret"
    )
    auth.add_argument(
        "--issuer", default=None, metavar="URL", help="sign in at this authorization server alone (its issuer)"
    )
    auth.add_argument("--client-metadata-url", default=None, metavar="URL", help="a Client ID Metadata Document")
    auth.add_argument("--callback-port", type=int, default=None, metavar="N", help="the loopback port of the sign-in")
    auth.add_argument(
        "--flow", choices=("browser", "device", "client-credentials"), default="browser", help="how to sign in"
    )
    auth.add_argument("--allow-missing-pkce", action="store_true", help="go on without PKCE; not conforming")
    auth.add_argument("--token-env", default=None, metavar="NAME", help="a variable with a personal access token")
    auth.add_argument("--token-file", type=Path, default=None, metavar="FILE", help="a file (0600) with such a token")
    auth.add_argument("--no-auth", action="store_true", help="never sign in, whatever the server says")
    binding = parser.add_argument_group("headers and session binding")
    binding.add_argument(
        "--header-env",
        action="append",
        default=None,
        metavar="NAME=VARIABLE",
        help="send this header with every request",
    )
    binding.add_argument(
        "--session-header",
        action="append",
        default=None,
        metavar="NAME=VALUE",
        help="send this header when a session opens",
    )
    binding.add_argument(
        "--session-header-env",
        action="append",
        default=None,
        metavar="NAME=VARIABLE",
        help="the same from the environment",
    )
    binding.add_argument(
        "--replay", action="append", default=None, metavar="TOOL[=ARG,...]",
        help="repeat this tool's last call when a session is rebuilt, with these arguments (default: all)",
    )  # fmt: skip


def gateway_from(args: argparse.Namespace, environ: Mapping[str, str]) -> Gateway:
    """Raises BridgeError."""
    _check_flags(args)
    from interlock.manifest.config import Gateway, HttpTransport, Origin, Policy, ServerConfig

    url = address(args, environ)
    token = _token(args, environ)
    transport = HttpTransport(
        kind=args.transport,
        endpoint=url,
        headers=tuple(_from_variables(args.header_env, "--header-env")),
        oauth=None if token is not None or args.no_auth else _oauth(args),
        token=token,
        session_headers=(
            *_literal(args.session_header),
            *_from_variables(args.session_header_env, "--session-header-env"),
        ),
        replay=tuple(_replay(args.replay)),
    )
    if not 0 < args.timeout <= 86_400:
        raise BridgeError("--timeout is a number of seconds between 0 and 86400.")
    key = args.name or urlsplit(url).netloc.rpartition("@")[2]
    if not key or "/" in key or not key.isprintable():
        raise BridgeError("--name must not be empty, and has no `/`.")
    server = ServerConfig(
        key=key,
        integration_id=key,
        scope="named",
        origin=Origin(Path("interlock bridge"), 1),
        transport=transport,
        policy=Policy(default_approval="auto", tool_timeout_seconds=args.timeout),
        names="verbatim",
        era=args.era,
        era_choice="modern",
    )
    digest = hashlib.sha256(repr(server).encode()).hexdigest()
    return Gateway({key: server}, (), digest)


def remarks(args: argparse.Namespace, environ: Mapping[str, str]) -> list[str]:
    """What is no mistake of form and will not work all the same, in sentences for people."""
    named = [args.token_env, args.client_secret_env]
    named += [text.partition("=")[2] for text in (*(args.header_env or ()), *(args.session_header_env or ()))]
    return [f"the environment variable {name} is not set here" for name in named if name and not environ.get(name)]


def _check_flags(args: argparse.Namespace) -> None:
    """Flags that contradict each other, or hold what they may not. Raises BridgeError."""
    for flag, name in (("--token-env", args.token_env), ("--client-secret-env", args.client_secret_env)):
        if name is not None:
            _check_variable(name, flag)
    token = args.token_env or args.token_file
    if token and args.no_auth:
        raise BridgeError("--no-auth and a token contradict each other. Leave one out.")
    if token and (args.client_id or args.scope or args.flow != "browser"):
        raise BridgeError(
            "with a token nobody signs in, so --client-id, --scope and --flow have no use. Leave them out."
        )
    if args.resource is not None:
        parts = urlsplit(args.resource)
        if not parts.scheme or not (parts.netloc or parts.path) or parts.fragment:
            raise BridgeError(
                "--resource is an absolute URI without a fragment (RFC 8707), such as https://mcp.example.com/mcp."
            )
    if args.issuer is not None and not _is_issuer(args.issuer):
        raise BridgeError(
            "--issuer is the https URL of the authorization server, as its metadata writes it, without query and fragment, such as "
            "https://login.example.com."
        )
    if args.client_metadata_url is not None:
        parts = urlsplit(args.client_metadata_url)
        if parts.scheme != "https" or not parts.netloc or parts.path in ("", "/"):
            raise BridgeError("--client-metadata-url is an https URL with a path, where the document is.")


def _is_issuer(text: str) -> bool:
    """RFC 8414 section 2; plain http for this machine alone."""
    from interlock.wire.address import BadAddress, permitted

    try:
        issuer = permitted(text)
    except BadAddress:
        return False
    return not issuer.query and not issuer.fragment


def _check_variable(name: str, flag: str) -> None:
    """A secret in place of a variable's name would stand in process lists and in the host's configuration."""
    from interlock.manifest import secrets

    if secrets.known_format(name) or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,127}", name):
        raise BridgeError(
            f"{flag} takes the NAME of an environment variable (letters, digits, `_`), never the secret itself."
        )


def address(args: argparse.Namespace, environ: Mapping[str, str]) -> str:
    """The server's URL. Raises BridgeError."""
    from interlock.manifest import secrets
    from interlock.wire.address import has_dot_segments

    url: str = args.url or environ.get(URL_VARIABLE, "")
    if not url:
        raise BridgeError(f"no URL. Write `interlock bridge https://mcp.example.com/mcp`, or set {URL_VARIABLE}.")
    try:
        parts = urlsplit(url)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        secret = parts.password is not None
    except ValueError:
        valid = secret = False
    if not valid or any(char.isspace() for char in url):
        meant = f" Did you mean http://{url} ?" if "://" not in url and "." in url else ""
        raise BridgeError(f"the URL must be an http or https URL, such as https://mcp.example.com/mcp.{meant}")
    if args.url and (reason := secrets.url(url)):
        raise BridgeError(
            f"this URL is refused because {reason}; a secret must not stand in a command line. Put the whole URL into "
            f"{URL_VARIABLE}, or send the secret as a header with --header-env."
        )
    if secret:
        raise BridgeError("a password must not stand in a URL, where logs and process lists show it. Use --token-env.")
    if has_dot_segments(parts.path):
        raise BridgeError(
            "the URL has `.` or `..` in its path. Write the path that is meant: a grant is for the address as it is written."
        )
    if parts.fragment:
        raise BridgeError("the URL has a fragment (`#...`), which no server gets. Leave it out.")
    return url


def _oauth(args: argparse.Namespace) -> OAuth:
    from interlock.manifest.config import OAuth

    if args.flow == "client-credentials" and not (args.client_id and args.client_secret_env):
        raise BridgeError("--flow client-credentials needs --client-id and --client-secret-env.")
    if args.callback_port is not None and not 1024 <= args.callback_port <= 65535:
        raise BridgeError("--callback-port is between 1024 and 65535.")
    return OAuth(
        flow=args.flow,
        scopes=tuple(dict.fromkeys(word for text in args.scope or () for word in text.split())),
        resource=args.resource,
        client_id=args.client_id,
        client_secret_env=args.client_secret_env,
        client_metadata_url=args.client_metadata_url,
        issuer=args.issuer,
        callback_port=args.callback_port,
        allow_missing_pkce=args.allow_missing_pkce,
    )


def _token(args: argparse.Namespace, environ: Mapping[str, str]) -> TokenSource | None:
    """The environment wins over a file, and a flag over the standing variable."""
    from interlock.manifest.config import TokenSource

    name = args.token_env or (TOKEN_VARIABLE if environ.get(TOKEN_VARIABLE) and args.token_file is None else None)
    if name is None and args.token_file is None:
        return None
    file: Path | None = args.token_file
    return TokenSource(name, file.expanduser().absolute() if file is not None else None)


def _from_variables(given: Sequence[str] | None, flag: str) -> list[HeaderValue]:
    from interlock.manifest.config import HeaderValue

    pairs = [_pair(text, flag, "VARIABLE") for text in given or ()]
    for _, variable in pairs:
        _check_variable(variable, flag)
    return [HeaderValue(name, source=variable) for name, variable in pairs]


def _literal(given: Sequence[str] | None) -> list[HeaderValue]:
    from interlock.manifest import secrets
    from interlock.manifest.config import HeaderValue

    pairs = [_pair(text, "--session-header", "VALUE") for text in given or ()]
    for name, value in pairs:
        if reason := secrets.named_literal(name, value):
            raise BridgeError(
                f"--session-header {name}: refused because {reason}; a secret must not stand in a command line. "
                "Use --session-header-env."
            )
    return [HeaderValue(name, literal=value) for name, value in pairs]


def _pair(text: str, flag: str, what: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or not value or not all(char.isalnum() or char in "-_.~!#$%&'*+^`|" for char in name):
        raise BridgeError(f"{flag}: write NAME={what}.")
    return name, value


def _replay(given: Sequence[str] | None) -> list[Replay]:
    from interlock.manifest.config import Replay

    made = []
    for text in given or ():
        tool, _, arguments = text.partition("=")
        if not tool:
            raise BridgeError("--replay: write TOOL or TOOL=ARGUMENT,ARGUMENT.")
        made.append(Replay(tool, tuple(name for name in arguments.split(",") if name)))
    return made
