"""What a server would run or reach, resolved: the plan that a person is shown, and that trust is bound to."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from interlock.manifest.config import (
    EnvValue,
    HeaderValue,
    HttpTransport,
    Replay,
    ServerConfig,
    StdioTransport,
    TokenSource,
)
from interlock.manifest.places import repository_root


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One server's launch. Everything but `uncovered` goes into the hash; no field holds a secret's value."""

    key: str
    integration_id: str
    transport: str
    """stdio, http or sse."""
    command: tuple[str, ...] = ()
    """The first is the program's absolute path where it was found."""
    directory: str | None = None
    env: tuple[str, ...] = ()
    """`NAME` (copied), `NAME from OTHER`, `NAME from file PATH` or `NAME=literal`, sorted."""
    url: str | None = None
    """The URL, or `$NAME` where a variable holds it; its value is the person's own and no part of the plan."""
    headers: tuple[str, ...] = ()
    """`Name: literal`, `Name: prefix$VARIABLE` or `Name from file PATH`, sorted."""
    login: tuple[str, ...] = ()
    """How it logs in, in a fixed order: `oauth`, then each setting; or where the token is read."""
    session: tuple[str, ...] = ()
    """Headers that open a session, as `headers`; then `repeats TOOL(NAME, ...)`: what is called again unasked."""
    unasked: tuple[str, ...] = ()
    """What the manifest lets run without asking. Loosening it later is a change that is asked again."""
    uncovered: tuple[str, ...] = ()
    """Files of the same repository that are run, whose content the hash does not cover."""


def search_folders(env: Sequence[EnvValue], environ: Mapping[str, str]) -> list[str]:
    """The folders of the PATH that the process itself will have: the manifest may set one."""
    search = environ.get("PATH") or environ.get("Path") or os.defpath
    for value in env:
        if value.name.upper() == "PATH":
            search = value.literal if value.literal is not None else environ.get(value.source or "", search)
    return search.split(os.pathsep)


def resolve(command: Sequence[str], cwd: Path, folders: Sequence[str]) -> str | None:
    """Absolute path of the program, or None where there is none.

    A name with a separator is relative to `cwd`; any other is looked for in `folders`, never in the working directory
    unless PATH says so. Symbolic links are kept: virtual environments and multi-call programs depend on their own name.
    """
    if not command or not command[0]:
        return None
    program = os.path.expanduser(command[0])
    places = [cwd] if os.path.dirname(program) else [cwd / folder for folder in folders if folder]
    for place in places:
        for ending in _endings(program):
            path = os.path.normpath(place / f"{program}{ending}")
            try:
                if os.path.isfile(path) and os.access(path, os.X_OK):
                    return path
            except (OSError, ValueError):
                return None
    return None


def _endings(program: str) -> Sequence[str]:
    """On Windows a name without such an ending gets one: there `npx` is a shell script and `npx.cmd` the program."""
    if sys.platform != "win32":
        return ("",)
    endings = os.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";")
    return ("",) if program.lower().endswith(tuple(ending.lower() for ending in endings)) else endings


def launch_plan(config: ServerConfig, environ: Mapping[str, str]) -> LaunchPlan:
    """The plan of one server. Reads the file system to resolve the program, starts nothing."""
    transport = config.transport
    if isinstance(transport, StdioTransport):
        program = resolve(transport.command, transport.cwd, search_folders(transport.env, environ))
        command = (program, *transport.command[1:]) if program is not None else transport.command
        env = sorted(
            f"{value.name}={value.literal}" if value.literal is not None
            else f"{value.name} from file {value.file}" if value.file is not None
            else value.name if value.source == value.name
            else f"{value.name} from {value.source}"
            for value in transport.env
        )  # fmt: skip
        return LaunchPlan(
            key=config.key,
            integration_id=config.integration_id,
            transport="stdio",
            command=command,
            directory=str(transport.cwd),
            env=tuple(env),
            unasked=tuple(_unasked(config)),
            uncovered=tuple(_uncovered(command, transport.cwd, config.origin.file)),
        )
    return LaunchPlan(
        key=config.key,
        integration_id=config.integration_id,
        transport=transport.kind,
        url=transport.endpoint if transport.endpoint is not None else f"${transport.endpoint_env}",
        headers=tuple(sorted(_header_lines(transport.headers))),
        login=tuple(_login_lines(transport)),
        session=(*sorted(_header_lines(transport.session_headers)), *map(_replay_line, transport.replay)),
        unasked=tuple(_unasked(config)),
    )


