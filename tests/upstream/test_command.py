"""From the manifest's command to a running program: what is found, and what a person is told where nothing is."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from interlock.manifest.config import EnvValue, StdioTransport
from interlock.model.fault import Fault
from interlock.model.verdict import Verdict
from interlock.upstream.command import Command, check_directory, resolve, spawn_fault
from interlock.upstream.process import ChildProcess

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="POSIX rules")


def program(path: Path, text: str = "#!/bin/sh\necho hi\n", mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def found(cwd: Path, path: str, *command: str) -> list[str]:
    return resolve(StdioTransport(command, cwd), {"PATH": path}, "git").argv


def test_the_first_directory_of_path_that_has_it(tmp_path: Path) -> None:
    program(tmp_path / "one" / "tool", mode=0o644)
    second = program(tmp_path / "two" / "tool")
    program(tmp_path / "three" / "tool")
    (tmp_path / "zero" / "tool").mkdir(parents=True)
    path = ":".join(str(tmp_path / name) for name in ("missing", "zero", "one", "two", "three"))
    assert found(tmp_path, path, "tool", "-a", "b c") == [str(second), "-a", "b c"]


def test_relative_entries_and_commands_are_relative_to_the_servers_directory(tmp_path: Path) -> None:
    tool = program(tmp_path / "bin" / "tool")
    assert found(tmp_path, "bin", "tool") == [str(tool)]
    assert found(tmp_path, "", "./bin/tool") == [str(tool)]
    assert found(tmp_path, "", "bin/tool", "x") == [str(tool), "x"]
    assert found(Path("/"), "", str(tool)) == [str(tool)]


def test_a_symbolic_link_keeps_its_own_name(tmp_path: Path) -> None:
    """A virtual environment's Python is a link, and knows its environment by where it stands."""
    tool = program(tmp_path / "real" / "tool")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "other").symlink_to(tool)
    assert found(tmp_path, "bin", "other") == [str(tmp_path / "bin" / "other")]


@pytest.mark.parametrize(
    ("command", "slug", "words"),
    [
        ("nowhere", "command-not-found", ["'nowhere'", "PATH", "Searched: bin:/also/not"]),
        ("npx", "command-not-found", ["'npx'", "npx comes with Node.js"]),
        ("./nowhere", "command-not-found", ["there is no file", "nowhere"]),
        ("plain", "spawn-failed", ["not executable", "chmod +x"]),
        ("./bin/plain", "spawn-failed", ["not executable", "chmod +x"]),
        ("./bin", "spawn-failed", ["it is a directory"]),
    ],
)
def test_what_is_said_where_it_is_not_found(tmp_path: Path, command: str, slug: str, words: list[str]) -> None:
    program(tmp_path / "bin" / "plain", mode=0o644)
    with pytest.raises(Fault) as caught:
        found(tmp_path, "bin:/also/not", command)
    fault = caught.value
    assert (fault.slug, fault.verdict, fault.server) == (slug, Verdict.NEVER_REACHED, "git")
    assert fault.message.startswith("Server 'git' was not started: ")
    assert [word for word in words if word not in fault.message] == []


def test_an_empty_path_is_said_to_be_empty(tmp_path: Path) -> None:
    with pytest.raises(Fault, match=r"Searched: \(empty\)"):
        found(tmp_path, "", "tool")


def test_a_missing_directory(tmp_path: Path) -> None:
    check_directory(tmp_path, None)
    program(tmp_path / "file")
    for name, problem in (("gone", "does not exist"), ("file", "is not a directory")):
        with pytest.raises(Fault, match=problem) as caught:
            check_directory(tmp_path / name, "git")
        assert caught.value.slug == "cwd-missing"


async def _start(command: tuple[str, ...], cwd: Path, env: tuple[EnvValue, ...] = ()) -> ChildProcess:
    return await ChildProcess.start(
        StdioTransport(command, cwd, env),
        environ=os.environ,
        on_data=lambda data: None,
        on_exit=lambda exit: None,
        server="git",
    )


