"""How a child is started on Windows: suspended, then into a job object that ends with Interlock, then let run.

A job object holds the child and all that it starts. It is closed when its last handle is, and so when Interlock ends in
whatever way; closing it ends everyone in it. A process may still leave it on purpose (CREATE_BREAKAWAY_FROM_JOB), as it
may make itself a session of its own on POSIX.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from ctypes import wintypes
from pathlib import Path
from typing import cast

from interlock.manifest.config import StdioTransport
from interlock.upstream import windows_command
from interlock.upstream.command import Command
from interlock.upstream.spawned import InputProtocol, OutputProtocol, Spawned

assert sys.platform == "win32"

_CREATE_SUSPENDED = 0x00000004
_CREATE_NEW_PROCESS_GROUP = 0x00000200
_CREATE_NO_WINDOW = 0x08000000
_PROCESS_TERMINATE = 0x0001
_PROCESS_SET_QUOTA = 0x0100
_PROCESS_SUSPEND_RESUME = 0x0800
_JOB_BASIC_ACCOUNTING = 1
_JOB_EXTENDED_LIMITS = 9
_LIMIT_BREAKAWAY_OK = 0x00000800
_LIMIT_KILL_ON_JOB_CLOSE = 0x00002000


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", wintypes.LARGE_INTEGER),
        ("PerJobUserTimeLimit", wintypes.LARGE_INTEGER),
        ("LimitFlags", wintypes.DWORD),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", wintypes.DWORD),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", wintypes.DWORD),
        ("SchedulingClass", wintypes.DWORD),
    )


class _ExtendedLimits(ctypes.Structure):
    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_ulonglong * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


class _Accounting(ctypes.Structure):
    _fields_ = (
        ("TotalUserTime", wintypes.LARGE_INTEGER),
        ("TotalKernelTime", wintypes.LARGE_INTEGER),
        ("ThisPeriodTotalUserTime", wintypes.LARGE_INTEGER),
        ("ThisPeriodTotalKernelTime", wintypes.LARGE_INTEGER),
        ("TotalPageFaultCount", wintypes.DWORD),
        ("TotalProcesses", wintypes.DWORD),
        ("ActiveProcesses", wintypes.DWORD),
        ("TotalTerminatedProcesses", wintypes.DWORD),
    )


_kernel32 = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel32.CreateJobObjectW.restype = wintypes.HANDLE
_kernel32.CreateJobObjectW.argtypes = (ctypes.c_void_p, wintypes.LPCWSTR)
_kernel32.SetInformationJobObject.argtypes = (wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD)
_kernel32.QueryInformationJobObject.argtypes = (
    wintypes.HANDLE, ctypes.c_int, ctypes.c_void_p, wintypes.DWORD, ctypes.c_void_p,
)  # fmt: skip
_kernel32.AssignProcessToJobObject.argtypes = (wintypes.HANDLE, wintypes.HANDLE)
_kernel32.TerminateJobObject.argtypes = (wintypes.HANDLE, wintypes.UINT)
_kernel32.OpenProcess.restype = wintypes.HANDLE
_kernel32.OpenProcess.argtypes = (wintypes.DWORD, wintypes.BOOL, wintypes.DWORD)
_kernel32.CloseHandle.argtypes = (wintypes.HANDLE,)
_ntdll = ctypes.WinDLL("ntdll")
_ntdll.NtResumeProcess.argtypes = (wintypes.HANDLE,)
_ntdll.NtResumeProcess.restype = ctypes.c_long


def _checked(result: int | None) -> int:
    if not result:
        raise ctypes.WinError(ctypes.get_last_error())
    return result


class Job:
    """A job object that ends everyone in it when it is closed."""

    def __init__(self) -> None:
        self._handle: int | None = _checked(_kernel32.CreateJobObjectW(None, None))
        limits = _ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = _LIMIT_KILL_ON_JOB_CLOSE | _LIMIT_BREAKAWAY_OK
        try:
            _checked(
                _kernel32.SetInformationJobObject(
                    self._handle, _JOB_EXTENDED_LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)
                )
            )
        except OSError:
            self.release()
            raise
        self._pid = 0

    def take(self, pid: int) -> None:
        """Put a suspended process in, and let it run. Raises OSError."""
        self._pid = pid
        access = _PROCESS_TERMINATE | _PROCESS_SET_QUOTA | _PROCESS_SUSPEND_RESUME
        process = _checked(_kernel32.OpenProcess(access, False, pid))
        try:
            _checked(_kernel32.AssignProcessToJobObject(self._handle, process))
            status = _ntdll.NtResumeProcess(process)
            if status < 0:
                raise OSError(f"NtResumeProcess failed with status {status & 0xFFFFFFFF:#010x}")
        finally:
            _kernel32.CloseHandle(process)

    def alive(self) -> bool:
        if self._handle is None:
            return False
        found = _Accounting()
        answered = _kernel32.QueryInformationJobObject(
            self._handle, _JOB_BASIC_ACCOUNTING, ctypes.byref(found), ctypes.sizeof(found), None
        )
        return bool(answered and found.ActiveProcesses)

    def terminate(self) -> None:
        """There is no SIGTERM. Ctrl+Break reaches the child's process group where it shares our console."""
        with suppress(OSError):
            os.kill(self._pid, signal.CTRL_BREAK_EVENT)

    def kill(self) -> None:
        if self._handle is not None:
            _kernel32.TerminateJobObject(self._handle, 1)

    def release(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            _kernel32.CloseHandle(handle)


class _Child(Job):
    """The job of one child, and the event loop's transport for it."""

    transport: asyncio.SubprocessTransport | None = None

    def release(self) -> None:
        super().release()
        if self.transport is not None:
            self.transport.close()


class _Events(asyncio.SubprocessProtocol):
    """The event loop's calls, passed on to the three pipes' protocols."""

    def __init__(
        self, stdin: InputProtocol, stdout: OutputProtocol, stderr: OutputProtocol, on_exit: Callable[[], None]
    ) -> None:
        self._stdin = stdin
        self._outputs = {1: stdout, 2: stderr}
        self._on_exit = on_exit

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._outputs[fd].data_received(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        (self._stdin if fd == 0 else self._outputs[fd]).connection_lost(exc)

    def pause_writing(self) -> None:
        self._stdin.pause_writing()

    def resume_writing(self) -> None:
        self._stdin.resume_writing()

    def process_exited(self) -> None:
        self._on_exit()


def resolve(transport: StdioTransport, environment: Mapping[str, str], server: str | None) -> Command:
    """As windows_command.resolve, on this machine."""
    return windows_command.resolve(transport, environment, server, os.path.isfile)


async def spawn(
    command: Command,
    cwd: Path,
    environment: Mapping[str, str],
    stdin: InputProtocol,
    stdout: OutputProtocol,
    stderr: OutputProtocol,
    on_exit: Callable[[], None],
) -> Spawned:
    """Start a child in a job of its own. Raises OSError or ValueError where it cannot be; then nothing is left."""
    loop = asyncio.get_running_loop()
    flags = _CREATE_SUSPENDED | _CREATE_NEW_PROCESS_GROUP
    if not _kernel32.GetConsoleCP():
        # Without a console to share, each child would open a window.
        flags |= _CREATE_NO_WINDOW
    job = _Child()
    events = _Events(stdin, stdout, stderr, on_exit)
    pipe = asyncio.subprocess.PIPE
    try:
        if command.shell_line is not None:
            transport, _ = await loop.subprocess_shell(
                lambda: events, command.shell_line,
                stdin=pipe, stdout=pipe, stderr=pipe, cwd=str(cwd), env=dict(environment), creationflags=flags,
            )  # fmt: skip
        else:
            transport, _ = await loop.subprocess_exec(
                lambda: events, *command.argv,
                stdin=pipe, stdout=pipe, stderr=pipe, cwd=str(cwd), env=dict(environment), creationflags=flags,
            )  # fmt: skip
    except BaseException:
        job.release()
        raise
    job.transport = transport
    pid = transport.get_pid() or 0
    try:
        job.take(pid)
    except OSError:
        transport.kill()
        job.release()
        raise
    into = cast(asyncio.WriteTransport, transport.get_pipe_transport(0))
    out = cast(asyncio.ReadTransport, transport.get_pipe_transport(1))
    err = cast(asyncio.ReadTransport, transport.get_pipe_transport(2))
    return Spawned(pid, transport.get_returncode, into, out, err, job)
