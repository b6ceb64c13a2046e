"""Two small MCP clients over Streamable HTTP, one of each era, as a host would hold them. Standard library only.

They are here so that the demo talks to the gateway over its real endpoint and not through Interlock's own code.
"""

from __future__ import annotations

import http.client
import json
from email.message import Message
from urllib.parse import urlsplit

JsonObject = dict[str, object]

_META = "io.modelcontextprotocol/"
_NAME = {"name": "interlock-demo", "version": "1.0.0"}


def _last_message(body: bytes, content_type: str) -> JsonObject:
    """The answer in a response body: the whole of a JSON body, or the last message of an event stream."""
    if content_type.startswith("text/event-stream"):
        data = [line[5:] for line in body.splitlines() if line.startswith(b"data:") and line[5:].strip()]
        body = data[-1]
    message: JsonObject = json.loads(body)
    return message


class _Endpoint:
    """One keep-alive connection: one POST a message, one answer a request."""

    def __init__(self, url: str, credential: str) -> None:
        parts = urlsplit(url)
        self._path = parts.path
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Authorization": f"Bearer {credential}",
        }
        self._last_id = 0

    def ask(self, method: str, params: JsonObject, headers: dict[str, str]) -> tuple[JsonObject, Message]:
        """Send a request; its answer (`result` or `error`) and the response headers."""
        self._last_id += 1
        message: JsonObject = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        body, answered = self._post(message, headers)
        return _last_message(body, answered.get_content_type()), answered

    def tell(self, method: str, headers: dict[str, str]) -> None:
        """Send a notification."""
        self._post({"jsonrpc": "2.0", "method": method}, headers)

    def _post(self, message: JsonObject, headers: dict[str, str]) -> tuple[bytes, Message]:
        self._connection.request("POST", self._path, json.dumps(message), self._headers | headers)
        response = self._connection.getresponse()
        return response.read(), response.headers


class LegacyClient:
    """2025-11-25: a handshake first, then a session id with every request."""

    version = "2025-11-25"

    def __init__(self, url: str, credential: str) -> None:
        self._endpoint = _Endpoint(url, credential)
        opening: JsonObject = {"protocolVersion": self.version, "capabilities": {}, "clientInfo": _NAME}
        _, answered = self._endpoint.ask("initialize", opening, {})
        self._session = {"Mcp-Session-Id": answered["Mcp-Session-Id"], "MCP-Protocol-Version": self.version}
        self._endpoint.tell("notifications/initialized", self._session)

    def call(self, tool: str, arguments: JsonObject) -> JsonObject:
        """The whole answer to `tools/call`."""
        return self._endpoint.ask("tools/call", {"name": tool, "arguments": arguments}, self._session)[0]


class ModernClient:
    """2026-07-28: no handshake; every request says who asks and in which version, in `_meta` and in headers."""

    version = "2026-07-28"

    def __init__(self, url: str, credential: str) -> None:
        self._endpoint = _Endpoint(url, credential)

    def call(self, tool: str, arguments: JsonObject) -> JsonObject:
        """The whole answer to `tools/call`."""
        meta: JsonObject = {
            f"{_META}protocolVersion": self.version,
            f"{_META}clientInfo": _NAME,
            f"{_META}clientCapabilities": {},
        }
        headers = {"MCP-Protocol-Version": self.version, "Mcp-Method": "tools/call", "Mcp-Name": tool}
        return self._endpoint.ask("tools/call", {"name": tool, "arguments": arguments, "_meta": meta}, headers)[0]
