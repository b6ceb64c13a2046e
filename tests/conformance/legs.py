"""The runs: which server stands behind Interlock, how it is reached, and what the result is compared with."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import programs
from .processes import environment, free_port, gateway, serving

Revision = Literal["2025-06-18", "2025-11-25", "2026-07-28"]
Server = Literal["sdk", "legacy", "modern", "dead"]
Transport = Literal["http", "sse", "stdio"]
Era = Literal["auto", "modern", "legacy"]

OLDER: Revision = "2025-06-18"
LEGACY: Revision = "2025-11-25"
MODERN: Revision = "2026-07-28"
OWN_FRONT = {
    LEGACY: ("server-initialize", "server-session-lifecycle", "ping", "dns-rebinding-protection"),
    MODERN: ("dns-rebinding-protection",),
}
"""Scenarios that Interlock answers by itself, so that they must pass while its only server is down."""


@dataclass(frozen=True, slots=True)
class Leg:
    """One run of the server scenarios through Interlock.

    `baseline` names the server of the direct run to compare with; a crossed run is compared with the fixture of the
    client's own era, which has the same content.
    """

    server: Server
    transport: Transport
    revision: Revision
    baseline: Server
    era: Era = "auto"
    scenarios: tuple[str, ...] = ()
    """Empty: all of the revision."""

    @property
    def name(self) -> str:
        era = "" if self.era == "auto" else f"-{self.era}"
        return f"{self.server}-{self.transport}{era}@{self.revision}"


LEGS = (
    # The SDK's server speaks both eras, and Interlock speaks the client's to it; once it is held to one era.
    Leg("sdk", "http", MODERN, "sdk"),
    Leg("sdk", "http", LEGACY, "sdk"),
    Leg("sdk", "http", LEGACY, "sdk", era="legacy"),
    Leg("sdk", "stdio", MODERN, "sdk"),
    Leg("sdk", "stdio", LEGACY, "sdk"),
    Leg("modern", "http", MODERN, "modern"),
    Leg("modern", "stdio", MODERN, "modern"),
    Leg("legacy", "http", LEGACY, "legacy"),
    Leg("legacy", "stdio", LEGACY, "legacy"),
    Leg("legacy", "sse", LEGACY, "legacy"),
    # Crossed: the client speaks one era, the server the other.
    Leg("legacy", "http", MODERN, "modern"),
    Leg("legacy", "stdio", MODERN, "modern"),
    Leg("modern", "http", LEGACY, "legacy"),
    Leg("modern", "stdio", LEGACY, "legacy"),
    # An older client of the legacy family, for which the suite has fewer scenarios.
    Leg("legacy", "http", OLDER, "legacy"),
    Leg("modern", "http", OLDER, "legacy"),
    *(Leg("dead", "http", revision, "sdk", scenarios=OWN_FRONT[revision]) for revision in (LEGACY, MODERN)),
)

_LEGACY_SCENARIOS = """
completion-complete dns-rebinding-protection elicitation-sep1034-defaults elicitation-sep1330-enums
json-schema-2020-12 logging-set-level ping prompts-get-embedded-resource prompts-get-simple prompts-get-with-args
prompts-get-with-image prompts-list resources-list resources-read-binary resources-read-text resources-subscribe
resources-templates-read resources-unsubscribe server-initialize server-session-lifecycle
server-sse-multiple-streams server-sse-polling tools-call-audio tools-call-elicitation tools-call-embedded-resource
tools-call-error tools-call-image tools-call-mixed-content tools-call-sampling tools-call-simple-text
tools-call-with-logging tools-call-with-progress tools-list
"""
_MODERN_SCENARIOS = """
caching completion-complete dns-rebinding-protection http-custom-header-server-validation http-header-validation
input-required-result-basic-elicitation input-required-result-basic-list-roots input-required-result-basic-sampling
input-required-result-capability-check input-required-result-ignore-extra-params
input-required-result-missing-input-response input-required-result-multi-round
input-required-result-multiple-input-requests input-required-result-non-tool-request
input-required-result-request-state input-required-result-result-type input-required-result-tampered-state
input-required-result-unsupported-methods input-required-result-validate-input json-schema-2020-12
prompts-get-embedded-resource prompts-get-simple prompts-get-with-args prompts-get-with-image prompts-list
resources-list resources-read-binary resources-read-text resources-templates-read sep-2164-resource-not-found
server-sse-multiple-streams server-stateless tools-call-audio tools-call-embedded-resource tools-call-error
tools-call-image tools-call-mixed-content tools-call-simple-text tools-call-with-progress tools-list
"""
_NOT_IN_OLDER = """
dns-rebinding-protection elicitation-sep1034-defaults elicitation-sep1330-enums json-schema-2020-12
server-sse-multiple-streams server-sse-polling
"""
SCENARIOS: dict[Revision, tuple[str, ...]] = {
    OLDER: tuple(name for name in _LEGACY_SCENARIOS.split() if name not in _NOT_IN_OLDER.split()),
    LEGACY: tuple(_LEGACY_SCENARIOS.split()),
    MODERN: tuple(_MODERN_SCENARIOS.split()),
}
"""What the suite runs at each revision: 27, 33 and 40 scenarios. A run without one of them is no run."""


def manifest(transport_entry: str, era: Era = "auto") -> str:
    """A manifest of one server whose names are shown as they are and whose calls run without asking."""
    return f"""\
schemaVersion: agent-routing/v1
integrationId: upstream
names: verbatim
era: {era}
transports:
  {transport_entry}
policy:
  defaultApproval: auto
"""


def stdio_command(server: Server) -> list[str]:
    """The command of a server on standard input and output."""
    if server == "sdk":
        return [
            sys.executable,
            str(Path(__file__).with_name("sdk_server.py")),
            str(programs.sdist().server_folder),
            "--stdio",
        ]
    return [sys.executable, "-m", f"interlock.lab.{server}_server", "--stdio"]


@contextmanager
def upstream(server: Server, transport: Transport) -> Iterator[str]:
    """Start a server and give its URL."""
    if server == "dead":
        yield f"http://127.0.0.1:{free_port()}/mcp"
    elif server == "sdk":
        port = free_port()
        command = [sys.executable, str(Path(__file__).with_name("sdk_server.py")), str(programs.sdist().server_folder)]
        with serving([*command, "--http", str(port)], port=port) as running:
            yield running.url
    else:
        with serving([sys.executable, "-m", f"interlock.lab.{server}_server", f"--{transport}", "0"]) as running:
            yield running.url


@contextmanager
def through(leg: Leg) -> Iterator[str]:
    """Start the leg's server and Interlock in front of it, and give Interlock's URL."""
    if leg.transport == "stdio":
        with gateway(manifest(stdio_entry(stdio_command(leg.server)), leg.era)) as running:
            yield running.url
    else:
        with (
            upstream(leg.server, leg.transport) as url,
            gateway(manifest(url_entry(leg.transport, url), leg.era)) as running,
        ):
            yield running.url


def stdio_entry(command: list[str]) -> str:
    """The transport of a child process, with this checkout importable in it."""
    env = {"PYTHONPATH": environment()["PYTHONPATH"]}
    return f"stdio: {{command: {json.dumps(command)}, env: {json.dumps(env)}}}"


def url_entry(transport: Transport, url: str) -> str:
    return f"{transport}: {{endpoint: '{url}'}}"
