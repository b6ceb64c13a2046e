"""`interlock check`: what the manifests declare, in which state, and what is wrong with them."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from interlock.cli.common import CONFIGURATION, OK, home_from, load_from
from interlock.manifest.config import HttpTransport

if TYPE_CHECKING:
    from rich.console import Console

    from interlock.manifest.config import ServerConfig
    from interlock.manifest.loading import Loaded

    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def add(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser(
        "check",
        help="check the manifests, without starting anything",
        description="List the declared servers and everything that is wrong with their manifests: file "
        "and line, field, "
        "what is wrong and what to write. Starts nothing. Exit code 8 where there is an error.",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    loaded = load_from(args)
    missing = dict(missing_variables(loaded))
    if args.json:
        print(json.dumps(_as_dict(loaded, missing, str(home_from(args))), indent=2))
    else:
        _show(loaded, missing)
    return CONFIGURATION if loaded.errors else OK


def state(config: ServerConfig) -> str:
    """One word for a column: disabled, blocked or ready (which does not mean that it was tried)."""
    if not config.enabled:
        return "disabled"
    return "blocked" if config.blocked else "ready"


def missing_variables(loaded: Loaded, environ: Mapping[str, str] | None = None) -> Iterator[tuple[str, list[str]]]:
    """Server key to the variables that it refers to and that are not set here."""
    environ = os.environ if environ is None else environ
    for key, config in loaded.gateway.servers.items():
        transport = config.transport
        if isinstance(transport, HttpTransport):
            headers = (*transport.headers, *transport.session_headers)
            names = [transport.endpoint_env, *(header.source for header in headers), *_login_variables(transport)]
        else:
            names = [value.source for value in transport.env]
        absent = sorted({name for name in names if name is not None and name not in environ})
        if absent:
            yield key, absent


def _login_variables(transport: HttpTransport) -> Iterator[str | None]:
    if transport.token is not None and not (transport.token.file is not None and transport.token.file.is_file()):
        yield transport.token.env
    if transport.oauth is not None:
        yield from (transport.oauth.client_id_env, transport.oauth.client_secret_env)


def approval_hints(loaded: Loaded) -> Iterator[str]:
    """Where all calls of a server ask: the one line that would change it, and where it goes."""
    places = []
    for key, config in loaded.gateway.servers.items():
        policy = config.policy
        asks = policy.default_approval in (None, "prompt", "approve", "always")
        loosened = any(rule.approval in ("auto", "writes", "host") for rule in config.tools.values())
        if config.enabled and asks and not loosened:
            places.append(f"{key} at {policy.default_approval_origin or config.origin}")
    if places:
        yield (
            "Every call to these servers asks first. One line in an entry changes that: "
            "`policy: {defaultApproval: writes}` asks for all but the tools that `tools` declares a read "
            f"(`tools: {{NAME: {{read: true}}}}`), and `auto` instead of `writes` never asks. It goes here: "
            f"{'; '.join(places)}."
        )


def _as_dict(loaded: Loaded, missing: Mapping[str, list[str]], home: str) -> Mapping[str, object]:
    return {
        "ok": not loaded.errors,
        "home": home,
        "files": [str(file) for file in loaded.gateway.files],
        "digest": loaded.gateway.digest,
        "servers": [_server_dict(config, missing) for config in loaded.gateway.servers.values()],
        "problems": [problem.as_dict() for problem in loaded.problems],
        "hints": list(approval_hints(loaded)),
        "trust": [
            {"file": str(trust.file), "hash": trust.hash, "trusted": trust.trusted, "how": trust.how}
            for trust in loaded.trusts
        ],
    }


def _server_dict(config: ServerConfig, missing: Mapping[str, list[str]]) -> Mapping[str, object]:
    return {
        "key": config.key,
        "integrationId": config.integration_id,
        "scope": config.scope,
        "state": state(config),
        "blocked": config.blocked,
        "required": config.required,
        "file": str(config.origin.file),
        "line": config.origin.line,
        "transport": config.transport.kind if isinstance(config.transport, HttpTransport) else "stdio",
        "approval": config.policy.default_approval or "ask",
        "allow": None if config.allow is None else [rule.glob for rule in config.allow],
        "deny": [{"glob": rule.glob, "rule": str(rule.origin)} for rule in config.deny],
        "unenforced": list(config.unenforced),
        "missingVariables": missing.get(config.key, []),
    }


def _show(loaded: Loaded, missing: Mapping[str, list[str]]) -> None:
    from interlock.cli import output

    console = output.console(width=160, soft_wrap=True)
    if not loaded.gateway.servers and not loaded.problems:
        console.print("No manifest declares a server here.")
        console.print("A first one, as interlock.yaml in this folder or in Interlock's home:", end="\n\n")
        console.print(_FIRST, markup=False)
        return
    if loaded.gateway.servers:
        _show_servers(loaded, console)
    for severity, style in (("error", "bold red"), ("warning", "yellow"), ("note", "cyan")):
        for problem in loaded.problems:
            if problem.severity == severity:
                console.print(f"[{style}]{severity}[/]", end=" ")
                console.print(str(problem).replace(f": {severity}: ", ": ", 1), markup=False)
    for key, names in missing.items():
        console.print(f"[yellow]unset[/] {_plain(key)} needs {', '.join(names)}, not set in this environment.")
    for line in approval_hints(loaded):
        console.print("[cyan]hint[/]", end=" ")
        console.print(_plain(line), markup=False)
    count = len(loaded.errors)
    console.print()
    console.print(f"[bold red]{count} error{'s' * (count != 1)}[/]" if count else "[green]No errors.[/]")


def _show_servers(loaded: Loaded, console: Console) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("server", "state", "scope", "reached by", "approval", "declared at"):
        table.add_column(column, overflow="fold")
    colours = {"ready": "green", "blocked": "red", "disabled": "dim"}
    for config in loaded.gateway.servers.values():
        word = state(config)
        transport = config.transport.kind if isinstance(config.transport, HttpTransport) else "stdio"
        approval = config.policy.default_approval or "ask"
        cells = (config.scope, transport, approval, str(config.origin))
        table.add_row(Text(_plain(config.key)), Text(word, colours[word]), *(Text(_plain(cell)) for cell in cells))
    console.print(table)
    for config in loaded.gateway.servers.values():
        if config.enabled and config.blocked:
            console.print("[red]blocked[/]", end=" ")
            console.print(_plain(f"{config.key} does not start: {config.blocked}."), markup=False)
        if config.unenforced:
            console.print("[yellow]not enforced[/]", end=" ")
            console.print(_plain(f"{config.key}: {', '.join(config.unenforced)}"), markup=False)


def _plain(text: str) -> str:
    """Nothing from a manifest may move the cursor or hide a part of the line."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


_FIRST = """\
schemaVersion: agent-routing/v1
integrationId: example.time
transports:
  stdio:
    command: [uvx, mcp-server-time]
policy:
  defaultApproval: auto
"""
