"""Which variables a server gets that a host starts: by the host's own rule, and by what the entry names."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence

from interlock.hosts.adapter import Adapter
from interlock.hosts.checks.references import references
from interlock.hosts.dialect import SDK_ENV
from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine
from interlock.hosts.reading import BadEntry
from interlock.hosts.references import found
from interlock.hosts.writing import Rendered


def of_entry(adapter: Adapter, entry: Entry, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` is the host's own. Of a host whose rule nobody knows, the narrow one of the common libraries is taken."""
    rule = adapter.child_env.value or SDK_ENV
    if rule.kind == "all":
        made = dict(environ)
    elif rule.kind == "redacted":
        made = {
            name: value
            for name, value in environ.items()
            if not any(fnmatch.fnmatchcase(name.upper(), glob.upper()) for glob in rule.names)
        }
    else:
        made = {name: value for name, value in environ.items() if _named(name, rule.names)}
    made |= {name: environ[name] for name in entry.env_names if name in environ}
    variables = adapter.variables.value
    forms = variables.forms if variables is not None else ()
    for name, text in entry.env.items():
        inside = found(text, forms)
        if not inside or not _fills(adapter, "env", text):
            made[name] = text
        elif inside[0].name in environ:
            made[name] = environ[inside[0].name]
    return made


def filled(adapter: Adapter, kind: str, text: str, machine: Machine) -> str:
    """A text of an entry as its host would hand it on; of a host whose rule nobody knows, with its variables filled in."""
    if adapter.expands_home.value and (text == "~" or text.startswith(("~/", "~\\"))):
        text = machine.home + text[1:]
    variables = adapter.variables.value
    if not _fills(adapter, kind, text):
        return text
    made, done = "", 0
    for each in found(text, variables.forms if variables is not None else ()):
        value = machine.home if each.name == "userHome" else machine.environ.get(each.name, each.default)
        if value is not None:
            made += text[done : each.start] + value
            done = each.end
    return made + text[done:]


def _fills(adapter: Adapter, kind: str, text: str) -> bool:
    """False where the host is known to pass what stands there on as it stands."""
    variables = adapter.variables.value
    if variables is None:
        return True
    if variables.fields and kind not in variables.fields:
        return False
    spelled = [each.form for each in references(text)]
    return not spelled or any(form in variables.forms for form in spelled)


def _named(name: str, names: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, each) for each in names)


def withheld(adapter: Adapter, rendered: Rendered, names: Sequence[str]) -> tuple[str, ...]:
    """Of these variables those that do not reach a server through this entry, though the host has them."""
    try:
        entry = adapter.read(rendered.entry)
    except BadEntry:
        return tuple(names)
    reached = of_entry(adapter, entry, dict.fromkeys(names, "set"))
    return tuple(name for name in names if name not in reached)
