"""Runs the documentation: every `console` block of a page, in order, in an empty home, and compares what it prints.

In a page,

- a `console` block holds commands after `$ ` and their output; a line `...` stands for any lines, and `...` inside a
  line for any text; runs of spaces count as one;
- a block whose commands hold `...` is a sketch and is not run;
- any block with `title="NAME"` is written to the file NAME (`~/` is the home) before the commands that follow it;
- a command that ends in ` &` stays in the background; the page goes on when it has printed its last expected line;
- a question that ends in `[y/N]` is answered as the page shows it, `y` where it shows nothing.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import socket
import struct
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
INSPECTOR = ROOT / "tests/npm/node_modules/.bin/mcp-inspector"
_ALL = sorted([ROOT / "README.md", *ROOT.glob("docs/*.md")])
_BLOCK = re.compile(r"^```(?P<language>\w+)(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r'title="([^"]+)"')
_QUESTION = re.compile(rb"\[y/N\]:? ?$")
_SPINNER = re.compile("[\u2801-\u28ff]")
_MARK = "\x1e"
_SECONDS = 50.0
DEFAULT_PORT = "7420"


@dataclass(frozen=True)
class Step:
    """One command of a page and the output that the page shows for it."""

    command: str
    shown: str

    @property
    def background(self) -> bool:
        return self.command.endswith(" &")


def _steps(body: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        last = next(index for index, line in enumerate(lines) if not line.endswith("\\"))
        yield Step("\n".join(lines[: last + 1]), "\n".join(lines[last + 1 :]).strip("\n"))


def _script(page: str) -> tuple[str, list[Step]]:
    """A bash script that does what the page says, with a mark and the exit code after each command."""
    lines = ["trap 'kill $(jobs -p) 2>/dev/null' EXIT"]
    steps: list[Step] = []
    for block in _BLOCK.finditer(page):
        title = _TITLE.search(block["info"])
        if title:
            home, _, below = title[1].rpartition("~/")
            assert not home
            file = f'"$HOME"/{shlex.quote(below)}' if title[1] != below else shlex.quote(below)
            lines.append(f"mkdir -p $(dirname {file}); cat > {file} <<'END_OF_FILE'\n{block['body']}END_OF_FILE")
        if block["language"] != "console":
            continue
        found = list(_steps(block["body"]))
        for step in found if not any("..." in step.command for step in found) else ():
            steps.append(step)
            if step.background:
                awaited = [line for line in step.shown.splitlines() if line.strip() != "..."][-1].split("...")[0]
                log = f"$HOME/output-{len(steps)}"
                lines.append(f"{step.command.removesuffix('&')} >{log} 2>&1 &")
                lines.append(
                    f"until grep -sqF -- {shlex.quote(awaited)} {log}; do kill -0 $! || break; sleep 0.05; done"
                )
                lines.append(f"cat {log}")
            else:
                lines.append(step.command)
            lines.append(f"printf '{_MARK}%s{_MARK}' $?")
    return "\n".join(lines) + "\n", steps


PAGES = [page for page in _ALL if _script(page.read_text(encoding="utf-8"))[1]]


def _pattern(shown: str) -> re.Pattern[str]:
    """What the output has to match: the shown text, with `...` for anything and any run of spaces for one."""
    whole = r"(?:[^\n]*\n)*?"
    lines = []
    for line in shown.splitlines():
        words = [re.escape(word) for word in re.sub(r"\s+", " ", line).strip().split("...")]
        lines.append(whole if line.strip() == "..." else "[^\\n]*?".join(words) + "\n")
    return re.compile("".join(lines))


def _normal(output: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output).replace("\r\n", "\n").replace("\r", "\n")
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in plain.split("\n"))
    text = "\n".join(line for line in lines if not _SPINNER.match(line)).strip("\n")
    return f"{text}\n" if text else ""


def _run(script: Path, environment: dict[str, str], folder: Path) -> str:
    """Output of the script at a terminal of its own, where every question is answered with yes."""
    child, terminal = pty.fork()
    if child == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
        os.chdir(folder)
        os.execvpe("bash", ["bash", "--noprofile", "--norc", str(script)], environment)
    output = b""
    end = time.monotonic() + _SECONDS
    try:
        while time.monotonic() < end:
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(terminal, 65536)
            except OSError:
                break
            if not data:
                break
            output += data
            if _QUESTION.search(output):
                os.write(terminal, b"y\n")
        else:
            pytest.fail(f"not finished after {_SECONDS:.0f} s; so far:\n{output.decode(errors='replace')}")
    finally:
        os.close(terminal)
        if time.monotonic() >= end:
            os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return output.decode(errors="replace")


def _moved(page: str) -> str:
    """The page on free ports instead of its own, so that it runs beside other pages and beside a real Interlock."""
    for port in set(re.findall(r"127\.0\.0\.1:(\d+)", page)):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            free = probe.getsockname()[1]
        page = page.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}").replace(f"--port {port}", f"--port {free}")
        if port == DEFAULT_PORT:
            page = re.sub(r"^\$ interlock up(?!.* --port)", f"$ interlock up --port {free}", page, flags=re.MULTILINE)
    return page


def _tools(folder: Path) -> Path:
    """A folder for the search path: `interlock` of this checkout, an `npx` that runs the pinned inspector, and a `browser`."""
    source, python = shlex.quote(str(ROOT / "src")), shlex.quote(sys.executable)
    launchers = {
        "interlock": f'PYTHONPATH={source} exec {python} -m interlock "$@"',
        # A person who opens the address of a login and says yes at once.
        "browser": f'exec {python} -c "import sys, urllib.request as r; r.urlopen(sys.argv[1]).read()" "$1"',
        "npx": f'[ "$1" = -y ] && shift; shift; exec node {shlex.quote(str(INSPECTOR))} "$@"',
    }
    folder.mkdir()
    for name, line in launchers.items():
        (folder / name).write_text(f"#!/bin/sh\n{line}\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.mark.timeout(180)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    text, steps = _script(_moved(page.read_text(encoding="utf-8")))
    if "npx " in text and not INSPECTOR.exists():
        pytest.skip("needs the MCP inspector: run `make setup` on a machine with a package index")
    home = tmp_path / "home"
    folder = home / "project"
    folder.mkdir(parents=True)
    script = tmp_path / "page.sh"
    script.write_text(text)
    environment = {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(_tools(tmp_path / "bin")), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "LANG": "C.UTF-8",
        "TERM": "xterm",
        "NO_COLOR": "1",
        "BROWSER": "browser",
    }
    parts = _run(script, environment, folder).split(_MARK)
    outputs, codes = parts[0:-1:2], parts[1::2]
    report = "".join(f"$ {step.command}\n{output}" for step, output in zip(steps, outputs, strict=False))
    assert len(codes) == len(steps), f"the page stopped early:\n{report}{parts[-1]}"
    for step, output, code in zip(steps, outputs, codes, strict=True):
        assert code == "0", f"`{step.command}` ended with {code}:\n{report}"
        assert _pattern(step.shown).fullmatch(_normal(output)), (
            f"$ {step.command}\nshown:\n{step.shown}\nprinted:\n{output}"
        )