def plan_hash(plans: Iterable[LaunchPlan]) -> str:
    """`sha256:...` over the plans of one file, whatever their order."""
    content = json.dumps(sorted(_hashed(plan) for plan in plans), separators=(",", ":"))
    return f"sha256:{hashlib.sha256(b'interlock trust 1' + content.encode()).hexdigest()}"


def _hashed(plan: LaunchPlan) -> list[object]:
    """A list and not joined text, so that no two different plans can be written the same."""
    return [
        plan.key,
        plan.integration_id,
        plan.transport,
        list(plan.command),
        plan.directory or "",
        list(plan.env),
        plan.url or "",
        list(plan.headers),
        list(plan.unasked),
        # At the end and only where there is any, so that what was trusted before these fields existed stays trusted.
        *([list(plan.login), list(plan.session)] if plan.login or plan.session else []),
    ]


def _header_lines(headers: Iterable[HeaderValue]) -> Iterator[str]:
    for header in headers:
        if header.file is not None:
            # No colon after the name: no literal can be written like this.
            yield f"{header.name} from file {header.file}" + (f" after {header.prefix!r}" if header.prefix else "")
            continue
        yield f"{header.name}: {header.literal if header.literal is not None else f'{header.prefix}${header.source}'}"


def _login_lines(transport: HttpTransport) -> Iterator[str]:
    """What decides which grant or token the server gets to see."""
    oauth, token = transport.oauth, transport.token
    if token is not None:
        yield f"token from {' or '.join(_sources(token))}"
    if oauth is None:
        return
    yield f"oauth, {oauth.flow}"
    if oauth.scopes:
        yield f"scopes: {' '.join(oauth.scopes)}"
    named = {
        "resource": oauth.resource,
        "client id": oauth.client_id,
        "client id from": oauth.client_id_env and f"${oauth.client_id_env}",
        "client secret from": oauth.client_secret_env and f"${oauth.client_secret_env}",
        "client metadata": oauth.client_metadata_url,
        "issuer": oauth.issuer,
        "callback port": oauth.callback_port and str(oauth.callback_port),
        "without PKCE": "allowed" if oauth.allow_missing_pkce else None,
    }
    for name, value in named.items():
        if value:
            yield f"{name}: {value}"


def _sources(token: TokenSource) -> Iterator[str]:
    if token.env is not None:
        yield f"${token.env}"
    if token.file is not None:
        yield str(token.file)


def _replay_line(replay: Replay) -> str:
    return f"repeats {replay.tool}({', '.join(replay.remember) or 'all arguments'})"


def _unasked(config: ServerConfig) -> Iterator[str]:
    """In a fixed order. `writes` and `host` ask for less than everything, so they count as well."""
    default, writes = config.policy.default_approval, config.policy.writes_approval
    if default in ("auto", "writes", "host"):
        yield f"policy.defaultApproval: {default}"
        if writes is not None:
            yield f"policy.writesApproval: {writes}"
        # Which tools exist then decides what runs unasked. Rules of other files are no part of this one's plan.
        if config.allow is not None:
            yield f"capability.tools.allow: [{', '.join(rule.glob for rule in config.allow)}]"
        own = [rule.glob for rule in config.deny if rule.origin.file == config.origin.file]
        if own:
            yield f"capability.tools.deny: [{', '.join(own)}]"
    for name, rule in sorted(config.tools.items()):
        if rule.approval in ("auto", "writes", "host"):
            yield f"tools.{name}.approval: {rule.approval}"
        if rule.read:
            yield f"tools.{name}.read: true"


def _uncovered(command: Sequence[str], cwd: Path, manifest: Path) -> Iterator[str]:
    root = repository_root(manifest.parent) or manifest.parent
    seen: set[Path] = set()
    for index, word in enumerate(command):
        module = index > 0 and command[index - 1] == "-m"
        for path in _candidates(word, cwd, module):
            try:
                inside = path.is_file() and path.is_relative_to(root)
            except (OSError, ValueError):
                continue
            if inside and path not in seen:
                seen.add(path)
                yield str(path)


def _candidates(word: str, cwd: Path, module: bool) -> Iterator[Path]:
    for text in (word, word.partition("=")[2]):
        if text and len(text) < 1024 and "\n" not in text and "\0" not in text:
            yield Path(os.path.normpath(cwd / text))
    if module:
        parts = word.split(".")
        yield cwd.joinpath(*parts, "__main__.py")
        yield cwd.joinpath(*parts[:-1], f"{parts[-1]}.py")
