"""References that stay as text, that have no value, or whose value never reaches the server; and `~`."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping

from interlock.hosts.adapter import ChildEnv, Form, Variables
from interlock.hosts.checks.codes import found
from interlock.hosts.checks.launching import launch, passed_by_name
from interlock.hosts.checks.literals import covered, masked
from interlock.hosts.checks.references import INPUT, PLUGIN, PREDEFINED, Reference, references
from interlock.hosts.checks.subject import Subject, texts
from interlock.hosts.declaration import Problem, Spot
from interlock.hosts.entry import Entry
from interlock.hosts.place import Format

_OWN_ENV = frozenset(("goose",))
"""Hosts that fill in from the entry's own `env` too."""
_KEYRING = frozenset(("goose",))
"""Hosts that take variables passed by name from their own secret store."""
_BLOCKS: Mapping[tuple[str, Format, str], tuple[Form, ...]] = {("continue", "json", "env"): ("${V}",)}
"""Forms that a host takes in one field of files of one format only."""
_EDITORS = frozenset(("vscode", "cursor", "windsurf", "antigravity", "kiro", "roo-code", "cline"))
"""Hosts that fill in names such as `${workspaceFolder}`, or may."""
_ALWAYS = frozenset(("HOME", "PATH", "USER", "LOGNAME", "LANG", "SHELL", "PWD", "TMPDIR", "USERPROFILE", "APPDATA",
                     "LOCALAPPDATA", "PROGRAMFILES", "SYSTEMROOT", "TEMP", "TMP", "USERNAME"))  # fmt: skip
"""Set wherever a host runs, if not where this is read."""


def check(subject: Subject) -> Iterator[Problem]:
    entry = subject.runs
    if entry is None:
        return
    start = launch(entry.command)
    in_shell = start is not None and start.shell
    for kind, text, field, spot in texts(subject, entry):
        filled_by_program = kind == "args" and (in_shell or _fills_headers(entry.command))
        for each in references(text):
            if filled_by_program and each.form in ("${V}", "$V", "${V:-d}", "%V%", "$env:V"):
                continue
            yield from _reference(subject, entry, kind, each, field, spot)
        if not (in_shell and kind == "args"):
            yield from _home(subject, kind, text, field, spot)
    yield from _passed(subject, entry)
    yield from _inherited(subject, entry)


def _reference(
    subject: Subject, entry: Entry, kind: str, reference: Reference, field: str, spot: Spot
) -> Iterator[Problem]:
    if reference.name in PLUGIN and (
        subject.declaration.source or subject.declaration.scope in ("plugin", "extension")
    ):
        return
    if reference.name in PREDEFINED and (subject.adapter.id in _EDITORS or reference.name == "extensionPath"):
        return
    knows = subject.adapter.variables.value
    if knows is None:
        return
    stays = as_text(subject, kind, reference, field, spot)
    if stays is not None:
        yield stays
    elif not reference.default and reference.form not in INPUT and _unset(subject, entry, reference.name):
        became = {
            "literal": f"The text `{reference.text}` itself is used.",
            "empty": "It becomes an empty text.",
            None: "What becomes of it on this host is not known.",
        }[knows.missing]
        yield found("variable-unset", f"`{reference.name}` is not set here.", why=became, field=field, spot=spot)


def as_text(subject: Subject, kind: str, reference: Reference, field: str, spot: Spot) -> Problem | None:
    """What is wrong where this host is known to pass the reference on as it stands; None where it fills it in, or may."""
    knows = subject.adapter.variables.value
    if knows is None:
        return None
    if reference.form in _BLOCKS.get((subject.adapter.id, subject.declaration.place.format, kind), ()):
        return None
    if reference.form not in knows.forms:
        return _stays(subject, knows, kind, reference, field, spot, "does not know this spelling")
    if knows.fields and kind not in knows.fields:
        return _stays(subject, knows, kind, reference, field, spot, f"fills in nothing in `{kind}`")
    return None


def _stays(
    subject: Subject, knows: Variables, kind: str, reference: Reference, field: str, spot: Spot, why: str
) -> Problem:
    label = subject.adapter.label
    # `$NAME` and `%NAME%` in an argument may well be meant for the program that gets it.
    vague = reference.form in ("$V", "%V%") and kind in ("args", "env")
    usable = [form for form in knows.forms if not knows.fields or kind in knows.fields]
    if usable:
        todo = f"Write `{usable[0].replace('V:-d', reference.name).replace('V', reference.name)}`."
    elif kind == "headers":
        todo = "Use the host's field for headers from variables, or let Interlock stand between."
        if subject.adapter.id == "codex":
            todo = "Use `bearer_token_env_var` or `env_http_headers`, which name the variable."
    elif kind == "env":
        todo = "Pass it by name."
        if subject.adapter.id == "codex":
            todo = f'Use `env_vars = ["{reference.name}"]`.'
    else:
        todo = "Write the value, if it is no secret, or let Interlock stand between."
    return found(
        "variable-literal",
        f"`{reference.text}` stays as it is: {label} {why}.",
        todo=todo, field=field, spot=spot, severity="warning" if vague else None,
    )  # fmt: skip


