"""The MCP inspector's command line as a client: a question must get the same answer with and without Interlock."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from . import programs
from .legs import Server, Transport, manifest, stdio_command, stdio_entry, upstream, url_entry
from .processes import environment, gateway, write_home

InspectorEra = Literal["legacy", "auto", "modern"]
Front = Literal["http", "stdio"]
JOBS = 2
CALL_SECONDS = 60
OWN_KEYS = ("io.modelcontextprotocol/serverInfo",)
"""`_meta` keys that name who answers, and so differ by design."""
QUESTIONS: tuple[tuple[str, ...], ...] = (
    ("--method", "tools/list"),
    ("--method", "tools/call", "--tool-name", "test_simple_text"),
    ("--method", "tools/call", "--tool-name", "test_image_content"),
    ("--method", "tools/call", "--tool-name", "test_error_handling"),
    ("--method", "resources/list"),
    ("--method", "resources/templates/list"),
    ("--method", "resources/read", "--uri", "test://static-text"),
    ("--method", "resources/read", "--uri", "test://template/7/data"),
    ("--method", "prompts/list"),
    ("--method", "prompts/get", "--prompt-name", "test_prompt_with_arguments", "--prompt-args", "arg1=a", "arg2=b"),
)


@dataclass(frozen=True, slots=True)
class Visit:
    """One era of the inspector, at one front of Interlock, with one upstream behind it."""

    era: InspectorEra
    front: Front
    server: Server
    transport: Transport

    @property
    def name(self) -> str:
        return f"inspector-{self.era}-{self.front}-{self.server}-{self.transport}"

    @property
    def peer(self) -> Server:
        """The fixture that answers without Interlock: `auto` finds that Interlock speaks the modern era."""
        return "legacy" if self.era == "legacy" else "modern"


_ERAS: tuple[InspectorEra, ...] = ("legacy", "auto", "modern")
_PLACES: tuple[tuple[Front, Server, Transport], ...] = (
    ("http", "legacy", "http"),
    ("http", "legacy", "sse"),
    ("http", "modern", "http"),
    ("stdio", "legacy", "stdio"),
    ("stdio", "modern", "stdio"),
)
VISITS = tuple(Visit(era, *place) for era in _ERAS for place in _PLACES)


def run_visit(visit: Visit) -> list[str]:
    """Ask every question both ways; each line of the result names a question and how the answers differ."""
    with upstream(visit.peer, "http") as direct_url, front_of(visit) as target, ThreadPoolExecutor(JOBS) as pool:
        asked = [
            (
                question,
                pool.submit(ask, [direct_url], visit.era, question),
                pool.submit(ask, target, visit.era, question),
            )
            for question in QUESTIONS
        ]
        return [
            f"{' '.join(question[1:])}: direct {direct.result()!r}, through Interlock {through.result()!r}"
            for question, direct, through in asked
            if direct.result() != through.result()
        ]


@contextmanager
def front_of(visit: Visit) -> Iterator[list[str]]:
    """Start what the visit needs, and give the inspector's target: a URL, or the command of `interlock connect`."""
    with ExitStack() as stack:
        if visit.transport == "stdio":
            text = manifest(stdio_entry(stdio_command(visit.server)))
        else:
            text = manifest(url_entry(visit.transport, stack.enter_context(upstream(visit.server, visit.transport))))
        if visit.front == "http":
            yield [stack.enter_context(gateway(text)).url]
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="interlock-inspector-")))
            home = write_home(folder, text)
            yield [sys.executable, "-m", "interlock", "connect", "--home", str(home)]


def ask(target: Sequence[str], era: InspectorEra, question: Sequence[str]) -> object:
    """The inspector's JSON answer without the keys that name who answers, or what it printed instead."""
    url = target[0].startswith("http")
    arguments = [*target, *question] if url else [*question, "--cwd", str(programs.ROOT), "--", *target]
    extra = [] if url else [word for pair in _stdio_environment() for word in ("-e", pair)]
    command = [
        str(programs.node()),
        str(programs.inspector()),
        "--cli",
        "--format",
        "json",
        "--quiet",
        "--protocol-era",
        era,
    ]
    with tempfile.TemporaryDirectory(prefix="interlock-inspector-") as home:
        done = subprocess.run(
            [*command, *extra, *arguments],
            env=environment({"HOME": home, "USERPROFILE": home}),
            cwd=home,
            capture_output=True,
            text=True,
            timeout=CALL_SECONDS,
            check=False,
        )
    if done.returncode != 0 and not done.stdout.strip():
        return {"exit": done.returncode, "printed": done.stderr[-1500:]}
    try:
        return _without_own(json.loads(done.stdout))
    except ValueError:
        return {"exit": done.returncode, "printed": done.stdout[-1500:] + done.stderr[-1500:]}


def _stdio_environment() -> list[str]:
    return [f"PYTHONPATH={environment()['PYTHONPATH']}"]


def _without_own(answer: object) -> object:
    if isinstance(answer, list):
        return [_without_own(item) for item in answer]
    if not isinstance(answer, dict):
        return answer
    kept = {key: _without_own(value) for key, value in answer.items() if key not in OWN_KEYS}
    if kept.get("_meta") == {}:
        del kept["_meta"]
    return kept
