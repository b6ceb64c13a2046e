"""The local socket: a running `up` takes in `connect` processes of the same user and the same manifests.

An owner-only Unix socket in Interlock's home, a named pipe on Windows. The first line says who comes; then both sides
speak MCP, a message a line.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import hashlib
import os
import secrets
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from interlock.manifest.config import Gateway
from interlock.model.principal import Principal
from interlock.relay.client import Client
from interlock.serve.lines import LineClient
from interlock.wire.eras import Era

if TYPE_CHECKING:
    from interlock.serve.runtime import Runtime

HELLO_SECONDS = 2.0


class Hello(msgspec.Struct):
    """What a `connect` process says first."""

    digest: str
    host: str | None = None
    root: str | None = None
    """The project that the host works on."""
    greeted: str | None = None
    """The host's first message, where `connect` has answered it already."""
    protocol: int = 1


def address(home: Path, digest: str) -> str:
    """Where an `up` of these manifests listens. Short: Unix socket paths end at about 100 bytes."""
    name = hashlib.sha256(f"{home}\0{digest}".encode()).hexdigest()[:16]
    if sys.platform == "win32":
        return rf"\\.\pipe\interlock-{getpass.getuser()}-{name}"
    path = home / "run" / f"{name}.sock"
    if len(os.fsencode(path)) > 100:
        base = Path(os.environ.get("XDG_RUNTIME_DIR") or f"/tmp/interlock-{os.getuid()}")
        path = base / f"interlock-{name}.sock"
    return str(path)


def local_principal(host: str | None) -> Principal:
    """Who a `connect` process is: the user's own, named after the host that started it."""
    return Principal(f"host:{host}" if host is not None else "local", "local", host)


def new_client(host: str | None, root: str | None = None) -> Client:
    client = Client(f"connect-{os.getpid()}-{secrets.token_hex(4)}", local_principal(host), Era.LEGACY)
    client.root = root
    return client


def generation(gateway: Gateway) -> str:
    """What both sides must agree on: the manifests' content, and which servers may not run (trust may have been given since)."""
    blocked = "\0".join(sorted(key for key, config in gateway.servers.items() if config.blocked is not None))
    return hashlib.sha256(f"{gateway.digest}\0{blocked}".encode()).hexdigest()


def _ours_alone(folder: Path) -> bool:
    """True where nobody else can put a socket of their own into the folder."""
    status = os.lstat(folder)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022


def _made_ours(folder: Path) -> bool:
    """Make the folder where it is not there. False where it is not safe to use."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _ours_alone(folder)


def _our_socket(path: str) -> bool:
    """True for a socket that this user made, in a folder that nobody else can change, and that nobody else can open."""
    try:
        status = os.lstat(path)
        return (
            stat.S_ISSOCK(status.st_mode)
            and status.st_uid == os.getuid()
            and not status.st_mode & 0o077
            and _ours_alone(Path(path).parent)
        )
    except OSError:
        return False


class LocalServer:
    """Offers one running Interlock to `connect` processes."""

    def __init__(self, runtime: Runtime, home: Path) -> None:
        self._runtime = runtime
        self._address = address(home, generation(runtime.gateway))
        self._server: Any = None
        self._peers: set[_Peer] = set()

    async def start(self) -> bool:
        """False where another `up` of the same manifests already listens, or the socket cannot be made: that is no fault."""
        loop = asyncio.get_running_loop()
        if sys.platform == "win32":
            try:
                self._server = (await loop.start_serving_pipe(self._peer, self._address))[0]  # type: ignore[attr-defined]
            except OSError:
                return False
            return True
        path = Path(self._address)
        try:
            if not _made_ours(path.parent) or await _answers(self._address):
                return False
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)  # of one that was killed
            # The mask makes it owner-only from the start, with no moment in which others could connect.
            mask = os.umask(0o177)
            try:
                self._server = await loop.create_unix_server(self._peer, self._address)
            finally:
                os.umask(mask)
        except OSError:
            return False
        return True

    def _peer(self) -> _Peer:
        return _Peer(self._runtime, self._peers)

    def stop_listening(self) -> None:
        """Take no more peers; those that are there keep their calls."""
        if self._server is not None:
            self._server.close()
            self._server = None
            if sys.platform != "win32":
                with contextlib.suppress(OSError):
                    os.unlink(self._address)

    def close(self) -> None:
        self.stop_listening()
        for peer in list(self._peers):
            peer.hang_up()


class _Peer(asyncio.Protocol):
    def __init__(self, runtime: Runtime, peers: set[_Peer]) -> None:
        self._runtime = runtime
        self._peers = peers
        self._transport: asyncio.Transport | None = None
        self._start = bytearray()
        self._lines: LineClient | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]
        self._peers.add(self)

    def data_received(self, data: bytes) -> None:
        if self._lines is not None:
            self._lines.feed(data)
            return
        self._start += data
        line, newline, rest = bytes(self._start).partition(b"\n")
        if not newline:
            if len(line) > 65536:
                self.hang_up()
            return
        try:
            hello = msgspec.json.decode(line, type=Hello)
        except msgspec.DecodeError:
            self.hang_up()
            return
        assert self._transport is not None
        if hello.digest != generation(self._runtime.gateway) or self._runtime.front.draining.is_set():
            self._transport.write(b'{"ok":false}\n')
            self.hang_up()
            return
        self._transport.write(b'{"ok":true}\n')
        greeted = (hello.greeted or "").encode()
        self._lines = LineClient(
            self._runtime.front, new_client(hello.host, hello.root), self._write, greeted, self._backlog
        )
        if rest:
            self._lines.feed(rest)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _backlog(self) -> int:
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    def eof_received(self) -> bool:
        """The host closed its input: answer what is open, then leave."""
        if self._lines is None:
            return False

        async def finish(lines: LineClient) -> None:
            await lines.end()
            self.hang_up()

        self._task = asyncio.get_running_loop().create_task(finish(self._lines))
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._peers.discard(self)
        if self._lines is not None:
            self._lines.leave()

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def _answers(path: str) -> bool:
    try:
        async with asyncio.timeout(1.0):
            _, writer = await asyncio.open_unix_connection(path)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def join(
    home: Path, digest: str, host: str | None, root: str | None, greeted: bytes = b""
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
    """Streams to a running `up` of the same manifests, or None where there is none."""
    where = address(home, digest)
    try:
        async with asyncio.timeout(HELLO_SECONDS):
            if sys.platform == "win32":
                loop = asyncio.get_running_loop()
                reader = asyncio.StreamReader()
                protocol = asyncio.StreamReaderProtocol(reader)
                transport, _ = await loop.create_pipe_connection(lambda: protocol, where)  # type: ignore[attr-defined]
                writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            else:
                if not _our_socket(where):
                    return None
                reader, writer = await asyncio.open_unix_connection(where)
            hello = Hello(digest, host, root, greeted.decode() if greeted else None)
            writer.write(msgspec.json.encode(hello) + b"\n")
            if msgspec.json.decode(await reader.readline()) != {"ok": True}:
                writer.close()
                return None
            return reader, writer
    except (OSError, TimeoutError, ValueError):
        return None
