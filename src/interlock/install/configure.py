"""Writing one entry into a host's configuration: by the host's own command where that is safe, else into the file.

Before the first change the original is recorded, so that `interlock restore` takes the entry back; the file is replaced in
one step; what was written is read back, because a success message of a host's command is no evidence. What cannot be changed
safely is not changed: the caller gets the snippet to paste.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, cast

from interlock.hosts.changes import refused
from interlock.hosts.changes.applying import apply
from interlock.hosts.changes.applying import planned as foreseen
from interlock.hosts.changes.recording import folder_of
from interlock.hosts.changes.recording import read as recorded
from interlock.hosts.changes.witnessing import witness
from interlock.hosts.declaration import Declaration, Spot
from interlock.hosts.generating import LIST_KEYS, keeps_comments
from interlock.hosts.machine import Machine
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry, entries_of, parse, read_bytes, refusal
from interlock.hosts.text.document import At, Damaged, Document
from interlock.hosts.text.editing import edited
from interlock.hosts.text.steps import inside, shown
from interlock.hosts.writing import Edit, FileEdits, Json, Rendered
from interlock.install import entries, hosts
from interlock.install.hosts import Host
from interlock.install.places import private_folder
from interlock.install.renewing import Entry, changed, differences, merged

CLI_SECONDS = 60.0
COMMAND = "setup"
"""What `interlock restore --list` calls it."""


class Written(NamedTuple):
    how: Literal["unchanged", "command", "file"]
    replaced: bool
    """There was an entry of this name and ours, and it said something else."""
    changes: tuple[str, ...]
    """What is different in it now, a line each; nothing secret."""
    file: str
    backup: str | None
    """The file as it was."""
    undo: str | None
    """The command that takes it back; None where nothing was changed."""
    remarks: tuple[str, ...]


class Refused(Exception):
    """Nothing was changed. `snippet` is what a person can paste, `file` where; both None where that would not help."""

    def __init__(self, why: str, file: str | None = None, snippet: str | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.file = file
        self.snippet = snippet


class Job(NamedTuple):
    """What is to be written: exactly one of `command` and `url` is what the entry leads to."""

    host: Host
    machine: Machine
    home: str
    """Interlock's home, for the record."""
    name: str
    rendered: Rendered
    command: tuple[str, ...] | None
    url: str


