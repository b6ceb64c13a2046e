"""A package index on loopback, with wheels made on the spot: what pip's configuration may point to."""

from __future__ import annotations

import base64
import hashlib
import http.server
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

ENTRY_POINTS = "[console_scripts]\ninterlock = interlock.cli.main:main\n"


def wheel(
    name: str, version: str, files: dict[str, bytes], requires: tuple[str, ...] = (), entry_points: str = ""
) -> tuple[str, bytes]:
    """File name and content of a wheel (PyPA binary distribution format)."""
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        f"Version: {version}",
        *(f"Requires-Dist: {one}" for one in requires),
    ]
    everything = files | {
        f"{info}/METADATA": ("\n".join(lines) + "\n").encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    if entry_points:
        everything[f"{info}/entry_points.txt"] = entry_points.encode()
    rows = []
    for path, content in everything.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}")
    everything[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for path, content in everything.items():
            archive.writestr(path, content)
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl", buffer.getvalue()


def packed(name: str) -> tuple[str, bytes]:
    """An installed pure distribution as a wheel again."""
    found = metadata.distribution(name)
    files = {
        file.as_posix(): Path(str(file.locate())).read_bytes()
        for file in found.files or ()
        if ".." not in file.parts and file.suffix != ".pyc" and not file.parts[0].endswith(".dist-info")
    }
    return wheel(name, found.version, files)


def of_tree(source: Path, version: str, requires: tuple[str, ...] = ()) -> tuple[str, bytes]:
    """The interlock package of a source tree as a wheel that calls itself `version`."""
    files = {
        file.relative_to(source).as_posix(): file.read_bytes()
        for file in sorted(source.rglob("*"))
        if file.is_file() and file.suffix != ".pyc"
    }
    return wheel("interlock-gateway", version, files, requires, ENTRY_POINTS)


class Index:
    """`asked` counts the requests for a project's page."""

    def __init__(self) -> None:
        self.wheels: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.url = ""

    def add(self, made: tuple[str, bytes]) -> None:
        self.wheels[made[0]] = made[1]

    def environment(self) -> dict[str, str]:
        """What makes pip use this index and nothing else."""
        return {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": self.url, "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}


@contextmanager
def serving() -> Iterator[Index]:
    """The simple repository API (PEP 503)."""
    index = Index()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            last = self.path.rstrip("/").rsplit("/", 1)[-1]
            if last in index.wheels:
                self._send(index.wheels[last], "application/octet-stream")
                return
            index.asked.append(last)
            prefix = last.replace("-", "_") + "-"
            names = [name for name in index.wheels if name.startswith(prefix)]
            links = "".join(f'<a href="/files/{name}">{name}</a>' for name in names)
            self._send(f"<!DOCTYPE html><html><body>{links}</body></html>".encode(), "text/html", 200 if names else 404)

        def _send(self, content: bytes, kind: str, status: int = 200) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    index.url = f"http://127.0.0.1:{server.server_address[1]}/simple"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
