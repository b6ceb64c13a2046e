"""The few requests that a benchmark makes itself: open a session where the era has one, and find the tool's name."""

from __future__ import annotations

import http.client
import json
import time
from dataclasses import dataclass, field

MODERN_REVISION = "2026-07-28"
LEGACY_REVISION = "2025-11-25"
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1.0.0"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class NotReadyError(RuntimeError):
    """The server did not list what was waited for in time; the message says what it answered last."""


@dataclass(slots=True)
class Endpoint:
    """An MCP endpoint over HTTP on this machine, with what a client has to send to it."""

    port: int
    path: str = "/mcp"
    modern: bool = True
    headers: dict[str, str] = field(default_factory=dict)
    session: str = ""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    def open(self) -> None:
        """`initialize` in the legacy era, remembering the session id; nothing in the modern one."""
        if self.modern:
            return
        self.session = ""
        info = {"name": "bench", "version": "1.0.0"}
        self.ask("initialize", {"protocolVersion": LEGACY_REVISION, "capabilities": {}, "clientInfo": info})
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, "notifications/initialized")

    def close(self) -> None:
        """Ends the legacy session, if there is one."""
        if not self.session:
            return
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("DELETE", self.path, headers={**self.headers, "Mcp-Session-Id": self.session})
        connection.getresponse().read()
        connection.close()
        self.session = ""

    def ask(self, method: str, params: dict[str, object], name: str | None = None) -> dict[str, object]:
        """One request; its answer, from a JSON or an SSE body. Raises OSError or ValueError where there is none."""
        sent = {**params, "_meta": _META} if self.modern else params
        return self._post({"jsonrpc": "2.0", "id": 1, "method": method, "params": sent}, method, name)

    def wait_for_tools(self, ending: str, count: int = 1, seconds: float = 60.0) -> list[str]:
        """The exposed names that end in `ending`, once there are `count`; opens a session first in the legacy era."""
        end = time.monotonic() + seconds
        last = "nothing"
        while time.monotonic() < end:
            try:
                if not self.modern and not self.session:
                    self.open()
                answer = self.ask("tools/list", {})
                last = json.dumps(answer)[:500]
                result = answer.get("result")
                tools = result.get("tools", []) if isinstance(result, dict) else []
                names = [str(tool["name"]) for tool in tools if tool["name"].endswith(ending)]
                if len(names) >= count:
                    return names
            except (OSError, ValueError, http.client.HTTPException) as error:
                last = repr(error)
            time.sleep(0.2)
        raise NotReadyError(f"{self.url} listed no {count} tools ending in {ending!r} within {seconds:.0f} s: {last}")

    def _post(self, message: dict[str, object], method: str, name: str | None = None) -> dict[str, object]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": MODERN_REVISION if self.modern else LEGACY_REVISION,
            **self.headers,
        }
        if self.modern:
            headers["Mcp-Method"] = method
            if name is not None:
                headers["Mcp-Name"] = name
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request("POST", self.path, json.dumps(message), headers)
            answer = connection.getresponse()
            self.session = answer.headers.get("Mcp-Session-Id", self.session)
            if answer.headers.get_content_type() == "text/event-stream":
                return _from_events(answer)
            body = answer.read()
        finally:
            connection.close()
        if answer.status == 202:
            return {}
        if answer.status != 200:
            raise ValueError(f"HTTP {answer.status}: {body[:300]!r}")
        return json.loads(body)  # type: ignore[no-any-return]


def _from_events(answer: http.client.HTTPResponse) -> dict[str, object]:
    """The first response in an SSE stream; notifications before it are passed over."""
    while line := answer.readline():
        if line.startswith(b"data:") and line[5:].strip():
            message = json.loads(line[5:])
            if isinstance(message, dict) and "id" in message and "method" not in message:
                return message
    raise ValueError("the event stream ended without an answer")
