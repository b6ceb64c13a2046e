"""The real call for a native entry: no process of ours is in between, so the server is asked the way the host will ask it."""

from __future__ import annotations

from interlock.install.proof import Outcome

DEADLINE_SECONDS = 15.0


def call(url: str, seconds: float = DEADLINE_SECONDS) -> Outcome:
    """One `initialize` over HTTP. A 401 proves the path as well as an answer does: the host will sign in. Never raises."""
    import time

    import httpx2

    begun = time.monotonic()
    params = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "interlock-setup", "version": "1"},
    }
    try:
        with (
            httpx2.Client(timeout=seconds, follow_redirects=False) as client,
            client.stream(
                "POST",
                url,
                json={"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
                headers={"Accept": "application/json, text/event-stream"},
            ) as answer,
        ):
            status = answer.status_code
    except httpx2.HTTPError as error:
        return Outcome("refused", said=f"{url} cannot be reached: {error}", verdict="never_reached")
    spent = time.monotonic() - begun
    if status == 401:
        return Outcome("login", said="the server wants a sign-in, which the host makes by itself", seconds=spent)
    # A modern server refuses `initialize` with 400 and says so in JSON-RPC (2026-07-28, basic/versioning): it is there.
    if 200 <= status < 300 or status == 400:
        return Outcome("tools", said=f"the server answered with HTTP {status}", seconds=spent)
    return Outcome("refused", said=f"the server answered with HTTP {status}", verdict="never_reached", seconds=spent)
