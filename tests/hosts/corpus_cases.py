"""The corpus: files as people have them, and what each host makes of them. Loads the cases and lays one out as a machine.

A file of `corpus/` is a list of cases for the host of its name. What is expected comes from the facts about the host, never
from what the code says. One case:

    - case: url-without-type              # unique in the file
      kind: one line that says which mistake it is; a public report as owner/repo#number
      platform: linux                     # linux (default) | macos | windows
      home: /home/ana                     # default /home/ana, /Users/ana, C:\\Users\\ana
      folder: ~/shop                      # default; it has a `.git` unless `git: false`; `git: ~` puts that elsewhere
      environ: {PATH: /usr/bin}           # default {}: nobody can tell which variables and programs there are
      programs: [npx, /opt/x/serve]       # executables, a bare name in /usr/bin; PATH is then /usr/bin unless given
      folders: [~/.cursor]                # empty ones
      links: {~/.claude.json: ~/dot/claude.json}
      files: {~/.claude.json: text}       # `~` is the home, `.` the folder, anything else absolute
      forms: {~/.claude.json: [bom]}      # FORMS below, in this order
      expect: []                          # of this host: exactly these, in any order
      also: {other-host: []}
      of_files: {~/.claude.json: [codes]} # problems that no entry has, but a file; without it there must be none
      writes: refused                     # every file of this case that generate would change is refused; default: written
                                          # (a scope alone: {user: refused, project: written})

A row of `expect` has `scope`, `file`, `server` (null: the file as a whole), `state`, and `problems` (codes of severity problem
and warning, each as often as it is found; default none). Compared only where given: `rule`, `line`, `column`, `notes` (codes of
severity note), `shadowed` and `origins` ({field: "file:line"}), `source`, `runs` (the command's words, or the URL).

In a text `${fake:github}` is a made-up secret (KINDS), so that none stands in a file, and `${repeat:900:ab}` is long.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from ruamel.yaml import YAML

from interlock.hosts.declaration import Declaration, Problem, Spot
from interlock.hosts.machine import Machine, Platform

FOLDER = Path(__file__).parent / "corpus"
Row = Mapping[str, object]

KINDS: Mapping[str, str] = {
    "github": "gh" + "p_" + "A1b2C3d4E5f6" * 3,
    "openai": "sk" + "-proj-" + "Zx9Yw8Vu7Ts6" * 4,
    "anthropic": "sk" + "-ant-api03-" + "Qm4Rn5Sp6Tq7" * 4,
    "slack": "xox" + "b-" + "123456789012-" * 2 + "aBcDeFgHiJkLmNoPqRsTuVwX",
    "random": "q7Rt2Yx9" + "Lm4Vb8Nc3Zk6" + "Wp5Hd1Js0Gf",
}
"""Made here, so that no file holds one."""

FORMS: Mapping[str, Callable[[bytes], bytes]] = {
    "tabs": lambda content: re.sub(rb"(?m)^( {2})+", lambda found: b"\t" * (len(found[0]) // 2), content),
    "no-final-newline": lambda content: content.rstrip(b"\r\n"),
    "crlf": lambda content: content.replace(b"\n", b"\r\n"),
    "cr": lambda content: content.replace(b"\n", b"\r"),
    "mixed": lambda content: b"".join(
        line.replace(b"\n", b"\r\n") if number % 2 else line for number, line in enumerate(content.splitlines(True))
    ),
    "blank-end": lambda content: content + b"\n\n   \n",
    "bom": lambda content: b"\xef\xbb\xbf" + content,
    "utf16": lambda content: content.decode().encode("utf-16"),
    "utf16-no-bom": lambda content: content.decode().encode("utf-16-le"),
    "latin1": lambda content: content.decode().encode("latin-1"),
    "cut": lambda content: content[: len(content) * 2 // 3],
    "zeros": lambda content: b"\0" * len(content),
}
_HOMES: Mapping[Platform, str] = {"linux": "/home/ana", "macos": "/Users/ana", "windows": "C:\\Users\\ana"}
_BIN: Mapping[Platform, str] = {"linux": "/usr/bin", "macos": "/usr/bin", "windows": "C:\\tools"}
_KNOWN = frozenset(
    ("case", "kind", "platform", "home", "folder", "git", "environ", "programs", "folders", "links", "files", "forms",
     "expect", "also", "of_files", "writes")
)  # fmt: skip
_ROW = frozenset(
    ("scope", "file", "server", "state", "problems", "rule", "line", "column", "notes", "shadowed", "origins", "source", "runs")
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    host: str
    name: str
    platform: Platform
    home: str
    folder: str
    git: str | None
    environ: Mapping[str, str]
    programs: Sequence[str]
    folders: Sequence[str]
    links: Mapping[str, str]
    contents: Mapping[str, bytes]
    """By logical path."""
    expect: Mapping[str, Sequence[Row]]
    """By host."""
    of_files: Mapping[str, Sequence[str]]
    writes: Mapping[str, str]

    @property
    def id(self) -> str:
        return f"{self.host}/{self.name}"

    def path(self, text: str) -> str:
        return _path(text, self.platform, self.home, self.folder)


def _path(text: str, platform: Platform, home: str, folder: str) -> str:
    """Logical, of a path as a case writes it."""
    head, _, rest = text.partition("/")
    base = {"~": home, ".": folder}.get(head)
    if base is None:
        return text
    slash = "\\" if platform == "windows" else "/"
    return slash.join([base, *rest.split("/")]) if rest else base


def hosts() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def every() -> list[Case]:
    return [case for host in hosts() for case in load(host)]


@functools.cache
def load(host: str) -> list[Case]:
    with open(FOLDER / f"{host}.yaml", encoding="utf-8") as file:
        found = YAML(typ="safe").load(file)
    cases = [_case(host, raw) for raw in found or []]
    names = [case.name for case in cases]
    assert len(names) == len(set(names)), f"{host}: a case twice: {sorted(n for n in names if names.count(n) > 1)}"
    return cases


def _case(host: str, raw: Mapping[str, object]) -> Case:
    name = raw["case"]
    assert isinstance(name, str)
    assert not set(raw) - _KNOWN, f"{host}/{name}: {set(raw) - _KNOWN}"
    assert raw.get("kind"), f"{host}/{name} says not of which kind it is"
    platform = cast("Platform", raw.get("platform", "linux"))
    home = str(raw.get("home", _HOMES[platform]))
    folder = _path(str(raw.get("folder", "~/shop")), platform, home, "")
    also = _mapping(raw, "also")
    expect = {host: raw["expect"], **also}
    for each, rows in expect.items():
        assert isinstance(rows, list), f"{host}/{name}: {each}"
        for row in rows:
            assert not set(row) - _ROW, f"{host}/{name}: {set(row) - _ROW}"
    git = raw.get("git", True)
    programs = cast("Sequence[str]", raw.get("programs", ()))
    environ = {key: str(value) for key, value in _mapping(raw, "environ").items()}
    if programs and "PATH" not in environ:
        environ["PATH"] = _BIN[platform]
    writes = raw.get("writes", {})
    forms = cast("Mapping[str, Sequence[str]]", _mapping(raw, "forms"))
    files = _mapping(raw, "files")
    assert set(forms) <= set(files), f"{host}/{name}: a form of a file that is not there"
    return Case(
        host=host, name=name, platform=platform, home=home, folder=folder,
        git=folder if git is True else None if git is False else _path(str(git), platform, home, folder),
        environ=environ, programs=programs, folders=cast("Sequence[str]", raw.get("folders", ())),
        links=cast("Mapping[str, str]", _mapping(raw, "links")),
        contents={
            _path(path, platform, home, folder): _bytes(str(text or ""), forms.get(path, ()))
            for path, text in files.items()
        },
        expect=cast("Mapping[str, Sequence[Row]]", expect),
        of_files=cast("Mapping[str, Sequence[str]]", _mapping(raw, "of_files")),
        writes=dict.fromkeys(("user", "project", "local"), writes) if isinstance(writes, str) else
        cast("Mapping[str, str]", writes),
    )  # fmt: skip


def _mapping(raw: Mapping[str, object], name: str) -> Mapping[str, object]:
    value = raw.get(name) or {}
    assert isinstance(value, dict), name
    return value


def _bytes(text: str, forms: Sequence[str]) -> bytes:
    text = re.sub(r"\$\{fake:(\w+)\}", lambda found: KINDS[found[1]], text)
    text = re.sub(r"\$\{repeat:(\d+):([^}]*)\}", lambda found: found[2] * int(found[1]), text)
    content = text.encode()
    for form in forms:
        content = FORMS[form](content)
    return content


def lay_out(case: Case, root: Path) -> Machine:
    """The case's machine, below `root`."""
    machine = Machine(
        platform=case.platform, home=case.home, folder=case.folder, environ=case.environ, root=str(root)
    )  # fmt: skip
    for folder in (case.home, case.folder, *map(case.path, case.folders)):
        os.makedirs(machine.real(folder), exist_ok=True)
    if case.git is not None:
        os.makedirs(machine.real(machine.join(case.git, ".git")), exist_ok=True)
    for path, content in case.contents.items():
        _place(machine, path).write_bytes(content)
    for link, target in case.links.items():
        _place(machine, case.path(link)).symlink_to(machine.real(case.path(target)))
    for program in case.programs:
        path = program if re.search(r"[/\\]", program) else machine.join(_BIN[case.platform], program)
        file = _place(machine, case.path(path))
        file.write_bytes(b"")
        file.chmod(0o755)
    return machine


