"""goose: `goose info -v` prints its configuration as it was read; nothing is started. Not tried here: told by its documents.

It may write its folders for data and logs on its first run.
"""

from __future__ import annotations

from collections.abc import Iterable

from interlock.hosts.oracles.asked import Asked, OracleSays
from interlock.hosts.oracles.running import Output, program, run, shown, without_list
from interlock.hosts.plugins.files import inner, text_of
from interlock.hosts.reading import Reading
from interlock.hosts.text.document import Damaged


def ask(reading: Reading, seconds: float, known: Iterable[str]) -> Asked:
    goose = program(reading.machine, "goose")
    asked = Asked(host="goose", command=("goose", "info", "-v"))
    parsed(run([goose, "info", "-v"], reading.machine, seconds), asked, known)
    return asked


def parsed(output: Output, asked: Asked, known: Iterable[str]) -> None:
    """The configuration stands as YAML below a heading; the block that begins with `extensions:` is enough."""
    from interlock.hosts.text import yaml

    lines = output.out.splitlines()
    start = next((index for index, line in enumerate(lines) if line.strip() == "extensions:"), None)
    if start is None:
        asked.partial = True
        asked.trouble = (
            "it printed no extensions" if output.code == 0 and output.out.strip() else without_list(output, known)
        )
        return
    depth = len(lines[start]) - len(lines[start].lstrip())
    block = ["extensions:"]
    for line in lines[start + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            break
        block.append(line[depth:])
    try:
        extensions = inner(yaml.parse("\n".join(block).encode()).value, "extensions")
    except Damaged:
        asked.partial, asked.trouble = True, "its extensions cannot be read"
        return
    for name, each in extensions.items():
        raw = inner(each)
        args = raw.get("args")
        words = [text_of(raw.get("cmd")), *(map(str, args) if isinstance(args, list) else ())]
        asked.servers[name] = OracleSays(
            state="enabled" if raw.get("enabled") is True else "disabled",
            runs=shown(text_of(raw.get("uri")) or " ".join(words).strip(), known),
        )
