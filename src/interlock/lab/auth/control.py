"""The control endpoint: `GET /control` tells what happened, `POST /control` changes settings and does things.

The body of a POST, every member optional:

    {"set": {"clock": 1800, "mishaps": []},            settings of behaviour.py, by name
     "mishap": {"at": "token", "kind": "drop", "times": 1},        one more mishap
     "do": ["revoke_access", "forget_clients"],        acts, in order
     "down_for": 0.5}                                  the MCP server goes away for so many seconds

It lives on a port of its own, so that no setting and no act reaches it. Settings are checked with msgspec; the servers
themselves use the standard library alone.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import typing
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from interlock.lab.auth.behaviour import Behaviour, Mishap
from interlock.lab.http_server import Reply, Request
from interlock.lab.jsonrpc import JsonObject, RpcError, as_object, decode

if TYPE_CHECKING:
    from interlock.lab.auth.lab import AuthLab

MEMBERS = {"set", "mishap", "do", "down_for"}


class Control:
    """Acts on one lab."""

    def __init__(self, lab: AuthLab) -> None:
        self._lab = lab
        self._types = {name: kind for name, kind in typing.get_type_hints(Behaviour).items() if name != "dice"}
        self._returning: set[asyncio.Task[None]] = set()

    async def handle(self, request: Request, reply: Reply) -> None:
        if request.path != "/control":
            await reply.send(404)
            return
        if request.method == "POST":
            try:
                await self.act(as_object(decode(request.body), "body"))
            except (RpcError, msgspec.ValidationError, ValueError) as error:
                await reply.send_json(400, {"error": str(error)})
                return
        await reply.send_json(200, self.report())

    def report(self) -> JsonObject:
        """Everything that was counted, and the settings as they are."""
        settings = {name: getattr(self._lab.behave, name) for name in self._types}
        settings["mishaps"] = [dataclasses.asdict(mishap) for mishap in self._lab.behave.mishaps]
        return {**self._lab.truth.as_json(), "settings": settings}

    async def act(self, body: JsonObject) -> None:
        """Do what a POST says. ValueError or msgspec.ValidationError where it cannot be understood; then nothing is done."""
        if unknown := body.keys() - MEMBERS:
            raise ValueError(f"unknown members: {', '.join(sorted(unknown))}")
        settings = {name: self._setting(name, value) for name, value in as_object(body.get("set", {}), "set").items()}
        mishap = msgspec.convert(body["mishap"], Mishap) if "mishap" in body else None
        acts = [self._act(name) for name in msgspec.convert(body.get("do", []), list[str])]
        down_for = msgspec.convert(body.get("down_for"), float | None)
        for name, value in settings.items():
            setattr(self._lab.behave, name, value)
        if "seed" in settings:
            self._lab.behave.dice = random.Random(self._lab.behave.seed)
        if mishap is not None:
            self._lab.behave.mishaps.append(mishap)
        for act in acts:
            await act()
        if down_for is not None:
            await self._lab.mcp_listener.down()
            task = asyncio.ensure_future(self._come_back(down_for))
            self._returning.add(task)
            task.add_done_callback(self._returning.discard)

    def close(self) -> None:
        """Nothing comes back any more."""
        for task in self._returning:
            task.cancel()

    def _setting(self, name: str, value: object) -> object:
        if name not in self._types:
            raise ValueError(f"unknown setting: {name}")
        return msgspec.convert(value, self._types[name])

    def _act(self, name: str) -> Callable[[], Awaitable[None]]:
        lab = self._lab
        at_once: dict[str, Callable[[], None]] = {
            "revoke_access": lab.revoke_access,
            "kill_families": lab.kill_families,
            "forget_clients": lab.forget_clients,
            "forget_sessions": lab.forget_sessions,
            "cut_connections": lab.mcp_listener.cut,
            "approve_devices": lambda: lab.authorization.consent.decide_devices(True),
            "deny_devices": lambda: lab.authorization.consent.decide_devices(False),
            "clear_counts": lab.truth.clear,
        }
        later: dict[str, Callable[[], Awaitable[None]]] = {
            "mcp_down": lab.mcp_listener.down,
            "mcp_up": lab.mcp_listener.up,
            "auth_down": lab.auth_listener.down,
            "auth_up": lab.auth_listener.up,
        }
        if name in later:
            return later[name]
        if name not in at_once:
            raise ValueError(f"unknown act: {name}; known: {', '.join(sorted(at_once | later))}")

        async def act() -> None:
            at_once[name]()

        return act

    async def _come_back(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._lab.mcp_listener.up()