def _unset(subject: Subject, entry: Entry, name: str) -> bool:
    """False where nobody can tell: another machine's environment is not known here."""
    environ = subject.machine.environ
    if not environ or name in environ or name in _ALWAYS:
        return False
    if subject.machine.platform == "windows" and name.upper() in (each.upper() for each in environ):
        return False
    return not (subject.adapter.id in _OWN_ENV and (name in entry.env or name in entry.env_names))


def _passed(subject: Subject, entry: Entry) -> Iterator[Problem]:
    """Variables that the entry names for passing on, unset."""
    if subject.adapter.id not in _KEYRING:
        for name in entry.env_names:
            if _unset(subject, entry, name):
                spot = subject.at("env_vars")
                yield found(
                    "variable-unset", f"`{name}` is not set here.", why="The server starts without it.",
                    field="env_vars", spot=spot,
                )  # fmt: skip
    for header, (_, name) in entry.header_names.items():
        if _unset(subject, entry, name):
            bearer = (
                "bearer_token_env_var" in subject.declaration.spots
                or "bearer_token_env_var" in subject.declaration.origins
            )
            field = (
                "bearer_token_env_var" if bearer and header.lower() == "authorization" else f"env_http_headers.{header}"
            )
            yield found(
                "variable-unset", f"`{name}` is not set here.", why=f"The header {header} is not sent.",
                field=field, spot=subject.at(field),
            )  # fmt: skip


def _inherited(subject: Subject, entry: Entry) -> Iterator[Problem]:
    """Variables that the command itself takes from its environment: does the host let them through?"""
    given = subject.adapter.child_env.value
    wanted = _wanted(entry)
    for name, index in wanted:
        if name in entry.env or name in entry.env_names:
            continue
        field, spot = subject.word(index)
        label = subject.adapter.label
        if given is not None and _withheld(name, given):
            how = "passes on named variables only" if given.kind == "named" else "withholds variables of such names"
            yield found(
                "variable-withheld", f"The command takes `{name}` from its environment, and {label} {how}.",
                todo=_give(subject, name), field=field, spot=spot,
            )  # fmt: skip
        elif _unset(subject, entry, name):
            yield found(
                "variable-unset", f"The command takes `{name}` from its environment, where it is not set.",
                why="The server starts without it.", field=field, spot=spot,
            )  # fmt: skip


def _give(subject: Subject, name: str) -> str:
    if subject.adapter.id == "codex":
        return f'Add `env_vars = ["{name}"]` to the entry.'
    knows = subject.adapter.variables.value
    if knows is not None and knows.forms and (not knows.fields or "env" in knows.fields):
        form = knows.forms[0].replace("V:-d", name).replace("V", name)
        return f'Add `"{name}": "{form}"` to the entry\'s `env`.'
    return "Name it in the entry, if the host has a field for that; or let Interlock stand between."


def _withheld(name: str, given: ChildEnv) -> bool:
    if given.kind == "all":
        return False
    matches = any(fnmatch.fnmatchcase(name.upper(), pattern.upper()) for pattern in given.names)
    return matches if given.kind == "redacted" else not matches and name not in _ALWAYS


def _wanted(entry: Entry) -> list[tuple[str, int]]:
    start = launch(entry.command)
    if start is None:
        return []
    wanted = passed_by_name(start)
    if start.shell or _fills_headers(entry.command):
        for index, word in enumerate(entry.command[1:], 1):
            for each in references(word):
                if each.form in ("${V}", "$V") and not re.search(rf"\b{re.escape(each.name)}=", word):
                    wanted.append((each.name, index))
    return list(dict(reversed(wanted)).items())[::-1]


def _fills_headers(command: tuple[str, ...]) -> bool:
    """mcp-remote fills `${NAME}` into its `--header` arguments by itself."""
    return any(re.fullmatch(r"(?:.*/)?mcp-remote(?:@\S+)?", word) for word in command)


_TILDE = re.compile(r"(?:\A|(?<==))~(?:[/\\]|\Z)")


def _at_home(subject: Subject, kind: str, text: str) -> str:
    """The word as the entry would need it; where it may be a secret, or a variable's value, only what stands for `~`."""
    home = subject.machine.home
    whole = _TILDE.sub(lambda found: home + found[0][1:], text)
    if kind == "env" or masked(("", text)) != ("", text):
        return f"Write `{home}` for `~`."
    return f"Write `{covered(whole)}`."


def _home(subject: Subject, kind: str, text: str, field: str, spot: Spot) -> Iterator[Problem]:
    if kind not in ("command", "args", "env", "cwd") or not _TILDE.search(text):
        return
    expands = subject.adapter.expands_home.value
    if expands:
        return
    todo = _at_home(subject, kind, text)
    if expands is None:
        yield found("home-unknown", f"`~` in `{field}`.", todo=todo, field=field, spot=spot)
    else:
        sure = kind in ("command", "cwd")
        yield found(
            "home-literal", f"`~` in `{field}` stays as it is.",
            why="No such program or folder is found." if sure else "Unless the server itself fills it in, there is no such file.",
            todo=todo, field=field, spot=spot, severity=None if sure else "warning",
        )  # fmt: skip
