"""Asking a person whether a call may be made, in whichever way this client allows."""

from __future__ import annotations

from interlock.model.decision import Decision
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.relay.exchange import Exchange
from interlock.relay.questions import ask
from interlock.relay.rounds import APPROVAL_KEY, Answered, Retry, Rounds, approval_params, approved, request_of
from interlock.wire.eras import Era, has_capability


async def ask_person(
    rounds: Rounds, exchange: Exchange, *, server: str, tool: str, retry: Retry, decision: Decision
) -> str:
    """Returns how the person's yes was had. Raises Fault (`needs-approval`, `declined`), or Answered with the question.

    `tool` is the canonical name. A retry under our seal was approved in an earlier round.
    """
    sealed = retry.sealed
    if sealed is not None and sealed.purpose != "approve":
        if sealed.purpose != "park":  # a parked call is taken up once anyhow
            rounds.spend(sealed)
        return "a person approved it in an earlier round"
    client = exchange.client
    arguments = exchange.params.get("arguments")
    if sealed is not None:
        answer = (retry.responses or {}).get(APPROVAL_KEY)
        exchange.params.pop("inputResponses", None)
        if answer is not None:
            if approved(answer):
                rounds.spend(sealed)
                return "a person approved it"
            raise _declined(server, tool)
    if client.approve is not None:
        said = await client.approve(tool, decision, arguments)
        if said:
            return "approved at the terminal"
        raise _declined(server, tool) if said is False else _no_terminal(server, tool, decision)
    capabilities = exchange.meta.capabilities if exchange.era is Era.MODERN else client.capabilities
    if not has_capability(capabilities, "elicitation/create"):
        raise needs_approval(server, tool, decision)
    params = approval_params(tool, arguments)
    if exchange.era is Era.MODERN:
        state = rounds.seal(exchange, tool, rounds.new("approve", server, approved=True))
        raise Answered(rounds.required({APPROVAL_KEY: request_of("elicitation/create", params)}, state))
    reply = await ask(client, exchange, "elicitation/create", params)
    if reply.is_error:
        raise needs_approval(server, tool, decision)
    if not approved(reply.body):
        raise _declined(server, tool)
    return "a person approved it"


def needs_approval(server: str, tool: str, decision: Decision) -> Fault:
    where = f" ({decision.rule})" if decision.rule else ""
    return Fault(
        "needs-approval",
        f"needs approval: {decision.reason}{where}, and this client cannot ask a person. Run it once by hand with "
        f"`interlock call {tool}`, or set the tool's `approval` or `policy.defaultApproval` in the manifest.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, tool=tool, retry="later",
    )  # fmt: skip


def _no_terminal(server: str, tool: str, decision: Decision) -> Fault:
    where = f" ({decision.rule})" if decision.rule else ""
    more = "" if decision.always else ", or add --yes"
    return Fault(
        "needs-approval",
        f"{tool} was not called: it needs approval: {decision.reason}{where}. There is no terminal to ask at; call it from one{more}.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, tool=tool, retry="later",
    )  # fmt: skip


def _declined(server: str, tool: str) -> Fault:
    return Fault(
        "declined", f"a person declined the call of {tool}. It was not made; do not repeat it unasked.",
        stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=server, tool=tool, retry="never",
    )  # fmt: skip
