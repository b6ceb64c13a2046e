"""The transports of one entry: the one for this platform, its paths, and the secrets that may not stand there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from interlock.manifest import logical, secrets
from interlock.manifest.config import HttpTransport, Scope, StdioTransport, Transport
from interlock.manifest.launch import resolve, search_folders
from interlock.manifest.login import login_of
from interlock.manifest.problems import Report
from interlock.manifest.showing import shown
from interlock.manifest.values import NO_LITERAL, env_values, header_values
from interlock.manifest.view import View
from interlock.wire.address import has_dot_segments

_LOOPBACK = frozenset(("localhost", "127.0.0.1", "::1"))


@dataclass(frozen=True, slots=True)
class Context:
    """What reading an entry needs to know besides its text."""

    file: Path
    scope: Scope
    platform: str
    """windows, linux or macos."""
    environ: Mapping[str, str]


def transport_of(transports: View, context: Context, report: Report) -> tuple[Transport | None, list[str]]:
    """Every declared transport is checked; the preferred one that this platform can use is chosen."""
    built: dict[str, Transport | None] = {}
    if transports.has("http"):
        built["http"] = _remote("http", transports.inner("http"), context, report)
    if transports.has("sse"):
        built["sse"] = _remote("sse", transports.inner("sse"), context, report)
    if transports.has("stdio"):
        built["stdio"] = _stdio(transports.inner("stdio"), context, report)
    preferred = {"streamable-http": "http"}.get(transports.text("preferred") or "", transports.text("preferred"))
    order = sorted(built, key=lambda name: name != preferred)
    if not order:
        return None, []
    usable = [name for name in order if not (isinstance(chosen := built[name], StdioTransport) and not chosen.command)]
    if not usable:
        what = f"There is no command for {context.platform}, so this server cannot run here."
        at = transports.inner("stdio").at("commandByPlatform")
        report.add(
            "no-command", what, write=f"{context.platform}: [program, argument]",
            field="transports.stdio.commandByPlatform", at=at, severity="warning",
        )  # fmt: skip
        return built[order[0]], [f"no command for {context.platform} ({context.file}:{at[0]})"]
    if usable[0] != order[0]:
        what = f"`{order[0]}` has no command for {context.platform}, so `{usable[0]}` is used."
        report.add("other-transport", what, field="transports", at=transports.at(order[0]), severity="note")
    return built[usable[0]], []


def _remote(kind: str, view: View, context: Context, report: Report) -> HttpTransport | None:
    path = f"transports.{kind}"
    before = report.errors
    endpoint = view.text("endpoint")
    if endpoint is not None:
        _check_endpoint(endpoint, view.at("endpoint"), f"{path}.endpoint", report)
    headers = tuple(header_values(view.inner("headers"), f"{path}.headers", context.file.parent, report))
    login = login_of(view, path, headers, context.file.parent, report)
    if report.errors > before:
        return None
    return HttpTransport(
        kind="sse" if kind == "sse" else "http",
        endpoint=endpoint,
        endpoint_env=view.text("endpointEnv"),
        headers=headers,
        oauth=login.oauth,
        token=login.token,
        session_headers=login.session_headers,
        replay=login.replay,
    )


def _check_endpoint(endpoint: str, at: tuple[int, int], path: str, report: Report) -> None:
    if secrets.placeholder(endpoint):
        what = "Variables are not filled in here."
        report.add(
            "placeholder", what, write="endpointEnv: NAME, with the whole URL in that variable", field=path, at=at
        )
        return
    reason = secrets.url(endpoint)
    if reason:
        what = f"This URL is refused because {reason}: {NO_LITERAL}."
        report.add(
            "literal-secret", what, write="endpointEnv: NAME, or the secret as a header with fromEnv", field=path, at=at
        )
        return
    try:
        parts = urlsplit(endpoint)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host = None
    if not host:
        report.add(
            "wrong-form",
            "This is not a URL with a host and a valid port.",
            write="endpoint: https://mcp.example.com/mcp",
            field=path,
            at=at,
        )
    elif has_dot_segments(parts.path):
        report.add(
            "wrong-form",
            "This URL has `.` or `..` in its path; a grant is for the address as it is written.",
            write="the path that is meant",
            field=path,
            at=at,
        )
    elif parts.scheme == "http" and host not in _LOOPBACK:
        what = "Plain http:// to another machine: whoever is on the way can read and change calls."
        report.add("plain-http", what, write="https://...", field=path, at=at, severity="warning")


def _stdio(view: View, context: Context, report: Report) -> StdioTransport | None:
    path = "transports.stdio"
    before = report.errors
    folder = context.file.parent
    root = logical.root_of(context.file)
    cwd_text = view.text("cwd")
    logical.check_place(cwd_text or "", f"{path}.cwd", view.at("cwd"), report)
    filled = logical.expanded(cwd_text or "", root)
    cwd = Path(os.path.normpath(folder / os.path.expanduser(filled))) if cwd_text else folder
    commands = [("command", view.texts("command"))] if view.has("command") else []
    by_platform = view.inner("commandByPlatform")
    commands += [
        (f"commandByPlatform.{name}", by_platform.texts(name))
        for name in ("windows", "linux", "macos")
        if by_platform.has(name)
    ]
    for name, words in commands:
        _check_command(words or (), f"{path}.{name}", report)
    words = view.texts("command") if view.has("command") else by_platform.texts(context.platform)
    declared = tuple(word for word, _at in words or ())
    command = tuple(logical.expanded(word, root) for word in declared)
    env = tuple(env_values(view, path, folder, report, root))
    if report.errors > before:
        return None
    if not cwd.is_dir():
        what = f"The directory {cwd} does not exist."
        report.add("no-directory", what, field=f"{path}.cwd", at=view.at("cwd"), severity="warning")
    found = resolve(command, cwd, search_folders(env, context.environ))
    if command and found is None and words:
        where = "in the place that it names" if os.path.dirname(command[0]) else "on PATH"
        what = f"There is no program {shown(command[0])} {where}."
        write = "its full path, or install it"
        report.add("no-program", what, write=write, field=f"{path}.command", at=words[0][1], severity="warning")
    command = command if found is None else (found, *command[1:])
    return StdioTransport(command, cwd, env, declared, cwd_text)


def _check_command(words: tuple[tuple[str, tuple[int, int]], ...], path: str, report: Report) -> None:
    before: str | None = None
    for index, (word, at) in enumerate(words):
        where = f"{path}[{index}]"
        logical.check_place(word, where, at, report)
        if index == 0 and not word.strip():
            report.add(
                "empty", "The program's name must not be empty.", write="[npx, -y, some-mcp-server]", field=where, at=at
            )
        elif index == 0 and len(words) == 1 and " " in word and not os.path.exists(word):
            as_list = ", ".join(word.split())
            report.add(
                "one-word-command",
                "No shell splits this at its spaces.",
                write=f"[{as_list}]",
                field=where,
                at=at,
                severity="warning",
            )
        reason = secrets.argument(before, word)
        if reason:
            what = f"This argument is refused because {reason}: {NO_LITERAL}."
            report.add(
                "literal-secret",
                what,
                write="env: {NAME: {fromEnv: NAME}}, where the program reads its secret from there",
                field=where,
                at=at,
            )
        before = word
