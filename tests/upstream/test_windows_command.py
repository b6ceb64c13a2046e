"""The rules of Windows, on any system: which file runs, and that a batch file's arguments arrive as they were written.

The two readers of a batch file's command line, cmd.exe and the C runtime of the program that it starts, are rebuilt
here from their documented rules, so that every line can be read back.
"""

from __future__ import annotations

import subprocess
from pathlib import PureWindowsPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.manifest.config import StdioTransport
from interlock.model.fault import Fault
from interlock.upstream.windows_command import batch_line, resolve

NODE = "C:\\Program Files\\nodejs"
FILES = {
    f"{NODE}\\npx",
    f"{NODE}\\npx.cmd",
    f"{NODE}\\node.exe",
    "D:\\tools\\node.exe",
    "D:\\tools\\thing.ps1",
    "D:\\tools\\script.py",
    "D:\\work\\local.bat",
    "D:\\work\\sub\\tool.exe",
    "D:\\tools\\dotted.name.exe",
}
ENVIRONMENT = {"Path": f"{NODE};D:\\tools", "PATHEXT": ".COM;.EXE;.BAT;.CMD;.PY"}


def found(*command: str) -> list[str]:
    transport = StdioTransport(command, PureWindowsPath("D:\\work"))  # type: ignore[arg-type]
    return resolve(transport, ENVIRONMENT, "git", lambda path: path in FILES).argv


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("npx", f"{NODE}\\npx.cmd"),
        ("npx.cmd", f"{NODE}\\npx.cmd"),
        ("node", f"{NODE}\\node.exe"),
        ("node.exe", f"{NODE}\\node.exe"),
        ("D:\\tools\\node", "D:\\tools\\node.exe"),
        (".\\local", "D:\\work\\local.bat"),
        ("sub/tool", "D:\\work\\sub\\tool.exe"),
        ("dotted.name", "D:\\tools\\dotted.name.exe"),
    ],
)
def test_which_file_runs(command: str, path: str) -> None:
    assert found(command, "-y") == [path, "-y"]


@pytest.mark.parametrize(
    ("command", "slug", "words"),
    [
        (("nowhere",), "command-not-found", ["'nowhere'", ".exe", f"{NODE};D:\\tools"]),
        (("uvx",), "command-not-found", ["uvx comes with uv"]),
        (("local",), "command-not-found", ["'local'"]),
        ((".\\nowhere",), "command-not-found", ["not there"]),
        (("thing.ps1",), "spawn-failed", ["interpreter", "powershell -File"]),
        (("script",), "spawn-failed", ["script.py", "interpreter"]),
        (("npx", "two\nlines"), "spawn-failed", ["line break"]),
    ],
)
def test_what_is_said_where_nothing_can_run(command: tuple[str, ...], slug: str, words: list[str]) -> None:
    with pytest.raises(Fault) as caught:
        found(*command)
    assert (caught.value.slug, caught.value.server) == (slug, "git")
    assert [word for word in words if word not in caught.value.message] == []


def test_programs_need_no_shell() -> None:
    transport = StdioTransport(("node", "a&b"), PureWindowsPath("D:\\work"))  # type: ignore[arg-type]
    command = resolve(transport, ENVIRONMENT, None, lambda path: path in FILES)
    assert command.shell_line is None
    assert command.argv == [f"{NODE}\\node.exe", "a&b"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["-y", "@scope/server", "C:\\data"], "-y @scope/server C:\\data"),
        (["a b"], '"a b"'),
        ([""], '""'),
        (["a&b|c<d>e^f(g)"], '"a&b|c<d>e^f(g)"'),
        (['say "hi"'], '"say ""hi"""'),
        (["C:\\dir\\"], '"C:\\dir\\\\"'),
        (['\\"'], '"\\\\"""'),
        (["%PATH%"], '"%%cd:~,%PATH%%cd:~,%"'),
        (["100%"], '"100%%cd:~,%"'),
        (["!x!"], '"!x!"'),
        (["=,;"], '"=,;"'),
    ],
)
def test_quoting(arguments: list[str], line: str) -> None:
    assert batch_line("D:\\x.cmd", arguments) == f"D:\\x.cmd {line}"


def read_by_cmd(line: str) -> str:
    """cmd.exe's pass over a command line: variables are replaced, quotes toggle, and nothing may be special outside."""
    result: list[str] = []
    position = 0
    while position < len(line):
        if line[position] == "%":
            if line.startswith("%cd:~,%", position):
                position += len("%cd:~,%")
                continue
            end = line.find("%", position + 1)
            assert end in (-1, position + 1), f"a variable would be replaced: {line[position:]}"
        result.append(line[position])
        position += 1
    inside = False
    for character in result:
        if character == '"':
            inside = not inside
        assert inside or character not in "&|<>^()!%,;=\r\n", f"special to cmd.exe: {character!r} in {line}"
    assert not inside
    return "".join(result)


def read_by_runtime(line: str) -> list[str]:
    """The C runtime's splitting of a command line into arguments (since 2008: two quotes inside quotes are one)."""
    arguments: list[str] = []
    current: list[str] | None = None
    inside = False
    position = 0
    while position < len(line):
        character = line[position]
        if character == "\\":
            end = position
            while end < len(line) and line[end] == "\\":
                end += 1
            count = end - position
            current = current if current is not None else []
            if end < len(line) and line[end] == '"':
                current.append("\\" * (count // 2))
                if count % 2:
                    current.append('"')
                    end += 1
            else:
                current.append("\\" * count)
            position = end
            continue
        if character == '"':
            current = current if current is not None else []
            if inside and line[position + 1 : position + 2] == '"':
                current.append('"')
                position += 1
            else:
                inside = not inside
        elif character in " \t" and not inside:
            if current is not None:
                arguments.append("".join(current))
                current = None
        else:
            current = current if current is not None else []
            current.append(character)
        position += 1
    if current is not None:
        arguments.append("".join(current))
    return arguments


TEXT = st.text(st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"])) | st.text(
    'a"\\%& ^|', max_size=12
)


@given(st.lists(TEXT, max_size=6))
def test_every_argument_arrives_as_it_was_written(arguments: list[str]) -> None:
    line = batch_line("D:\\x.cmd", arguments)
    once = read_by_cmd(line)
    assert read_by_runtime(once) == ["D:\\x.cmd", *arguments]


@given(st.lists(st.text('ab"\\ \t', max_size=12), max_size=6))
def test_the_rebuilt_runtime_reads_what_python_writes(arguments: list[str]) -> None:
    assert read_by_runtime(subprocess.list2cmdline(["x", *arguments])) == ["x", *arguments]
