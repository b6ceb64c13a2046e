"""A modern server's rounds for a legacy client."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

import pytest

from interlock.model.fault import Fault
from interlock.model.verdict import Verdict
from interlock.relay.bridging import Bridge
from interlock.relay.exchange import Exchange
from interlock.relay.rounds import Rounds
from interlock.upstream.contract import Caller, Outgoing, Reply
from interlock.upstream.server import Server
from interlock.wire.eras import Era
from interlock.wire.messages import Raw

CALLER = Caller("ann", "ann", Raw(b"{}"), era=Era.LEGACY)


@dataclass
class Asking:
    """Answers every request the same."""

    body: bytes
    key: str = "srv"
    params: list[dict[str, Raw]] = field(default_factory=list)

    async def request(self, out: Outgoing) -> Reply:
        self.params.append(dict(out.params))
        return Reply(self.body, False, Era.MODERN)


@pytest.mark.parametrize(
    ("rest", "slug", "sent"),
    [
        ("", "bad-answer", 1),
        (',"inputRequests":{}', "bad-answer", 1),
        (',"inputRequests":[1]', "bad-answer", 1),
        (',"requestState":"s"', "too-many-rounds", 16),  # nothing is asked, but how to go on is said
    ],
    ids=["nothing", "no requests", "no object", "only a state"],
)
async def test_a_call_is_not_made_again_without_anything_new(rest: str, slug: str, sent: int) -> None:
    server = Asking(b'{"resultType":"input_required"' + rest.encode() + b"}")
    bridge = Bridge(Rounds(b"k" * 32, b"{}"), True)
    with pytest.raises(Fault) as caught:
        await bridge.call_for_legacy(
            cast(Exchange, None), cast(Server, server), "srv/tool", Outgoing("tools/call", {}, CALLER, 5.0)
        )
    assert (caught.value.slug, caught.value.verdict) == (slug, Verdict.OUTCOME_UNKNOWN)
    assert len(server.params) == sent
