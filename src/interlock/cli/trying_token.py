"""A personal access token, tried once: nobody signs in with it, so all that can be said is whether the server takes it."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.cli.exit_codes import NEVER_REACHED, OK
from interlock.cli.remote import Target, command
from interlock.cli.signing_in import Outcome
from interlock.doctor.probe import Prober, Unreached, sent_headers
from interlock.model.fault import Fault
from interlock.upstream.oauth.static_token import StaticToken

SECONDS = 15.0


async def try_token(target: Target, environ: Mapping[str, str]) -> Outcome:
    """One harmless request with the token. Nothing is kept."""
    transport = target.transport
    assert transport.token is not None
    token = StaticToken(target.name, transport.token, environ)
    try:
        value = await token.ready(SECONDS)
    except Fault as fault:
        return Outcome(
            target.name, NEVER_REACHED, (fault.message.removesuffix(" The server did not get the request."),)
        )
    prober = Prober(target.url, sent_headers(transport, environ), transport.kind, SECONDS)
    try:
        spoken = await prober.speak(value)
    except Unreached as failure:
        return _said(target, NEVER_REACHED, f"{failure}. {command('doctor bridge', target.name)} shows each step.")
    status = spoken.heard.status
    if spoken.heard.nothing_there:
        return _said(
            target, NEVER_REACHED, "HTTP 404: there is no MCP server at this address. Check the path of its URL."
        )
    if status in (401, 403):
        what = "rejects" if status == 401 else "takes, but gives too few rights to,"
        return _said(target, NEVER_REACHED, f"the server {what} the token from {token.name} (HTTP {status}).")
    if spoken.era == "unsettled":
        return _said(target, NEVER_REACHED, f"a first request with the token from {token.name} ended in HTTP {status}.")
    return _said(
        target, OK, f"the server takes the token from {token.name}. Nothing is kept of it, and nobody has to sign in."
    )


def _said(target: Target, code: int, text: str) -> Outcome:
    return Outcome(target.name, code, (f"{target.name}: {text}",), token=code == OK)
