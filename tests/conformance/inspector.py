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
from functools import cache
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
Question = tuple[str, ...]
QUESTIONS: tuple[Question, ...] = (
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


def questions_of(visit: Visit) -> Sequence[Question]:
    """All of them; `auto` ends in one of the other two eras, so a few tell enough."""
    return QUESTIONS[:2] + QUESTIONS[6:7] if visit.era == "auto" else QUESTIONS


def run_visit(visit: Visit) -> list[str]:
    """Ask the visit's questions; each line of the result names one and how the answers differ."""
    expected = direct_answers(visit.era, visit.peer)
    with front_of(visit) as target, ThreadPoolExecutor(JOBS) as pool:
        asked = {one: pool.submit(ask, target, visit.era, one) for one in questions_of(visit)}
        answers = {one: answer.result() for one, answer in asked.items()}
    wanted = {one: _as_served(expected[one], visit) for one in answers}
    return [
        f"{' '.join(one[1:])}: expected {wanted[one]!r}, through Interlock {answers[one]!r}"
        for one in answers
        if answers[one] != wanted[one]
    ]


@cache
def direct_answers(era: InspectorEra, peer: Server) -> dict[Question, object]:
    """What the fixture answers to every question without Interlock."""
    with upstream(peer, "http") as url, ThreadPoolExecutor(JOBS) as pool:
        asked = [(one, pool.submit(ask, [url], era, one)) for one in QUESTIONS]
        return {one: answer.result() for one, answer in asked}


def _as_served(answer: object, visit: Visit) -> object:
    """The direct answer, with the caching hints that a server which sends none must get: stale at once, and private."""
    if visit.server != "legacy" or not isinstance(answer, dict) or not isinstance(answer.get("result"), dict):
        return answer
    result = answer["result"]
    hints = {"ttlMs": 0, "cacheScope": "private"}
    return {**answer, "result": result | {name: value for name, value in hints.items() if name in result}}


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