@dataclass(slots=True)
class _Work:
    """A job, and what stands in the file now."""

    job: Job
    place: Place
    path: str
    text: bytes = b""
    there: dict[str, Declaration] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Of the entry: the name, or how it is spelt already where the host makes no difference."""
        adapter = self.job.host.adapter
        if adapter is not None and adapter.folds_case:
            return next((each for each in self.there if each.lower() == self.job.name.lower()), self.job.name)
        return self.job.name

    @property
    def old(self) -> Entry | None:
        declaration = self.there.get(self.key)
        return None if declaration is None else declaration.raw

    def refuse(self, why: str, at: At | None = None) -> Refused:
        spot = f"{self.path}:{at[0]}:{at[1]}" if at is not None else self.path
        return Refused(f"{spot}: {why}", self.path, snippet(self.job))


def write(job: Job) -> Written:
    """Raises Refused."""
    work = _open(job)
    old = work.old
    if old is not None:
        _may_replace(work)
        if not changed(old, job.rendered.entry):
            return Written("unchanged", False, (), work.path, None, None, ())
    changes = tuple(differences(old, job.rendered.entry)) if old is not None else ()
    if job.host.closed:
        work.remarks.append(
            f"{job.host.label} writes this file from memory: if it is running, quit it and run this again."
        )
    # The host's own note on that is for a change that is yet to come.
    work.remarks += [note for note in job.rendered.notes if not (job.host.closed and "from memory" in note)]
    how: Literal["command", "file"] = "file"
    try:
        program = _usable(work)
        if program is not None and _by_command(work, program):
            how = "command"
        else:
            _into_file(work)
    except refused.Refused as error:
        raise Refused(str(error), work.path, snippet(job)) from None
    except OSError as error:
        raise work.refuse(f"it cannot be written: {error.strerror or error}") from None
    return Written(how, bool(changes), changes, work.path, *_ways_back(work), tuple(work.remarks))


def planned(job: Job) -> str:
    """What `write` would do, for --dry-run. Raises Refused where it would."""
    work = _open(job)
    old = work.old
    instead = ""
    if old is not None:
        _may_replace(work)
        if not changed(old, job.rendered.entry):
            return f"leave {work.path} as it is: it has this entry already"
        instead = "".join(f"\n  {line}" for line in differences(old, job.rendered.entry))
        instead = f'\nThat replaces the entry "{job.name}" that is there:{instead}'
    try:
        foreseen(job.machine, _edits(work))
    except refused.Refused as error:
        raise Refused(str(error), work.path, snippet(job)) from None
    program = _usable(work)
    if program is not None:
        return "run: " + " ".join([program, *_arguments(job)]) + instead
    return f"write into {work.path}:\n{snippet(job)}" + instead.lstrip("\n")


def snippet(job: Job) -> str:
    """The entry as it would stand in the file, for a person to paste."""
    found = hosts.place(job.host, job.machine)
    if found is None:
        return ""
    place, path = found
    return edited(
        b"", _file_edits(job, place, path, Edit((*place.tables[0], job.name), _json(job.rendered.entry)))
    ).decode()


def _json(entry: Entry) -> Json:
    return cast("Json", dict(entry))


def _file_edits(job: Job, place: Place, path: str, *edits: Edit) -> FileEdits:
    adapter = job.host.adapter
    comments = adapter is None or keeps_comments(adapter, place)
    return FileEdits(
        file=path, format=place.format, comments=comments, edits=edits, list_key=LIST_KEYS.get(job.host.id)
    )


def _edits(work: _Work) -> list[FileEdits]:
    """An entry that is there keeps what is not ours, unless it led there another way: then nothing of it fits."""
    job, old = work.job, work.old
    keep = old is not None and (job.command is None) == (entries.seen(work.there[work.key]).way == "native")
    entry = merged(old, job.rendered.entry) if keep else dict(job.rendered.entry)
    # Members that say what they said before are not ours: `restore` leaves them alone.
    if keep and old is not None:
        entry = {name: part for name, part in entry.items() if name not in old or (old[name] or None) != (part or None)}
    edit = Edit((*work.place.tables[0], work.key), _json(entry), keep=keep)
    return [*job.rendered.edits, _file_edits(job, work.place, work.path, edit)]


def _open(job: Job) -> _Work:
    found = hosts.place(job.host, job.machine)
    if found is None:
        raise Refused(f"{job.host.label} has no configuration file")
    work = _Work(job, *found)
    _read(work)
    return work


def _read(work: _Work) -> None:
    job, adapter = work.job, work.job.host.adapter
    try:
        work.text = read_bytes(job.machine, work.path) or b""
        document = parse(work.text, work.place.format)
        why, at = refusal(adapter, work.place, document) if adapter is not None else (None, None)
        if why is not None:
            raise Damaged(why, at)
        if work.place.listed and not isinstance(inside(document.value, work.place.tables[0]), (list, type(None))):
            raise Damaged(f"{shown(work.place.tables[0])} is no list", document.at(*work.place.tables[0]))
    except Damaged as error:
        raise work.refuse(f"it is left as it is: {error.why}", error.at) from None
    except OSError as error:
        raise work.refuse(f"it cannot be read: {error.strerror or error}") from None
    work.there = _declared(work, document)


def _declared(work: _Work, document: Document) -> dict[str, Declaration]:
    adapter = work.job.host.adapter
    found: dict[str, Declaration] = {}
    for name, raw, _ in entries_of(document, work.place.tables[:1], work.job.machine, listed=work.place.listed):
        if not isinstance(raw, dict) or adapter is None:
            continue
        declaration = Declaration(
            host=adapter.id, scope=work.place.scope, place=work.place, spot=Spot(work.path), server=name, raw=raw
        )
        try:
            declaration.entry = adapter.read(raw)
        except BadEntry:
            declaration.entry = None
        found[name] = declaration
    return found


def _may_replace(work: _Work) -> None:
    """Only our own entry for the same URL is changed; whatever else has the name keeps it."""
    job = work.job
    found = entries.seen(work.there[work.key])
    ours = found.way == "interlock" or (job.command is None and found.way == "native")
    if ours and entries.same_url(found.url, job.url):
        return
    leads = f"leads to {found.url}" if found.url is not None else "is another server"
    raise Refused(f'{work.path} has an entry "{work.key}" already, which {leads}: choose another name with --name')


def _usable(work: _Work) -> str | None:
    """Path of the host's own program where it can write this entry without doing harm."""
    job, cli, old = work.job, work.job.host.cli, work.old
    if cli is None or (job.command is None and cli.native is None):
        return None
    program = shutil.which(cli.program, path=job.machine.environ.get("PATH"))
    if program is None:
        return None
    entry = job.rendered.entry
    if entry.get("env_vars") or entry.get("env"):
        return None  # variables by reference are something that no host's command can write
    if old is not None and (cli.remove is None or any(part for name, part in old.items() if name not in entry)):
        return None  # its other fields would be lost
    if cli.drops_comments and b"#" in work.text:
        work.remarks.append(f"`{cli.program} mcp add` would drop the comments in the file, so it was edited instead.")
        return None
    return program


