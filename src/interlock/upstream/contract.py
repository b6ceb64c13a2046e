"""What upstream needs of its callers and gives them: requests out, replies back, and the callbacks that `relay` implements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from interlock.wire.eras import Era
from interlock.wire.headers import HeaderParam
from interlock.wire.messages import Raw, RawMap

ListKind = Literal["tools", "prompts", "resources"]


@dataclass(frozen=True, slots=True)
class Caller:
    """For whom a request is made. A legacy server gets a session for each `(client, capabilities)`.

    `client` is the downstream client's id (a legacy session, a `connect` process or a credential).
    """

    client: str
    principal: str
    capabilities: Raw | None = None
    log_level: Raw | None = None
    era: Era = Era.MODERN
    """What the client speaks. A server that speaks it too is spoken to in it, so that nothing has to be translated."""


@dataclass(slots=True)
class Reply:
    """A server's answer. `body` is the result, or the whole error object where `is_error`."""

    body: bytes
    is_error: bool
    era: Era


Progress = Callable[[RawMap], None]
"""Takes a client's progress (without its token) on a question back to the server that asked."""


class Sink(Protocol):
    """Where what belongs to one open request goes while it is open."""

    @property
    def parked(self) -> bool:
        """True while nobody attends to the request: a question that names no call belongs to another one, if there is one."""
        ...

    def on_notification(self, method: str, params: RawMap) -> None:
        """Progress (without its token) or a log message. Must not block."""

    def on_interrupted(self) -> None:
        """A legacy server closed the request's stream for a while; the request goes on."""

    async def on_question(self, method: str, params: Raw | None, progress: Progress) -> Reply:
        """A legacy server asks the client something. Never raises; a refusal is an error reply."""
        ...


class Events(Protocol):
    """What a server says outside any request. `binding` names the session that it came from."""

    def list_changed(self, server: str, binding: str, kind: ListKind) -> None: ...
    def resource_updated(self, server: str, binding: str, params: RawMap) -> None: ...
    def notification(self, server: str, binding: str, caller: Caller | None, method: str, params: RawMap) -> None: ...
    async def question(
        self, server: str, caller: Caller | None, method: str, params: Raw | None, progress: Progress
    ) -> Reply:
        """A legacy server asks while none of its client's calls is open."""
        ...

    def log_level(self, caller: Caller | None) -> str | None:
        """The level that the client has set for its legacy session; the least of all clients' for a shared one."""
        ...

    def session_started(self, server: str, binding: str) -> None: ...
    def session_ended(self, server: str, binding: str) -> None: ...


@dataclass(slots=True)
class Outgoing:
    """One request for a server, in the server's own names. `params` has no `_meta`; `meta` holds what passes."""

    method: str
    params: RawMap
    caller: Caller
    seconds: float
    """Until when an answer must be there."""
    meta: RawMap = field(default_factory=dict)
    sink: Sink | None = None
    wants_progress: bool = False
    name: str | None = None
    """For the `Mcp-Name` header: the server's own tool or prompt name, or the resource's URI."""
    header_params: Sequence[HeaderParam] = ()
    tool: str | None = None
    """Canonical name, for errors."""
