"""A `connect` process beside a running `up`: lines pass both ways, and what is still open is known.

When the other side dies, the host must not wait for ever: calls that may have run are answered with what is known of them
(`outcome_unknown`), what only reads is asked again, and the host is served from this process from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from interlock.build import build
from interlock.calls import answers
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.serve.lines import LineClient
from interlock.wire import bounds, codes, messages
from interlock.wire.eras import Era, take_meta
from interlock.wire.lines import LineSplitter
from interlock.wire.messages import Id, Kind, WireError

if TYPE_CHECKING:
    from interlock.relay.client import Client
    from interlock.serve.front import Front

ASKED_AGAIN: Final = frozenset(
    {
        "initialize",
        "server/discover",
        "ping",
        "tools/list",
        "prompts/list",
        "resources/list",
        "resources/templates/list",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
        "completion/complete",
    }
)
"""Requests that change nothing at a server, so that they may be asked once more."""
_REPLAY: Final = "interlock-replay-"


class Joined:
    """`to_host` and `to_up` write bytes. Feed it what comes from either side; then `lost` once, where `up` has gone."""

    def __init__(self, to_host: Callable[[bytes], None], to_up: Callable[[bytes], None], greeted: bytes = b"") -> None:
        self._to_host = to_host
        self._to_up = to_up
        self._from_host = LineSplitter(bounds.MAX_REQUEST_BYTES)
        self._from_up = LineSplitter()
        self._overflows = 0
        self._open: dict[Id, tuple[str, bytes]] = {}
        """Requests of the host that are not answered: method and the whole line."""
        self._asked: set[Id] = set()
        """Questions of servers that the host has not answered."""
        self._last_question = 0
        self._greeting = greeted
        """The `initialize` that was answered, for the process that takes over."""
        self._level: bytes | None = None
        self._subscriptions: dict[str, bytes] = {}
        self._over: LineClient | None = None

    # -- while the other side lives
    def host_said(self, data: bytes) -> None:
        """Bytes from the host."""
        if self._over is not None:
            self._over.feed(data)
            return
        for line in self._from_host.feed(data):
            self._note_of_host(line)
            self._to_up(line + b"\n")
        if self._from_host.overflows != self._overflows:
            self._overflows = self._from_host.overflows
            self._from_host.heads.clear()
            text = f"the message is longer than {bounds.MAX_REQUEST_BYTES} bytes"
            self._to_host(messages.error(None, messages.error_body(codes.INVALID_REQUEST, text)) + b"\n")

    def up_said(self, data: bytes) -> None:
        """Bytes from `up`. Only whole lines are passed on: what dies in the middle of one must not spoil the next."""
        lines = self._from_up.feed(data)
        for line in lines:
            self._note_of_up(line)
        if lines:
            self._to_host(b"\n".join([*lines, b""]))

    def _note_of_host(self, line: bytes) -> None:
        try:
            message = messages.parse(line)
        except WireError:
            return
        kind, id = message.kind, message.id
        if kind is Kind.REQUEST and id is not None:
            self._open.setdefault(id, (message.method, line))
        elif kind is Kind.NOTIFICATION:
            if message.method == "notifications/cancelled":
                params = messages.try_map(message.params) or {}
                given_up = messages.try_json(params.get("requestId"))
                if isinstance(given_up, int | str):
                    self._open.pop(given_up, None)  # it will not be answered
        elif id is not None:
            self._asked.discard(id)

    def _note_of_up(self, line: bytes) -> None:
        try:
            message = messages.parse(line)
        except WireError:
            return
        id = message.id
        if id is None:
            return
        if message.kind is Kind.REQUEST:
            self._asked.add(id)
            if isinstance(id, int):
                self._last_question = max(self._last_question, id)
            return
        method, request = self._open.pop(id, ("", b""))
        if message.kind is Kind.ERROR:
            return
        if method == "initialize":
            self._greeting = request
        elif method == "logging/setLevel":
            self._level = request
        elif method in ("resources/subscribe", "resources/unsubscribe"):
            uri = messages.try_str(messages.read_map(messages.parse(request).params).get("uri")) or ""
            if method == "resources/subscribe":
                self._subscriptions[uri] = request
            else:
                self._subscriptions.pop(uri, None)

    # -- when it has gone
    def lost(
        self, front: Front | None, client: Client | None, backlog: Callable[[], int] = lambda: 0
    ) -> LineClient | None:
        """Answer what may have run. With a `front`, serve the host with it from now on, and ask again what only reads."""
        again: list[bytes] = []
        for id, (method, line) in self._open.items():
            if method in ASKED_AGAIN and front is not None:
                again.append(line)
            else:
                self._to_host(_gone(id, method, line) + b"\n")
        self._open.clear()
        for question in self._asked:
            params = messages.encode({"requestId": question, "reason": "the server that asked is gone"})
            self._to_host(messages.notification("notifications/cancelled", params) + b"\n")
        if front is None or client is None:
            return None
        # A late answer to a question of before must not be taken for an answer to one of ours.
        client.skip_questions(self._last_question)
        over = self._over = LineClient(front, client, self._without_replays, self._greeting, backlog)
        for number, line in enumerate([*([self._level] if self._level else []), *self._subscriptions.values()]):
            message = messages.parse(line)
            over.feed(messages.request(f"{_REPLAY}{number}", message.method, message.params) + b"\n")
        over.feed(b"".join(line + b"\n" for line in again))
        return over

    def _without_replays(self, data: bytes) -> None:
        if data.startswith(b'{"jsonrpc":"2.0","id":"' + _REPLAY.encode()):
            return
        self._to_host(data)


def _gone(id: Id, method: str, line: bytes) -> bytes:
    """The answer to a request that `up` took with it."""
    fault = Fault(
        "connection-lost",
        "the running `interlock up` that this call went through has ended. The call may have taken effect: read the target "
        "again before a retry. Later calls are served without it.",
        stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN,
    )  # fmt: skip
    if method != "tools/call":
        return messages.error(id, answers.error_body(fault, build()))
    meta = take_meta(messages.try_map(messages.parse(line).params) or {})
    era = Era.MODERN if meta.version is not None else Era.LEGACY
    return messages.result(id, answers.tool_result(fault, build(), era))