def _arguments(job: Job) -> list[str]:
    cli = job.host.cli
    if cli is None:
        return []
    if job.command is not None:
        return cli.bridge(job.name, job.command)
    return cli.native(job.name, job.url) if cli.native is not None else []


def _by_command(work: _Work, program: str) -> bool:
    """Whether the file says afterwards what it should, and of other entries what it said before."""
    job, cli = work.job, work.job.host.cli
    if cli is None:
        return False
    before, replacing = set(work.there) - {work.key}, work.old is not None
    told: list[subprocess.CompletedProcess[str]] = []

    def act() -> None:
        if replacing and cli.remove is not None:
            _run([program, *cli.remove(job.name)], job.machine)
        told.append(_run([program, *_arguments(job)], job.machine))

    whole = Edit((*work.place.tables[0], work.key), _json(job.rendered.entry))
    trouble = ""
    try:
        id = witness(_home(work), job.machine, _file_edits(job, work.place, work.path, whole), act, command=COMMAND)
    except (OSError, subprocess.TimeoutExpired) as error:
        id, trouble = "", f"`{cli.program} mcp add` did not work ({error}), so the file was edited."
    if id:
        work.runs.append(id)
    _read(work)
    if trouble:
        work.remarks.append(trouble)
        return False
    found = work.old or {}
    wanted = {
        name: part for name, part in job.rendered.entry.items() if name in ("command", "args", *entries.URL_FIELDS)
    }
    if any(found.get(name) != part for name, part in wanted.items()):
        from interlock.journal.redact import redact

        words = (told[0].stderr.strip() or told[0].stdout.strip() or f"exit code {told[0].returncode}").splitlines()[-1]
        work.remarks.append(
            f"`{cli.program} mcp add` did not write the entry ({redact(words)[:200]}), so the file was edited."
        )
        return False
    lost = sorted(before - set(work.there))
    if lost:
        work.remarks.append(f"`{cli.program} mcp add` removed {', '.join(lost)}: `interlock restore` brings it back.")
    return True


def _run(command: Sequence[str], machine: Machine) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=CLI_SECONDS,
        env=dict(machine.environ),
        cwd=machine.home if os.path.isdir(machine.home) else None,  # in no project, so nothing lands in one
        check=False,
    )


def _into_file(work: _Work) -> None:
    applied = apply(_home(work), work.job.machine, _edits(work), command=COMMAND)
    if applied.id:
        work.runs.append(applied.id)


def _home(work: _Work) -> Path:
    """Where the original is recorded: in Interlock's home; where none can be made, in a folder beside the file."""
    home = Path(work.job.home)
    try:
        for folder in (home, home / "changes", home / "locks"):
            private_folder(str(folder))
    except OSError:
        home = Path(os.path.dirname(work.job.machine.real(work.path)), ".interlock")
        for folder in (home, home / "changes"):
            private_folder(str(folder))
    return home


def _ways_back(work: _Work) -> tuple[str | None, str | None]:
    """The original's copy, where there was a file, and the command that puts it back."""
    home = _home(work)
    run = recorded(home, work.runs[0]) if work.runs else None
    if run is None:
        return None, None
    copy = next((file.copy for file in run.files if file.path == work.path), None)
    usual = home == Path(work.job.machine.home, ".interlock")
    undo = shlex.join(["interlock", "restore", run.id, *([] if usual else ["--home", str(home)])])
    return None if copy is None else str(folder_of(home, run.id) / copy), undo
