"""The inventory at a glance: the worst first, a line for each entry and each thing that is wrong, and how to see more."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hosts.checks.tiny import TINY, machine, place

from interlock.cli.inventory_short import report
from interlock.cli.inventory_text import Style
from interlock.hosts.checks.codes import found
from interlock.hosts.declaration import Decision, Declaration, Problem, Spot, State
from interlock.hosts.entry import Entry
from interlock.hosts.inventory import Inventory
from interlock.hosts.reading import Reading

FILE = "/home/ada/.tiny/mcp.json"
SECRET = found("literal-secret", "`env.T` holds a secret.", spot=Spot(FILE, 5), severity="problem")
FAULT = found("file-unreadable", "it has a comma too much", todo="Remove the comma in line 9.", spot=Spot(FILE, 9))
PIN = found("unpinned-package", "`npx` runs the newest version there is of `@scope/package`.", spot=Spot(FILE, 6))
ASKS = found("npx-asks", "`npx` without `-y`.")


def _declared(server: str = "issues", state: State = "effective", *problems: Problem, **more: object) -> Declaration:
    return Declaration(
        host="tiny", scope="user", place=place(), server=server, entry=Entry(transport="stdio", command=("run",)), state=state,
        problems=list(problems), **{"spot": Spot(FILE, 3, 5), **more},  # type: ignore[arg-type]
    )  # fmt: skip


def _lines(tmp_path: Path, *declarations: Declaration, style: Style | None = None) -> list[str]:
    made = machine(tmp_path)
    return report([Inventory(made, [Reading(TINY, made, declarations=list(declarations))])], style or Style())


def test_counts_and_the_two_worst_stand_first(tmp_path: Path) -> None:
    decided = Decision("syntax", FAULT.spot, FAULT.seen)
    reserved = found("name-reserved", "Tiny keeps the name `x` for itself.", spot=Spot(FILE, 4))
    declared = [_declared("a", "effective", reserved, SECRET), _declared("b", "broken", FAULT, decided_by=decided)]
    lines = _lines(tmp_path, *declared)
    assert lines[:6] == [
        "2 entries in 1 host: 1 effective, 1 broken.",
        "3 problems. Nothing was changed.",
        "Worst:",
        "  ! file-unreadable: Tiny, ~/.tiny/mcp.json:9: it has a comma too much",
        "  ! literal-secret: Tiny, ~/.tiny/mcp.json:5: `env.T` holds a secret.",
        "",
    ]


def test_one_line_for_each_problem_without_reason_and_remedy(tmp_path: Path) -> None:
    lines = _lines(tmp_path, _declared("issues", "effective", SECRET, PIN, ASKS))
    start = lines.index("Tiny (tiny)")
    assert lines[start : start + 4] == [
        "Tiny (tiny)",
        "  ✓ issues  user     ~/.tiny/mcp.json:3",
        "      ! literal-secret (line 5): `env.T` holds a secret.",
        "      - unpinned-package (line 6): `npx` runs the newest version there is of `@…",
    ]
    assert lines[start + 4] == ""
    assert max(map(len, lines)) <= 80


def test_without_utf8_what_is_cut_ends_in_ascii(tmp_path: Path) -> None:
    lines = _lines(tmp_path, _declared("issues", "effective", PIN), style=Style(plain=True))
    assert "".join(lines).isascii()
    assert any(line.endswith("...") for line in lines)


def test_more_of_one_kind_in_one_entry_are_counted(tmp_path: Path) -> None:
    again = found("unpinned-package", "another", spot=Spot(FILE, 8))
    lines = _lines(tmp_path, _declared("issues", "effective", PIN, again))
    assert [line for line in lines if "unpinned" in line] == [
        "      - unpinned-package (line 6) +1: `npx` runs the newest version there is of…"
    ]


@pytest.mark.parametrize(
    ("declaration", "state"),
    [
        (_declared("a", "disabled", decided_by=Decision("entry-off", Spot(FILE, 7), "enabled")), "off by enabled in line 7"),
        (_declared("a", "broken", FAULT, decided_by=Decision("syntax", FAULT.spot, FAULT.seen)), "broken"),
        (
            _declared("a", "blocked", found("not-approved", "It waits."), decided_by=Decision("not-approved", None, "no approval")),
            "not approved",
        ),
        (_declared("a", "blocked", decided_by=Decision("policy", None, "a list of names")), "blocked: a list of names"),
        (
            _declared("a", "shadowed", decided_by=Decision("higher-scope", Spot("/home/ada/shop/x.json", 2), "project entry")),
            "shadowed by project entry x.json:2",
        ),
    ],
)  # fmt: skip
def test_the_state_and_its_reason_on_the_line_of_the_entry(
    tmp_path: Path, declaration: Declaration, state: str
) -> None:
    (line,) = [line for line in _lines(tmp_path, declaration) if line[2:5] in ("○ a", "✗ a", "⊘ a", "↓ a")]
    assert line.endswith(f"~/.tiny/mcp.json:3  {state}")


def test_what_another_host_has_said_of_the_same_file_is_not_said_again(tmp_path: Path) -> None:
    lines = _lines(tmp_path, _declared("a", "effective", SECRET), _declared("b", "effective", SECRET))
    assert sum("literal-secret (line 5)" in line for line in lines) == 1
    assert "  ✓ b  user     ~/.tiny/mcp.json:3  as above" in lines


def test_a_long_path_keeps_its_end(tmp_path: Path) -> None:
    far = _declared(spot=Spot("/home/ada/.config/some/where/deep/inside/mcp_config.json", 3))
    (line,) = [line for line in _lines(tmp_path, far) if "issues" in line and line.startswith("  ✓")]
    assert "~/.../inside/mcp_config.json:3" in line


def test_the_end_says_how_to_see_more(tmp_path: Path) -> None:
    text = " ".join(" ".join(_lines(tmp_path, _declared())).split())
    for words in ("`interlock inventory tiny`", "`--all`", "`interlock doctor`", "`interlock adopt --dry-run`"):
        assert words in text


def test_nothing_here(tmp_path: Path) -> None:
    assert _lines(tmp_path)[0] == "No host's file on this machine declares an MCP server."
