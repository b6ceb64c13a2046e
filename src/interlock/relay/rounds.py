"""Multi round-trip requests: `input_required` out to modern clients under our seal, their retries back, and the questions of
modern servers put to legacy clients while their request stays open (2026-07-28, basic/patterns/mrtr)."""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from dataclasses import dataclass
from typing import Final

from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.relay.exchange import Exchange
from interlock.relay.questions import ask, with_server_name
from interlock.upstream.contract import Reply
from interlock.wire import codes, messages
from interlock.wire.eras import SERVER_INFO_KEY
from interlock.wire.messages import EMPTY_OBJECT, Raw, RawMap, WireError
from interlock.wire.seal import BadSeal, Sealed, request_digest, seal, unseal

STATE_SECONDS: Final = 3600
"""How long a sealed requestState is good. A person may take a while; the server's own expiry still counts."""
MAX_ROUNDS: Final = 16
"""How often one request of a legacy client may be sent back to a modern server with answers."""
APPROVAL_KEY: Final = "interlock_approval"


class Answered(Exception):
    """A round that ends before the server has answered: `body` is the result that asks the client for input."""

    def __init__(self, body: bytes) -> None:
        self.body = body


@dataclass(slots=True)
class Retry:
    """What a modern request carries of an earlier round. `sealed` is None for a first request."""

    sealed: Sealed | None = None
    responses: RawMap | None = None


class Rounds:
    """Seals and opens with one key, which lives in Interlock's home so that a restart loses no server's state."""

    def __init__(self, key: bytes, server_info: bytes) -> None:
        self._key = key
        self._server_info = server_info
        self._run = secrets.token_urlsafe(6)
        """Names this process in what may be used once: another one cannot know what was used here."""
        self._spent: dict[str, int] = {}
        """Approvals that were used, and when they would have expired."""

    def take(self, exchange: Exchange, server: str, name: str) -> Retry:
        """Take `requestState` and `inputResponses` from the request. Raises WireError (-32602).

        A state that is not ours, or not for this principal, server and request, is refused: it is an attack or a mistake.
        """
        params = exchange.params
        raw_state = params.pop("requestState", None)
        raw_responses = params.get("inputResponses")
        if raw_state is None and raw_responses is None:
            return Retry()
        responses = messages.try_map(raw_responses)
        if raw_responses is not None and (
            responses is None or any(messages.try_map(each) is None for each in responses.values())
        ):
            raise WireError(codes.INVALID_PARAMS, "inputResponses must be an object whose members are objects")
        if raw_state is None:
            return Retry(None, responses)
        text = messages.try_str(raw_state)
        try:
            if text is None:
                raise BadSeal
            sealed = unseal(
                self._key,
                text,
                principal=exchange.client.principal.id,
                digest=self._digest(exchange, name),
                now=time.time(),
            )
            if sealed.server != server:
                raise BadSeal
        except BadSeal:
            raise WireError(
                codes.INVALID_PARAMS,
                "requestState was changed, has expired, or belongs to another request: start again without it",
                slug="invalid-state",
            ) from None
        return Retry(sealed, responses)

    def _digest(self, exchange: Exchange, name: str) -> bytes:
        return request_digest(exchange.method, name, exchange.params.get("arguments"))

    def seal(self, exchange: Exchange, name: str, content: Sealed) -> Raw:
        text = seal(self._key, content, principal=exchange.client.principal.id, digest=self._digest(exchange, name))
        return messages.raw(text)

    def new(
        self, purpose: str, server: str, data: str = "", had_state: bool = True, *, approved: bool = False
    ) -> Sealed:
        """`approved`: a person's yes stands behind it, or will; so it may be used once."""
        expires = int(time.time()) + STATE_SECONDS
        once = f"{self._run}.{secrets.token_urlsafe(12)}" if approved else ""
        return Sealed(purpose, server, data, expires, had_state, once)  # type: ignore[arg-type]

    def spend(self, sealed: Sealed) -> None:
        """A person said yes to one call, so their yes is good for one. Raises WireError where it was used before.

        Without a yes behind it (the tool was not asked for when it was sealed) it is refused just the same.
        """
        if not sealed.once.startswith(f"{self._run}."):
            text = "no approval stands behind this requestState: start again without it"
            raise WireError(codes.INVALID_PARAMS, text, slug="invalid-state")
        now = time.time()
        if len(self._spent) >= 1024:
            self._spent = {handle: expires for handle, expires in self._spent.items() if expires > now}
        if sealed.once in self._spent:
            text = "this approval was used already: start again without requestState"
            raise WireError(codes.INVALID_PARAMS, text, slug="invalid-state")
        self._spent[sealed.once] = sealed.expires

    def required(self, requests: RawMap, state: Raw | None) -> bytes:
        """An `input_required` result of ours."""
        body: RawMap = {"resultType": Raw(b'"input_required"')}
        if requests:
            body["inputRequests"] = Raw(messages.write_map(requests))
        if state is not None:
            body["requestState"] = state
        body["_meta"] = Raw(b'{"' + SERVER_INFO_KEY.encode() + b'":' + self._server_info + b"}")
        return messages.write_map(body)

    def reseal(
        self, exchange: Exchange, server: str, name: str, members: RawMap, *, asked: bool, name_server: bool
    ) -> None:
        """Make a modern server's `input_required` ours: its state under our seal, its questions under its name.

        Without a state of its own none is added, unless a person was asked before (`asked`): the retry must not ask again.
        """
        state = messages.try_str(members.get("requestState"))
        if state is not None or asked:
            members["requestState"] = self.seal(
                exchange, name, self.new("state", server, state or "", had_state=state is not None, approved=asked)
            )
        requests = messages.try_map(members.get("inputRequests"))
        if requests and name_server:
            for key, raw in requests.items():
                request = messages.try_map(raw)
                method = messages.try_str(request.get("method")) if request else None
                if request and method:
                    shown = with_server_name(server, method, request.get("params"))
                    if shown is not None:
                        request["params"] = shown
                        requests[key] = Raw(messages.write_map(request))
            members["inputRequests"] = Raw(messages.write_map(requests))


