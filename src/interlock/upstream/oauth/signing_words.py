"""What a caller is told where a person has to act, or where no grant of this machine helps: what to do first, then why."""

from __future__ import annotations

from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict


def sign_in(server: str, url: str, code: str, why: str, slug: str) -> Fault:
    """Open `url`. `code` is empty or says which code to enter there."""
    return Fault(
        slug,
        f"{server}: a person has to sign in. Open this address{code}, then make the call again:\n  {url}\n"
        f"The server did not act on the request ({why}).",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, authorize_url=url,
    )  # fmt: skip


def elsewhere(server: str, why: str, slug: str) -> Fault:
    """This process is over before anybody could have clicked."""
    return Fault(
        slug,
        f"{server}: a person has to sign in: run `interlock login {server}`, then this again. The server did not act on the "
        f"request ({why}).",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server,
    )  # fmt: skip


def unfinished(server: str, address: str, seconds: float) -> Fault:
    """A sign-in was offered and not finished; no new one for so long."""
    seconds = max(seconds, 1.0)
    return Fault(
        "login-unfinished",
        f"{server}: a sign-in was offered a while ago and not finished, so no new one is opened by itself. `interlock login "
        f"{address}` opens one now; else retry in {seconds:.0f} s. The server did not act on the request.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, wait_seconds=round(seconds, 1),
    )  # fmt: skip


def rejected(server: str, address: str, why: str) -> Fault:
    """A token that was just issued is not taken."""
    return Fault(
        "token-rejected",
        f"{server}: the server rejected a token that was issued to it a moment ago ({why}). It did not act on the request. "
        f"`interlock doctor bridge {address}` compares what the token says with what was expected; the setting "
        "oauth.resource (--resource) overrides the resource that is asked for.",
        stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=server, http_status=401,
    )  # fmt: skip


def scopes_in_vain(server: str, scopes: str, *, granted: bool) -> Fault:
    """Sign-in after sign-in does not give the server what it asks for."""
    asked = scopes or "scopes that it does not name"
    why = "which was granted" if granted else "and its authorization server does not grant that"
    return Fault(
        "insufficient-scope",
        f"{server}: the server keeps asking for {asked}, {why}. No further sign-in is offered for it. It did not act on the request.",
        stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=server, retry="never", http_status=403,
    )  # fmt: skip


def scopes_too_often(server: str, scopes: str, seconds: float) -> Fault:
    """The server has asked for one set of scopes after the other."""
    return Fault(
        "insufficient-scope",
        f"{server}: the server asks for {scopes or 'scopes that it does not name'}, after several other sets of scopes in the last "
        f"minutes. Nobody is asked for them for now; retry in {seconds:.0f} s. It did not act on the request.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, http_status=403, wait_seconds=round(seconds, 1),
    )  # fmt: skip


def too_slow(server: str, patience: float, seconds: float) -> Fault:
    """The caller's time is over; what was begun goes on."""
    return Fault(
        "auth-unreachable",
        f"{server}: authorization took longer than {patience:.3g} s and goes on in the background. The server did not get the "
        f"request. Retry in {seconds:.0f} s.",
        stage=Stage.AUTHORIZE, verdict=Verdict.WAIT, server=server, wait_seconds=seconds,
    )  # fmt: skip


def leaving(server: str) -> Fault:
    """This process is about to end."""
    return Fault(
        "draining", f"{server}: Interlock is shutting down; the server did not get the request.",
        stage=Stage.AUTHORIZE, verdict=Verdict.NEVER_REACHED, server=server,
    )  # fmt: skip
