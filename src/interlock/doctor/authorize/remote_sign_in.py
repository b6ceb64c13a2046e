"""The sign-in of every remote server that is meant: the checks of `doctor bridge`, and of those what can make a sign-in loop."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from interlock.build import build
from interlock.doctor import bridge
from interlock.doctor.case import Case
from interlock.doctor.case import Machine as Here
from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.hosts.ours import ours
from interlock.install.entries import same_url
from interlock.manifest.config import HttpTransport, OAuth, Origin
from interlock.model.stage import Stage
from interlock.upstream.oauth.fetch import Fetcher

MOST = 10
SECONDS = 10.0
"""For each answer, at most."""
_OF_OTHERS = frozenset(("host-entries",))
"""`host-entry` and `two-entries` say it, for all hosts."""


async def discover(examination: Examination) -> list[Finding]:
    return [each for each in await _all(examination) if each.stage is Stage.DISCOVER]


async def authorize(examination: Examination) -> list[Finding]:
    return [each for each in await _all(examination) if each.stage is Stage.AUTHORIZE]


async def observe(examination: Examination) -> list[Finding]:
    return [each for each in await _all(examination) if each.stage is Stage.OBSERVE]


async def asked(examination: Examination) -> list[Finding]:
    """Where nobody was asked, nothing was looked at, and that is said."""
    if await _remotes(examination):
        return []
    return [
        Check("connection", Stage.DISCOVER).found(
            "unknown", "no server was asked: no manifest and no `interlock bridge` in a host's file names a remote one",
            why="What a host connects to by itself is asked only where it is named.",
            todo="`interlock doctor oauth-loop --server NAME` (or a URL) asks it.",
        )
    ]  # fmt: skip


_Step = tuple[str, Stage, Callable[[Examination], Awaitable[list[Finding]]]]
CONNECTION: Final[_Step] = ("connection", Stage.DISCOVER, discover)
ANY: Final[_Step] = ("connection", Stage.DISCOVER, asked)
SIGN_IN: Final[_Step] = ("sign-in", Stage.AUTHORIZE, authorize)
LOG: Final[_Step] = ("grant-log", Stage.OBSERVE, observe)


async def _all(examination: Examination) -> list[Finding]:
    async def look() -> list[Finding]:
        here = Here(
            examination.home, Path(examination.machine.home), Path(examination.machine.folder), examination.environ
        )
        fetch = Fetcher(user_agent=f"interlock/{build()}", environ=examination.environ)
        found: list[Finding] = []
        try:
            for name, transport, declared in await _remotes(examination):
                url = transport.endpoint or ""
                seconds = min(SECONDS, examination.seconds)
                case = Case(name, url, transport, here, fetch, seconds, declared)
                found += [replace(each, server=name) for each in await bridge.of_server(case)]
        finally:
            await fetch.close()
        return [each for each in found if each.check not in _OF_OTHERS]

    return await examination.once("remote-sign-in", look)


async def _remotes(examination: Examination) -> list[tuple[str, HttpTransport, Origin | None]]:
    """Of the manifests, by `interlock bridge` in hosts' files, and the URL that was named."""
    found: list[tuple[str, HttpTransport, Origin | None]] = []
    for config in examination.ready():
        transport = config.transport
        if isinstance(transport, HttpTransport):
            url = transport.endpoint or examination.environ.get(transport.endpoint_env or "", "")
            if url.startswith(("http://", "https://")):
                found.append((config.key, replace(transport, endpoint=url), config.origin))
    urls = []
    for each in await examination.running():
        entry = each.runs
        if entry is None:
            continue
        if ours(entry) == "bridge":
            urls += [word for word in entry.command if word.startswith(("http://", "https://"))]
        elif examination.server is not None and entry.url is not None:
            urls.append(entry.url)  # a host's own connection: what the server says is the same for all
    if examination.server is not None and "://" in examination.server:
        urls.append(examination.server)
    for url in urls:
        if not any(same_url(transport.endpoint, url) for _, transport, _ in found):
            found.append((url, HttpTransport(endpoint=url, oauth=OAuth()), None))
    return found[:MOST]
