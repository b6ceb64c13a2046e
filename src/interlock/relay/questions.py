"""A server's question put to a legacy client as a request of ours, shown as that server's."""

from __future__ import annotations

import asyncio

from interlock.relay.client import Client
from interlock.relay.exchange import Exchange
from interlock.upstream.contract import Progress, Reply
from interlock.wire import codes, messages
from interlock.wire.eras import QUESTIONS, Era, has_capability
from interlock.wire.messages import Raw, RawMap

ANSWER_SECONDS = 300.0
"""How long a person gets. Afterwards the server is told that there is no answer."""


def refusal(code: int, text: str) -> Reply:
    return Reply(messages.error_body(code, text), True, Era.LEGACY)


def with_server_name(server: str, method: str, params: Raw | None) -> Raw | None:
    """The question with the asking server named in its text, so that none can pose as Interlock or as another."""
    if method != "elicitation/create":
        return params
    members = messages.try_map(params)
    text = messages.try_str(members.get("message")) if members is not None else None
    if members is None or text is None:
        return params
    members["message"] = messages.raw(f"[{server}] {text}")
    return Raw(messages.write_map(members))


def no_progress(params: RawMap) -> None:
    """For questions whose asker does not want to hear how the client is getting on."""


async def ask(
    client: Client, exchange: Exchange | None, method: str, params: Raw | None, progress: Progress = no_progress
) -> Reply:
    """Send the question on the request's own stream, or outside one where there is none, and wait. Never raises a refusal.

    Where the question wants progress, its token becomes the question's id on this hop, and `progress` gets what comes.
    """
    if method not in QUESTIONS:
        return refusal(codes.METHOD_NOT_FOUND, f"Method not found: {method}")
    if not has_capability(client.capabilities, method):
        return refusal(codes.METHOD_NOT_FOUND, f"The client does not support {method}")
    send = exchange.channel.notify if exchange is not None and not exchange.done else client.push
    if send is None:
        return refusal(codes.INTERNAL_ERROR, "There is no way to ask this client now")
    try:
        id, future = client.new_question()
    except OverflowError:
        return refusal(codes.INTERNAL_ERROR, "Too many questions to this client are open")
    try:
        client.progress[id] = progress
        send(messages.request(id, method, _with_token(params, id)))
        async with asyncio.timeout(ANSWER_SECONDS):
            return await future
    except TimeoutError:
        return refusal(codes.INTERNAL_ERROR, f"No answer from the client within {ANSWER_SECONDS:g} s")
    except asyncio.CancelledError:
        if future.cancelled():  # the client went away, not our caller
            return refusal(codes.INTERNAL_ERROR, "The client is gone")
        send(messages.notification("notifications/cancelled", messages.encode({"requestId": id})))
        raise
    finally:
        client.questions.pop(id, None)
        client.progress.pop(id, None)


def _with_token(params: Raw | None, token: int) -> Raw | None:
    if params is None or b"progressToken" not in bytes(params):
        return params
    members = messages.try_map(params) or {}
    meta = messages.try_map(members.get("_meta"))
    if not meta or "progressToken" not in meta:
        return params
    meta["progressToken"] = messages.raw(token)
    members["_meta"] = Raw(messages.write_map(meta))
    return Raw(messages.write_map(members))