def request_of(method: str, params: Raw | None) -> Raw:
    """One member of `inputRequests`."""
    members: RawMap = {"method": messages.raw(method)}
    if params is not None:
        members["params"] = params
    return Raw(messages.write_map(members))


async def answer_for_legacy(
    exchange: Exchange, server: str, tool: str, members: RawMap, *, name_server: bool
) -> RawMap:
    """Put a modern server's questions to a legacy client, all at once, and return the parameters that the retry adds.

    Raises Fault where the client refuses a question with an error: the server cannot go on without an answer.
    """
    requests = messages.try_map(members.get("inputRequests")) or {}

    async def one(key: str, raw: Raw) -> tuple[str, Reply]:
        request = messages.try_map(raw) or {}
        method = messages.try_str(request.get("method")) or ""
        params = request.get("params")
        if name_server:
            params = with_server_name(server, method, params)
        if method == "elicitation/create":
            params = _with_elicitation_id(params)
        elif method == "roots/list" and params is not None and bytes(params) == b"{}":
            params = None
        return key, await ask(exchange.client, exchange, method, params)

    replies = await asyncio.gather(*(one(key, raw) for key, raw in requests.items()))
    responses: RawMap = {}
    for key, reply in replies:
        if reply.is_error:
            error = messages.try_map(reply.body) or {}
            text = messages.try_str(error.get("message")) or "no reason given"
            raise Fault(
                "question-refused",
                f"{server}: the client did not answer the server's question ({text}), so the call was given up. It may "
                "have taken effect in part: read the target again before a retry.",
                stage=Stage.EXECUTE, verdict=Verdict.OUTCOME_UNKNOWN, server=server, tool=tool,
            )  # fmt: skip
        responses[key] = Raw(reply.body)
    added: RawMap = {}
    if responses:
        added["inputResponses"] = Raw(messages.write_map(responses))
    state = members.get("requestState")
    if state is not None:
        added["requestState"] = state
    return added


def _with_elicitation_id(params: Raw | None) -> Raw | None:
    """Legacy URL elicitations need an id, which the modern era dropped (2026-07-28, changelog, Minor 11)."""
    members = messages.try_map(params)
    if members is None or messages.try_str(members.get("mode")) != "url" or "elicitationId" in members:
        return params
    members["elicitationId"] = messages.raw(secrets.token_urlsafe(12))
    return Raw(messages.write_map(members))


def approval_params(tool: str, arguments: Raw | None) -> Raw:
    """What a person is asked before a call: which tool, with which arguments (shortened)."""
    shown = _visible(bytes(arguments or EMPTY_OBJECT).decode("utf-8", "replace"))
    if len(shown) > 1000:
        shown = shown[:1000] + f"... ({len(shown)} characters in all)"
    return messages.raw(
        {
            "mode": "form",
            "message": f"Interlock asks: may {tool} be called with {shown} ?",
            "requestedSchema": {
                "type": "object",
                "properties": {"approve": {"type": "boolean", "title": "Allow this call", "default": False}},
                "required": ["approve"],
            },
        }
    )


def _visible(text: str) -> str:
    """JSON text without anything that hides or reorders what a person reads. Escapes mean the same inside of strings."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " if char in "\n\r\t" else json.dumps(char)[1:-1] for char in text)


def approved(answer: Raw | bytes | None) -> bool:
    """True for `accept`, unless the form itself says no: anything in the box but a plain true is one."""
    members = messages.try_map(answer) or {}
    if messages.try_str(members.get("action")) != "accept":
        return False
    content = messages.try_map(members.get("content")) or {}
    return "approve" not in content or messages.try_json(content["approve"]) is True
