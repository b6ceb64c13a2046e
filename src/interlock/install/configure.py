"""Writing one entry into a host's configuration: by the host's own command where that is safe, else into the file.

Before the first change a backup is made; the file is replaced in one step; what was written is read back, because a
success message of a host's command is no evidence. What cannot be changed safely is not changed: the caller gets the
snippet to paste.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from interlock.install import entries, jsontext, tomltext
from interlock.install.hosts import Entry, Host, Where, config_file
from interlock.install.places import private_folder

CLI_SECONDS = 60.0


class Written(NamedTuple):
    how: Literal["unchanged", "command", "file"]
    replaced: bool
    """There was an entry of this name and ours, and it said something else."""
    changes: tuple[str, ...]
    """What is different in it now, a line each; nothing secret."""
    file: str
    backup: str | None
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
    where: Where
    home: str
    """Interlock's home, for the backup."""
    name: str
    entry: Entry
    command: tuple[str, ...] | None
    url: str


def write(job: Job) -> Written:
    """Raises Refused."""
    path = _path(job)
    if job.host.format == "paste":
        raise Refused(f"{job.host.label}'s configuration is not written by Interlock", path, snippet(job))
    text, value = _read(job, path)
    old = entries.at(value, job.host.root).get(job.name)
    if old is not None:
        _may_replace(job, path, old)
        if not _changed(old, job.entry):
            return Written("unchanged", False, (), path, None, ())
    changes = tuple(differences(old, job.entry)) if old is not None else ()
    remarks: list[str] = []
    if job.host.closed:
        remarks.append(f"{job.host.label} writes this file from memory: if it is running, quit it and run this again.")
    backup = _back_up(job, path)
    if job.host.cli is not None and (program := _usable(job, text, old, remarks)) is not None:
        if _by_command(job, program, path, value, replacing=old is not None, remarks=remarks):
            return Written("command", bool(changes), changes, path, backup, tuple(remarks))
        text, value = _read(job, path)
        old = entries.at(value, job.host.root).get(job.name)
    _into_file(job, path, text, _merged(old, job.entry))
    return Written("file", bool(changes), changes, path, backup, tuple(remarks))


def planned(job: Job) -> str:
    """What `write` would do, for --dry-run. Raises Refused where it would."""
    path = _path(job)
    if job.host.format == "paste":
        raise Refused(f"{job.host.label}'s configuration is not written by Interlock", path, snippet(job))
    text, value = _read(job, path)
    old = entries.at(value, job.host.root).get(job.name)
    instead = ""
    if old is not None:
        _may_replace(job, path, old)
        if not _changed(old, job.entry):
            return f"leave {path} as it is: it has this entry already"
        instead = "".join(f"\n  {line}" for line in differences(old, job.entry))
        instead = f'\nThat replaces the entry "{job.name}" that is there:{instead}'
    if job.host.cli is not None and (program := _usable(job, text, old, [])) is not None:
        return "run: " + " ".join([program, *_arguments(job)]) + instead
    return f"write into {path}:\n{snippet(job)}" + instead.lstrip("\n")


def differences(old: Mapping[str, object], new: Entry) -> list[str]:
    """What the new entry says differently, for people: `-` before what goes, `+` before what comes.

    Of variables only the names, and whatever looks like a secret masked: a person may have written one there.
    """
    from interlock.journal.redact import redact

    lines: list[str] = []
    for key in new:
        before, after = old.get(key), _merged(old, new)[key]
        if (before or None) == (after or None):
            continue
        for mark, value in (("-", before), ("+", after)):
            if value is not None:
                lines.append(f"{mark} {key}: {redact(_in_words(value))}")
    return lines


def _in_words(value: object) -> str:
    if isinstance(value, list):
        return shlex.join(str(part) for part in value)
    if isinstance(value, dict):
        return ", ".join(str(name) for name in value) or "none"
    return str(value)


def _changed(old: Mapping[str, object], entry: Entry) -> bool:
    """An empty member and a missing one are the same to every host."""
    return any((old.get(key) or None) != (part or None) for key, part in _merged(old, entry).items())


def snippet(job: Job) -> str:
    """The entry as it would stand in the file, for a person to paste."""
    if job.host.format == "toml":
        return tomltext.put("", (job.host.root[0], job.name), job.entry)
    if job.host.id == "goose":
        lines = [f"  {job.name}:"] + [f"    {key}: {json.dumps(part)}" for key, part in job.entry.items()]
        return "\n".join([f"{job.host.root[0]}:", *lines]) + "\n"
    value: object = {job.name: job.entry}
    for key in reversed(job.host.root):
        value = {key: value}
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _path(job: Job) -> str:
    path = config_file(job.host, job.where)
    if path is None:
        raise Refused(f"{job.host.label} has no configuration file")
    return path


def _read(job: Job, path: str) -> tuple[str, dict[str, object]]:
    try:
        text = entries.read_text(path) or ""
        return text, entries.parse(text, job.host.format)
    except jsontext.Damaged as error:
        raise Refused(f"{path} is left as it is: {error}", path, snippet(job)) from None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}", path, snippet(job)) from None