@pytest.mark.parametrize(
    ("text", "slug", "words"),
    [
        pytest.param("echo hi\n", "spawn-failed", ["has no `#!` line"], id="no shebang"),
        pytest.param("", "spawn-failed", ["has no `#!` line"], id="empty"),
        pytest.param("#!/no/such/python\n", "spawn-failed", ["'/no/such/python', does not exist"], id="interpreter"),
        pytest.param("#!/bin/sh\r\necho\r\n", "spawn-failed", ["does not exist", "CR LF"], id="line ends"),
        pytest.param("\x7fELF nonsense", "spawn-failed", ["another kind of machine"], id="foreign"),
    ],
)
def test_what_the_kernel_refuses(
    run: Callable[[Coroutine[Any, Any, None]], None], tmp_path: Path, text: str, slug: str, words: list[str]
) -> None:
    tool = program(tmp_path / "tool", text)

    async def body() -> None:
        with pytest.raises(Fault) as caught:
            await _start((str(tool),), tmp_path)
        assert (caught.value.slug, caught.value.server) == (slug, "git")
        assert [word for word in words if word not in caught.value.message] == []

    run(body())


@pytest.mark.parametrize(
    ("command", "directory", "env", "slug"),
    [
        (("no-such-command",), ".", (), "command-not-found"),
        (("cat",), "gone", (), "cwd-missing"),
        (("cat",), ".", (EnvValue("TOKEN", source="NO_SUCH_VARIABLE"),), "env-missing"),
        (("cat", "x\0y"), ".", (), "spawn-failed"),
        (("cat", "x" * 3_000_000), ".", (), "spawn-failed"),
    ],
)
def test_faults_before_there_is_a_process(
    run: Callable[[Coroutine[Any, Any, None]], None],
    tmp_path: Path,
    command: tuple[str, ...],
    directory: str,
    env: tuple[EnvValue, ...],
    slug: str,
) -> None:
    async def body() -> None:
        before = len(os.listdir("/dev/fd"))
        with pytest.raises(Fault) as caught:
            await _start(command, tmp_path / directory, env)
        assert caught.value.slug == slug
        assert len(os.listdir("/dev/fd")) <= before + 1  # the watchdog's, where it is the first child

    run(body())


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EACCES, "does not allow"),
        (errno.E2BIG, "larger than the system allows"),
        (errno.EAGAIN, "out of processes or memory"),
        (errno.EMFILE, "too many files are open"),
        (errno.ETXTBSY, "is being written"),
        (errno.EIO, os.strerror(errno.EIO)),
    ],
)
def test_what_each_refusal_means(tmp_path: Path, number: int, words: str) -> None:
    fault = spawn_fault(OSError(number, "x"), Command([str(tmp_path / "tool")]), tmp_path, None)
    assert (fault.slug, fault.verdict) == ("spawn-failed", Verdict.NEVER_REACHED)
    assert fault.message.startswith("The server was not started: ")
    assert words in fault.message


def test_what_went_away_meanwhile(tmp_path: Path) -> None:
    gone = OSError(errno.ENOENT, "x")
    assert spawn_fault(gone, Command([str(tmp_path / "tool")]), tmp_path, None).slug == "command-not-found"
    assert spawn_fault(gone, Command(["/bin/sh"]), tmp_path / "gone", None).slug == "cwd-missing"
    tool = program(tmp_path / "tool", "\x7fELF")
    assert "needs a loader" in spawn_fault(gone, Command([str(tool)]), tmp_path, None).message


def test_a_server_without_a_watchdog_is_not_started(
    run: Callable[[Coroutine[Any, Any, None]], None],
    start: Callable[..., Awaitable[Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    from interlock.upstream import posix
    from interlock.upstream.watchdog import Watchdog

    monkeypatch.setattr(posix, "watchdog", Watchdog)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))

    async def body() -> None:
        with pytest.raises(Fault, match="would end the server if Interlock were killed") as caught:
            await _start(("cat",), tmp_path)
        assert caught.value.slug == "spawn-failed"

    run(body())


def test_permissions_are_what_decides_and_not_a_name(tmp_path: Path) -> None:
    tool = program(tmp_path / "tool.txt")
    assert tool.stat().st_mode & stat.S_IXUSR
    assert found(tmp_path, str(tmp_path), "tool.txt") == [str(tool)]
