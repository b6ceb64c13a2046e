"""What the manifest means literally and a host would fill in: `$HOME` is a text in a manifest, and a variable in some hosts.

No host is known to have a way to write such a text as it is, so it is a loss, and one that weakens: what the server gets is
whatever the host's own environment holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.hosts.adapter import Adapter, Form
from interlock.hosts.machine import Machine
from interlock.hosts.writing import Loss
from interlock.manifest import logical
from interlock.manifest.config import HttpTransport, StdioTransport

_BRACES = r"\$\{[^}]*\}"
_PATTERNS: dict[Form, str] = {
    "${V}": _BRACES,
    "${V:-d}": _BRACES,
    "$V": r"\$\w+",
    "%V%": r"%\w+%",
    "${env:V}": _BRACES,  # and ${workspaceFolder} and its like
    "${input:V}": _BRACES,
    "${file:V}": _BRACES,
    "{env:V}": r"\{env:[^}]*\}",
    "{file:V}": r"\{file:[^}]*\}",
    "${{ secrets.V }}": r"\$\{\{.*?\}\}",
    "$env:V": r"\$env:\w+",
}
_RUN = {"pi": re.compile(r"\A!")}
"""A value in `env` or `headers` that begins so is run as a command, and its output taken."""


def lost(adapter: Adapter, transport: StdioTransport | HttpTransport, machine: Machine) -> tuple[Loss, ...]:
    """For each field in which the host would fill something in that the manifest means literally."""
    variables = adapter.variables.value
    forms = [form for form in variables.forms if form != "%V%" or machine.platform == "windows"] if variables else []
    fills = re.compile("|".join(dict.fromkeys(_PATTERNS[form] for form in forms))) if forms else None
    run = _RUN.get(adapter.id)
    found: dict[str, Loss] = {}
    for kind, name, text in _literals(transport):
        what = ""
        if fills is not None and variables is not None and kind in variables.fields and fills.search(text):
            what = "the manifest means it literally, and this host would fill in a variable there"
        elif run is not None and kind in ("env", "headers") and run.search(text):
            what = "the manifest means it literally, and this host would run it as a command"
        if what:
            found.setdefault(name, Loss(name, what, weakens=True))
    return tuple(found.values())


def _literals(transport: StdioTransport | HttpTransport) -> Iterator[tuple[str, str, str]]:
    """(kind of field as hosts call it, the manifest's field, text)."""
    if isinstance(transport, StdioTransport):
        for index, word in enumerate(transport.declared or transport.command):
            kind = "args" if index else "command"
            yield kind, f"transports.stdio.command[{index}]", _bare(word)
        yield "cwd", "transports.stdio.cwd", _bare(transport.declared_cwd or "")
        for value in transport.env:
            yield "env", f"transports.stdio.env.{value.name}", _bare(value.literal or "")
        return
    yield "url", "transports.http.endpoint", transport.endpoint or ""
    for header in transport.headers:
        yield "headers", f"transports.http.headers.{header.name}", f"{header.prefix}{header.literal or ''}"


def _bare(text: str) -> str:
    """Without `${projectRoot}`, which Interlock itself fills in."""
    return text[len(logical.PROJECT_ROOT) :] if logical.begins(text) else text
