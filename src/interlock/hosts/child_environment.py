"""Which variables a server gets that a host starts: by the host's own rule, and by what the entry names."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence

from interlock.hosts.adapter import Adapter
from interlock.hosts.dialect import SDK_ENV
from interlock.hosts.entry import Entry
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
        references = found(text, forms)
        if not references:
            made[name] = text
        elif references[0].name in environ:
            made[name] = environ[references[0].name]
    return made


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
