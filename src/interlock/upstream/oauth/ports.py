"""Which loopback port a login listens on, and who holds a port that we cannot have.

The port is stable for a grant: an authorization server that compares redirect URIs exactly keeps knowing it, and an
old link still leads to whoever listens there now.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from interlock.manifest.config import OAuth
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.oauth.grant import Registration

FIRST = 33418
SPREAD = 512
TRIES = 6
_STRIDE = 67
"""Coprime to SPREAD, so that candidates of one grant lie apart: ranges that Windows reserves are contiguous."""
_LSOF_SECONDS = 2.0
_LISTEN = "0A"
"""State of a listening socket in /proc/net/tcp (include/net/tcp_states.h)."""


class PortTaken(Fault):
    """No port that the redirect URI may name is free. `owner` names the program that holds `port`, where that shows."""

    def __init__(self, port: int, owner: str | None, *, fixed: bool, ours: bool = False) -> None:
        self.port = port
        self.owner = owner
        self.fixed = fixed
        """True where the settings leave no other port. `ours`: another sign-in of Interlock has it, which is not to be ended."""
        cure = (
            "End it, or set another oauth.callbackPort (--callback-port) that the authorization server knows."
            if fixed
            else "The next candidates are taken too. End it, or set oauth.callbackPort (--callback-port) to a free port."
        )
        if ours:
            cure = (
                "Finish that one, or wait: it lets the port go when it is done, two minutes after its host has ended at the "
                "latest. Or set oauth.callbackPort (--callback-port) to a port that the authorization server knows."
            )
        super().__init__(
            "port-taken",
            f"the sign-in has to listen on loopback port {port}, and {owner or 'another program'} holds it. {cure} "
            "The server did not act on the request.",
            stage=Stage.AUTHORIZE,
            verdict=Verdict.WAIT,
        )


def stable_port(grant_id: str) -> int:
    """The first port to try for a grant: the same on every start and machine."""
    return FIRST + int.from_bytes(hashlib.sha256(grant_id.encode()).digest()[:4], "big") % SPREAD


def candidates(grant_id: str, settings: OAuth) -> tuple[int, ...]:
    """Ports to try in order. One alone where the settings fix it."""
    if settings.callback_port is not None:
        return (settings.callback_port,)
    start = stable_port(grant_id) - FIRST
    return tuple(FIRST + (start + step * _STRIDE) % SPREAD for step in range(TRIES))


def port_of(redirect_uri: str | None) -> int | None:
    """The port that a redirect URI names; None where it names none."""
    if redirect_uri is None:
        return None
    try:
        return urlsplit(redirect_uri).port
    except ValueError:
        return None


def redirect_uri(port: int) -> str:
    """`localhost`, because the specification names it (2026-07-28, security considerations: redirect URIs)."""
    return f"http://localhost:{port}/callback"


def redirect_for(registration: Registration, port: int) -> str:
    """The redirect URI to use on `port`: the host as it was registered, where a server wanted another than `localhost`."""
    registered = registration.redirect_uri
    return registered if registered is not None and port_of(registered) == port else redirect_uri(port)


def owner_pid(port: int) -> int | None:
    """The process that listens on a loopback port: from /proc on Linux, else from `lsof`. None where it does not show.

    Blocks for up to two seconds: call it in a thread.
    """
    if sys.platform == "linux":
        inodes = frozenset(_listening_inodes(port))
        return _holder_of(inodes) if inodes else None
    return _asked_of_lsof(port)


def owner_of(port: int) -> str | None:
    """Name and process id of whoever listens on a loopback port, for people. Blocks as `owner_pid` does."""
    pid = owner_pid(port)
    if pid is None:
        return None
    name = _name_of(pid)
    return f"{name} (process {pid})" if name else f"process {pid}"


def _listening_inodes(port: int) -> Iterator[str]:
    """Socket inodes that listen on the port, IPv4 and IPv6 (proc_net_tcp(5): columns 2, 4 and 10)."""
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text(encoding="ascii", errors="replace").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            columns = line.split()
            if len(columns) < 10 or columns[3] != _LISTEN:
                continue
            _, _, hex_port = columns[1].rpartition(":")
            if hex_port and int(hex_port, 16) == port:
                yield columns[9]


def _holder_of(inodes: frozenset[str]) -> int | None:
    wanted = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            for entry in os.scandir(process / "fd"):
                if os.readlink(entry.path) in wanted:
                    return int(process.name)
        except OSError:  # another user's process, or it ended meanwhile
            continue
    return None


def _asked_of_lsof(port: int) -> int | None:
    program = shutil.which("lsof") or ("/usr/sbin/lsof" if Path("/usr/sbin/lsof").exists() else None)
    if program is None:
        return None
    command = [program, "-nP", f"-iTCP:{port}", "-sTCP:LISTEN", "-Fp"]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_LSOF_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    for line in done.stdout.decode("ascii", "replace").splitlines():
        if line.startswith("p") and line[1:].isdigit():
            return int(line[1:])
    return None


def _name_of(pid: int) -> str | None:
    """The program's name without its arguments, which may hold secrets."""
    try:
        name = Path(f"/proc/{pid}/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return "".join(character for character in name if character.isprintable())[:64] or None