def _may_replace(job: Job, path: str, old: Mapping[str, object]) -> None:
    """Only our own entry for the same URL is changed; whatever else has the name keeps it."""
    found = entries.seen(path, job.name, old)
    ours = found.way == "interlock" or (job.command is None and found.way == "native")
    if ours and entries.same_url(found.url, job.url):
        return
    leads = f"leads to {found.url}" if found.url is not None else "is another server"
    raise Refused(f'{path} has an entry "{job.name}" already, which {leads}: choose another name with --name')


def _merged(old: Mapping[str, object] | None, entry: Entry) -> Entry:
    """What a person added to our entry (a timeout, approvals) stays."""
    if old is None:
        return entry
    merged = {**old, **entry}
    before, new = old.get("env"), entry.get("env")
    if isinstance(before, dict) and isinstance(new, dict):
        merged["env"] = {**before, **new}
    return merged


def _usable(job: Job, text: str, old: Mapping[str, object] | None, remarks: list[str]) -> str | None:
    """Path of the host's own program where it can write this entry without doing harm."""
    cli = job.host.cli
    if cli is None or (job.command is None and cli.native is None):
        return None
    program = shutil.which(cli.program, path=job.where.environ.get("PATH"))
    if program is None:
        return None
    if set(job.entry) & {"env_vars"} or job.entry.get("env"):
        return None  # variables by reference are something that no host's command can write
    if old is not None and cli.remove is None:
        return None  # its other fields would be lost
    if cli.drops_comments and "#" in text:
        remarks.append(f"`{cli.program} mcp add` would drop the comments in the file, so it was edited instead.")
        return None
    return program


def _arguments(job: Job) -> list[str]:
    cli = job.host.cli
    if cli is None:
        return []
    if job.command is not None:
        return cli.bridge(job.name, job.command)
    return cli.native(job.name, job.url) if cli.native is not None else []


def _by_command(
    job: Job, program: str, path: str, before: Mapping[str, object], *, replacing: bool, remarks: list[str]
) -> bool:
    """Whether the file says afterwards what it should, and of other entries what it said before."""
    cli = job.host.cli
    if cli is None:
        return False
    try:
        if replacing and cli.remove is not None:
            _run([program, *cli.remove(job.name)], job.where)
        told = _run([program, *_arguments(job)], job.where)
    except (OSError, subprocess.TimeoutExpired) as error:
        remarks.append(f"`{cli.program} mcp add` did not work ({error}), so the file was edited.")
        return False
    after = entries.at(_read(job, path)[1], job.host.root)
    found = after.get(job.name, {})
    wanted = {key: part for key, part in job.entry.items() if key in ("command", "args", *entries.URL_FIELDS)}
    if any(found.get(key) != part for key, part in wanted.items()):
        from interlock.journal.redact import redact

        words = (told.stderr.strip() or told.stdout.strip() or f"exit code {told.returncode}").splitlines()[-1]
        remarks.append(
            f"`{cli.program} mcp add` did not write the entry ({redact(words)[:200]}), so the file was edited."
        )
        return False
    others = {name for name in entries.at(before, job.host.root) if name != job.name}
    lost = sorted(others - set(after))
    if lost:
        remarks.append(f"`{cli.program} mcp add` removed {', '.join(lost)}: the backup has it.")
    return True


def _run(command: Sequence[str], where: Where) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=CLI_SECONDS,
        env=dict(where.environ),
        cwd=where.home if os.path.isdir(where.home) else None,  # in no project, so nothing lands in one
        check=False,
    )


def _into_file(job: Job, path: str, text: str, entry: Entry) -> None:
    try:
        if job.host.format == "toml":
            changed = tomltext.put(text, (job.host.root[0], job.name), entry)
        else:
            changed = jsontext.put(text, (*job.host.root, job.name), entry, comments=job.host.format == "jsonc")
    except jsontext.Damaged as error:
        raise Refused(f"{path} is left as it is: {error}", path, snippet(job)) from None
    try:
        if (entries.read_text(path) or "") != text:
            raise Refused(f"{path} was changed by another program just now: run this again", path, snippet(job))
        _replace(os.path.realpath(path), changed.encode("utf-8"))
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}", path, snippet(job)) from None


def _replace(path: str, content: bytes) -> None:
    """In one step, with the modes that the file has; a symbolic link to it stays one (the caller resolved it)."""
    try:
        mode = os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        mode = 0o600
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        with open(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


def _back_up(job: Job, path: str) -> str | None:
    """A copy that only the user can read, since other entries may hold secrets: in Interlock's home, else beside the file."""
    if not os.path.exists(path):
        return None
    folder = os.path.join(job.home, "backups")
    try:
        private_folder(job.home)
        private_folder(folder)
    except OSError:
        folder = os.path.dirname(path)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
    try:
        for attempt in range(100):
            backup = os.path.join(
                folder, f"{os.path.basename(path)}.{stamp}{f'-{attempt}' if attempt else ''}.{job.host.id}.backup"
            )
            try:
                descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
            except FileExistsError:
                continue
            with open(descriptor, "wb") as target, open(path, "rb") as source:
                shutil.copyfileobj(source, target)
            return backup
    except OSError as error:
        raise Refused(f"no backup of {path} could be made ({error.strerror or error}), so it is not changed") from None
    raise Refused(f"no backup of {path} could be made, so it is not changed")
