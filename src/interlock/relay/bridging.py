"""A call across the eras: a legacy server that asks while a modern client waits, and a modern server's rounds for a legacy
client. Nothing is lost on the way; docs/eras.md has the table of what cannot be said at all."""

from __future__ import annotations

import asyncio

from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.relay.exchange import Exchange
from interlock.relay.parking import MAX_PARKED, Lot, OpenCall
from interlock.relay.questions import with_server_name
from interlock.relay.rounds import MAX_ROUNDS, Answered, Retry, Rounds, answer_for_legacy, request_of
from interlock.upstream.contract import Outgoing, Reply
from interlock.upstream.server import Server
from interlock.wire import messages, translate
from interlock.wire.eras import Era
from interlock.wire.messages import Raw, RawMap


class Bridge:
    """Keeps the parked calls. `name_servers` is False where one server's names are passed verbatim."""

    def __init__(self, rounds: Rounds, name_servers: bool) -> None:
        self._rounds = rounds
        self._name_servers = name_servers
        self._lot = Lot()

    async def call_for_modern(self, exchange: Exchange, server: Server, tool: str, out: Outgoing) -> Reply:
        """The call stays open at the server, which may ask. Raises Answered with its questions."""
        open_call = OpenCall(exchange, server.key, self._name_servers)
        out.sink = open_call
        open_call.work = asyncio.get_running_loop().create_task(server.request(out))
        return await self._attend(exchange, open_call, tool)

    async def resume(self, exchange: Exchange, server: str, tool: str, retry: Retry) -> Reply:
        """A client's answers for a call that is parked. Raises Answered with what is still asked, or Fault."""
        assert retry.sealed is not None
        open_call = self._lot.take(retry.sealed.data, exchange.client.principal.id)
        if open_call is None:
            raise Fault(
                "park-expired",
                f"{server}: the call that this answer belongs to is no longer open: it was not answered in time, was answered "
                "already, or Interlock was restarted. It may have taken effect: read the target again before a retry.",
                stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN, server=server, tool=tool,
            )  # fmt: skip
        open_call.exchange = exchange
        open_call.answer(retry.responses or {})
        return await self._attend(exchange, open_call, tool)

    async def _attend(self, exchange: Exchange, open_call: OpenCall, tool: str) -> Reply:
        """Wait for the server's answer or its questions; park the call where the client has to answer them first."""
        try:
            reply = await open_call.next()
        except BaseException:
            open_call.abandon()
            raise
        server = open_call.server
        if reply is not None:
            if reply.is_error and (asked := translate.url_elicitations(reply.body)):
                # A legacy server did not act: it wants a URL visited first (-32042). The modern era asks for that instead.
                requests = {f"url_{number}": self._visit(server, one) for number, one in enumerate(asked, 1)}
                state = self._rounds.seal(exchange, tool, self._rounds.new("retry", server, approved=True))
                raise Answered(self._rounds.required(requests, state))
            return reply
        if self._lot.count(exchange.client.principal.id) >= MAX_PARKED:
            open_call.abandon()
            raise Fault(
                "too-many-parked",
                f"{server}: {MAX_PARKED} calls already wait for answers; this one was cancelled. It may have taken effect.",
                stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN, server=server, tool=tool,
            )  # fmt: skip
        requests = {key: request_of(method, params) for key, method, params in open_call.asks()}
        handle = self._lot.park(open_call)
        state = self._rounds.seal(exchange, tool, self._rounds.new("park", server, handle))
        raise Answered(self._rounds.required(requests, state))

    def _visit(self, server: str, elicitation: RawMap) -> Raw:
        params: Raw | None = Raw(messages.write_map({**elicitation, "mode": Raw(b'"url"')}))
        if self._name_servers:
            params = with_server_name(server, "elicitation/create", params)
        return request_of("elicitation/create", params)

    async def call_for_legacy(self, exchange: Exchange, server: Server, tool: str, out: Outgoing) -> Reply:
        """A modern server's questions become requests to the client while its own request stays open."""
        params = out.params
        for _ in range(MAX_ROUNDS):
            reply = await server.request(out)
            if reply.is_error or reply.era is Era.LEGACY or b"input_required" not in reply.body:
                return reply
            members = messages.read_map(reply.body)
            if translate.result_type(members) != "input_required":
                return reply
            added = await answer_for_legacy(exchange, server.key, tool, members, name_server=self._name_servers)
            if not added:  # asking the same again, with nothing added, would only make the call again
                raise Fault(
                    "bad-answer",
                    f"{server.key}: the server wants input, but says neither which nor how to go on. The call may have taken "
                    "effect: read the target again before a retry.",
                    stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN, server=server.key, tool=tool,
                )  # fmt: skip
            for key in ("inputResponses", "requestState", "_meta"):
                params.pop(key, None)
            params.update(added)
        raise Fault(
            "too-many-rounds",
            f"{server.key}: the server asked for input {MAX_ROUNDS} times in a row; the call was given up.",
            stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN, server=server.key, tool=tool,
        )  # fmt: skip

    def close(self) -> None:
        self._lot.close()
