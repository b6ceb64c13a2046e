"""One real process with `Logins`, for test_flow_processes.py and test_device.py. Takes orders and answers on its pipes.

`flow_child.py HOME FOUND FLOW TIMING [DIE_AT]`: at the step DIE_AT it kills itself with SIGKILL, as if by `kill -9`.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import msgspec

from interlock.cli.starting import run_loop
from interlock.manifest.config import OAuth
from interlock.upstream.oauth.documents import Discovered
from interlock.upstream.oauth.fetch import Fetcher
from interlock.upstream.oauth.flow import Logins, Timing
from interlock.upstream.oauth.grant_log import GrantLog
from interlock.upstream.oauth.grant_store import GrantStore, grant_id
from interlock.upstream.oauth.registration import RegistrationFailed


def say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


async def main(home: Path, found: Discovered, flow: str, timing: Timing, die_at: str) -> None:
    def reached(step: str) -> None:
        if step == die_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def build() -> str:
        return "v0+child"

    def show(url: str) -> bool:
        say({"opened": url})
        return True

    store, log = GrantStore(home), GrantLog(home, build)
    fetch = Fetcher(user_agent="test", environ={})
    logins = Logins(home, store, fetch, log, build=build, open_browser=show, timing=timing, reached=reached)
    settings = OAuth(flow="device" if flow == "device" else "browser")
    id = grant_id(found.resource, found.issuer, None)
    logins.on_grant = lambda id, grant: say({"on_grant": grant.generation})
    left = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, left.set)
    orders = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    leaving = loop.create_task(left.wait())
    say({"pid": os.getpid()})
    while not left.is_set():
        reading = loop.create_task(orders.readline())
        await asyncio.wait((reading, leaving), return_when=asyncio.FIRST_COMPLETED)
        if left.is_set():
            break
        line = reading.result()
        if not line:
            break
        order = json.loads(line)
        try:
            offer = await logins.offer(id, found, settings, {}, scope=(), seconds=20, **order)
        except RegistrationFailed as error:
            say({"failed": str(error)})
        else:
            say(
                {"url": offer.url, "mine": offer.mine, "granted": offer.grant is not None, "user_code": offer.user_code}
                | ({"snoozed": True} if offer.snoozed_until is not None else {})
            )
    await logins.linger(timing.linger_seconds)
    await logins.close()
    await fetch.close()


if __name__ == "__main__":
    home, found, flow, timing, *die_at = sys.argv[1:]
    run_loop(
        main(
            Path(home),
            msgspec.json.decode(found, type=Discovered),
            flow,
            Timing(**json.loads(timing)),
            die_at[0] if die_at else "",
        )
    )
