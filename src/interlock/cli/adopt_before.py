"""Whether a server that does not answer behind Interlock answered before: its old entry is started once, as its host would."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import TYPE_CHECKING

from interlock.cli.trying_hosts import shows_tools

if TYPE_CHECKING:
    from interlock.hosts.adapter import Adapter
    from interlock.hosts.declaration import Declaration
    from interlock.hosts.entry import Entry
    from interlock.hosts.machine import Machine

STARTING_SECONDS = 60.0
ANSWER_SECONDS = 15.0


def worked(declaration: Declaration, adapter: Adapter, machine: Machine) -> bool | None:
    """None where that cannot be told from here: the host may have signed in. Never raises."""
    from interlock.hosts import child_environment

    entry = declaration.runs
    if entry is None:
        return False
    if entry.command:
        filled = [child_environment.filled(adapter, "args" if index else "command", word, machine)
                  for index, word in enumerate(entry.command)]  # fmt: skip
        environ = child_environment.of_entry(adapter, entry, machine.environ)
        folder = machine.folder
        if entry.cwd is not None:
            folder = machine.join(folder, child_environment.filled(adapter, "cwd", entry.cwd, machine))
        return shows_tools(filled, environ, folder, STARTING_SECONDS)
    if entry.url is None or entry.transport != "http":
        return None
    return _answers(child_environment.filled(adapter, "url", entry.url, machine), _headers(entry, adapter, machine))


def _headers(entry: Entry, adapter: Adapter, machine: Machine) -> dict[str, str]:
    from interlock.hosts import child_environment

    made = {name: child_environment.filled(adapter, "headers", text, machine) for name, text in entry.headers.items()}
    for name, (prefix, variable) in entry.header_names.items():
        if variable in machine.environ:
            made[name] = prefix + machine.environ[variable]
    return made


class _Stay(urllib.request.HTTPRedirectHandler):
    """Headers may hold a secret, which is for this address alone."""

    def redirect_request(self, *_args: object, **_more: object) -> None:
        return None


def _answers(url: str, headers: Mapping[str, str]) -> bool | None:
    """Whether `initialize` is answered there."""
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "interlock", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).encode()
    more = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    try:
        request = urllib.request.Request(url, body, {**headers, **more})
        with urllib.request.build_opener(_Stay).open(request, timeout=ANSWER_SECONDS) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError as error:
        return None if error.code in (301, 302, 307, 308, 401, 403) else False
    except (OSError, ValueError):
        return False
