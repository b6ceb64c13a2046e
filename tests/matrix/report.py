"""Writes docs/matrix.md from a JUnit report of the matrix.

pytest tests/matrix --junitxml matrix.xml && python -m tests.matrix.report matrix.xml > docs/matrix.md
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

FOLDER = Path(__file__).parent
MODULES = (
    "lists", "calls", "streams", "questions", "changes", "cancel", "variants", "verbatim", "gates", "parking", "isolation",
    "bad_servers", "restart", "sdk",
)  # fmt: skip
"""Their tests, in the order of the page."""
PAIRINGS = [(client, server) for client in ("legacy", "modern") for server in ("legacy", "modern")]
HEAD = """\
# The behaviour matrix

What an MCP client and server can do together, tried through the gateway with real processes: `interlock up` and
`interlock connect` in the middle, fixture servers of both [eras](eras.md) on one side, and a small client without an SDK on
the other. The last rows use the client of the official Python SDK.

A column is a pairing of eras, client first. A number says how many combinations of transports passed, of how many were
tried: stdio and Streamable HTTP on the client's side; stdio, Streamable HTTP and, for legacy servers, HTTP+SSE on the
server's. The last column counts tests that do not depend on the server's era.

This page is made from a test report:

```sh
pytest tests/matrix --junitxml matrix.xml
python -m tests.matrix.report matrix.xml > docs/matrix.md
```

| behaviour | legacy, legacy | legacy, modern | modern, legacy | modern, modern | any |
| --- | --- | --- | --- | --- | --- |
"""


@dataclass(slots=True)
class Row:
    """Passed and all tests of one row, by pairing; None stands for any."""

    passed: dict[tuple[str, str] | None, int] = field(default_factory=dict)
    tried: dict[tuple[str, str] | None, int] = field(default_factory=dict)

    def count(self, pairing: tuple[str, str] | None, passed: bool) -> None:
        self.tried[pairing] = self.tried.get(pairing, 0) + 1
        self.passed[pairing] = self.passed.get(pairing, 0) + passed

    def cell(self, pairing: tuple[str, str] | None) -> str:
        tried = self.tried.get(pairing, 0)
        return f"{self.passed[pairing]} of {tried}" if tried else ""


def place_of(case: ElementTree.Element) -> tuple[int, int]:
    """Where a test stands: its module in the order of this page, and its function in the module."""
    module = (case.get("classname") or "").rpartition(".")[2]
    function = (case.get("name") or "").partition("[")[0]
    names = re.findall(r"^async def (test_\w+)", (FOLDER / f"{module}.py").read_text("utf-8"), re.MULTILINE)
    return MODULES.index(module.removeprefix("test_")), names.index(function)


def rows_of(report: str) -> dict[str, Row]:
    """The rows of a JUnit report, in a fixed order. Skipped tests do not count."""
    rows: dict[str, Row] = {}
    for case in sorted(ElementTree.parse(report).iter("testcase"), key=place_of):
        if case.find("skipped") is not None:
            continue
        properties = {each.get("name"): each.get("value") or "" for each in case.iter("property")}
        if "row" not in properties:
            continue
        passed = case.find("failure") is None and case.find("error") is None
        client_and_server: tuple[str, str] | None = None
        if "cell" in properties:
            client, _, server, _ = json.loads(properties["cell"])
            client_and_server = (client, server)
        rows.setdefault(properties["row"], Row()).count(client_and_server, passed)
    return rows


def lines_of(rows: dict[str, Row]) -> Iterator[str]:
    for text, row in rows.items():
        cells = [row.cell(pairing) for pairing in (*PAIRINGS, None)]
        yield f"| {text[0].upper()}{text[1:]} | {' | '.join(cells)} |".replace("|  |", "| |").replace("|  |", "| |")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.matrix.report", description=__doc__)
    parser.add_argument("report", metavar="REPORT.xml", help="what `pytest tests/matrix --junitxml REPORT.xml` wrote")
    rows = rows_of(parser.parse_args().report)
    print(HEAD + "\n".join(lines_of(rows)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
