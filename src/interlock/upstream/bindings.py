"""Session binding: calls by which a client tells a server who it is, made again when the session is rebuilt.

Some servers keep the caller's name in the session (a tool such as `register`). A session that was lost and opened anew knows
nobody, and what is written through it would have no author. The manifest names such tools (transports.http.session.replay).
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.manifest.config import Replay
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.contract import Outgoing, Reply
from interlock.upstream.session import Session
from interlock.wire import messages, translate
from interlock.wire.messages import Raw

REPLAY_SECONDS = 20.0
MAX_REMEMBERED_BYTES = 64 * 1024


class Bindings:
    """The last successful call of each declared tool, for each downstream client. In memory only: arguments may be private."""

    def __init__(self, server: str, declared: Sequence[Replay]) -> None:
        self._server = server
        self._declared = {each.tool: each for each in declared}
        self._remembered: dict[str, dict[str, bytes | None]] = {}
        self._broken: dict[str, dict[str, str]] = {}
        """Why a declared call could not be repeated, for each client that has not made it again since."""

    def check(self, out: Outgoing) -> None:
        """Hold back a call that would have no author: a binding is broken, and this is not the call that mends it. Raises Fault."""
        if out.method != "tools/call" or out.name in self._declared:
            return
        for tool, why in self._broken.get(out.caller.client, {}).items():
            raise self._unbound(tool, why)

    def note(self, out: Outgoing, reply: Reply) -> None:
        """Remember a call that went well, if it is a declared one."""
        declared = self._declared.get(out.name or "") if out.method == "tools/call" else None
        if declared is None or reply.is_error:
            return
        result = messages.try_map(reply.body)
        if result is None or translate.is_error_result(result):
            return
        arguments = messages.try_map(out.params.get("arguments")) or {}
        kept = {name: value for name, value in arguments.items() if not declared.remember or name in declared.remember}
        text = messages.write_map(kept)
        self._broken.get(out.caller.client, {}).pop(declared.tool, None)
        # Too long to be kept: None, so that what an earlier call said is not repeated in its place.
        self._remembered.setdefault(out.caller.client, {})[declared.tool] = (
            text if len(text) <= MAX_REMEMBERED_BYTES else None
        )

    def forget(self, client: str) -> None:
        """The client is gone."""
        self._remembered.pop(client, None)
        self._broken.pop(client, None)

    async def replay(self, session: Session, client: str) -> None:
        """Make this client's remembered calls again, in the order in which they are declared. Raises SessionLost."""
        remembered = self._remembered.get(client, {})
        for tool in self._declared:
            if tool not in remembered:
                continue
            arguments = remembered[tool]
            if arguments is None:
                self._broken.setdefault(client, {})[tool] = "its arguments were too long to be remembered"
                continue
            params = messages.write_map({"name": messages.raw(tool), "arguments": Raw(arguments)})
            why = "the server answered it with an error"
            try:
                reply = await session.raw_request("tools/call", params, REPLAY_SECONDS, tool)
                result = None if reply.is_error else messages.try_map(reply.body)
                if result is not None and not translate.is_error_result(result):
                    self._broken.get(client, {}).pop(tool, None)
                    continue
            except Fault as fault:
                why = fault.message
            self._broken.setdefault(client, {})[tool] = why

    def _unbound(self, tool: str, why: str) -> Fault:
        return Fault(
            "binding-lost",
            f"{self._server}: the session was rebuilt, and {tool}, which tells the server who calls, could not be repeated ({why}). "
            "Your request was not sent, because it would have had no author. Call that tool again, then retry.",
            stage=Stage.EXECUTE, verdict=Verdict.NEVER_REACHED, server=self._server,
        )  # fmt: skip
