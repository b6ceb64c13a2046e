"""How a server is reached: a transport that the host speaks, over an address that means what it should."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from urllib.parse import urlsplit

from interlock.hosts.checks.codes import found
from interlock.hosts.checks.launching import image_at, launch, name_of
from interlock.hosts.checks.references import references
from interlock.hosts.checks.subject import Subject
from interlock.hosts.declaration import Problem, Spot
from interlock.hosts.entry import Entry
from interlock.wire.address import is_loopback

_LOOPBACK_URL = re.compile(r"\b(?:https?|wss?)://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?=[:/?#]|\Z)", re.IGNORECASE)
_OUT_OF_CONTAINER = ("host.docker.internal", "host.containers.internal", "gateway.docker.internal")


def check(subject: Subject) -> Iterator[Problem]:
    entry = subject.runs
    if entry is None:
        return
    yield from _transport(subject, entry)
    if entry.url is not None:
        yield from _url(subject, entry.url)
    yield from _container(subject, entry)


def _transport(subject: Subject, entry: Entry) -> Iterator[Problem]:
    speaks = subject.adapter.transports.value
    if entry.transport in (None, "other"):
        return
    field, spot = subject.word(0) if entry.command else subject.url()
    if "type" in subject.declaration.spots:
        field, spot = "type", subject.at("type")
    if speaks is not None and entry.transport not in speaks:
        todo = ""
        if entry.transport in ("http", "sse") and "stdio" in speaks and entry.url is not None:
            todo = "Start `interlock bridge URL` in its place, which speaks stdio to the host."
        yield found(
            "transport-unsupported",
            f"{subject.adapter.label} does not speak {entry.transport}.",
            todo=todo,
            field=field,
            spot=spot,
        )
    elif entry.transport == "sse":
        todo = ""
        if speaks is not None and "http" not in speaks:
            todo = "Start `interlock bridge URL` in its place, which speaks both."
        yield found("sse-legacy", "It is reached by SSE.", todo=todo, field=field, spot=spot)


def _url(subject: Subject, url: str) -> Iterator[Problem]:
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return
    field, spot = subject.url()
    if not host or list(references(parts.netloc)):
        return
    local = is_loopback(host) or host.lower().endswith(".localhost")
    if parts.scheme.lower() in ("http", "ws") and not local and host.lower() not in _OUT_OF_CONTAINER:
        yield found("plain-http", f"{host} is reached by plain {parts.scheme.lower()}.", field=field, spot=spot)
    if local and subject.machine.surrounding == "container":
        yield found(
            "loopback-in-container", f"The host runs in a container, where {host} is that container.",
            severity="note", field=field, spot=spot,
        )  # fmt: skip


def _container(subject: Subject, entry: Entry) -> Iterator[Problem]:
    """A server in a container that is to reach something on this machine."""
    start = launch(entry.command)
    if start is None or name_of(start.program) not in ("docker", "podman", "nerdctl") or start.args[:1] != ("run",):
        return
    args = start.args[1:]
    end = image_at(args)
    options = args[: len(args) if end is None else end]
    if any(word in ("--network=host", "--net=host") for word in options) or any(
        one in ("--network", "--net") and other == "host" for one, other in pairwise(options)
    ):
        return
    for index, word in enumerate(args):
        if _LOOPBACK_URL.search(word):
            field, spot = subject.word(start.offset + 2 + index)
            yield _inside(field, spot)
    handed = {name for word in options for name in [word.removeprefix("--env=").partition("=")[0]]}
    for name, value in entry.env.items():
        if name in handed and _LOOPBACK_URL.search(value):
            yield _inside(*subject.env(name))


def _inside(field: str, spot: Spot) -> Problem:

    return found(
        "loopback-in-container",
        f"`{field}` holds a loopback address, and the server runs in a container.",
        field=field,
        spot=spot,
    )