def _place(machine: Machine, path: str) -> Path:
    file = Path(machine.real(path))
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def bare(case: Case, row: Row) -> dict[str, object]:
    """An expected row in full."""
    return {**row, "file": case.path(str(row["file"])), "problems": sorted(cast("list[str]", row.get("problems", [])))}


def seen(case: Case, declaration: Declaration, wanted: Row) -> dict[str, object]:
    """What the host made of an entry, as a row that says what the expected one says."""
    runs = declaration.runs
    row: dict[str, object] = {
        "scope": declaration.scope, "file": declaration.file, "server": declaration.server, "state": declaration.state,
        "problems": codes(declaration.problems), "rule": declaration.decided_by.rule, "line": declaration.spot.line,
        "column": declaration.spot.column, "notes": codes(declaration.problems, note=True), "source": declaration.source,
        "shadowed": spots(case, declaration.shadowed_fields), "origins": spots(case, declaration.origins),
        "runs": None if runs is None else runs.url if runs.url is not None else list(runs.command),
    }  # fmt: skip
    return {name: value for name, value in row.items() if name in wanted or name == "problems"}


def codes(problems: Sequence[Problem], *, note: bool = False) -> list[str]:
    return sorted(each.code for each in problems if (each.severity == "note") is note)


def spots(case: Case, found: Mapping[str, Spot]) -> dict[str, str]:
    """Short, as cases write them."""
    shown = {}
    for name, spot in found.items():
        text = str(spot).replace("\\", "/")
        for short, long in ((".", case.folder), ("~", case.home)):
            text = re.sub(rf"\A{re.escape(long.replace(chr(92), '/'))}(?=/)", short, text)
        shown[name] = text
    return shown
