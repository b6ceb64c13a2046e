"""The documentation says what the code does: links lead somewhere, and every name the code has is explained."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from interlock.cli.main import parser as build_parser
from interlock.wire.codes import CATALOG

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def _prose(page: Path) -> str:
    """The page without its code blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def _anchors(page: Path) -> set[str]:
    """The fragments that a page's headings make, as GitHub and most other renderers form them."""
    headings = re.findall(r"^#{1,6} (.+)$", _prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def _tracked_files() -> list[Path]:
    """Every file that is, or would be, in the repository."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, check=True, capture_output=True).stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_internal_links_lead_somewhere(page: Path) -> None:
    broken = []
    for target in _LINK.findall(_prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (fragment and fragment not in _anchors(file)):
            broken.append(target)
    assert broken == []


def test_every_page_is_reachable_from_the_index() -> None:
    linked = {(DOCS / target.partition("#")[0]).resolve() for target in _LINK.findall(_prose(DOCS / "index.md"))}
    assert set(DOCS.glob("*.md")) - linked == {DOCS / "index.md"}


def _error_entries() -> dict[str, str]:
    """Slug to text of each second-level entry of docs/errors.md; the first chapter explains and lists none."""
    _, _, entries = (DOCS / "errors.md").read_text(encoding="utf-8").partition("\n# The request\n")
    parts = re.split(r"^## (.+)$", entries, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_error_has_its_entry_and_no_other() -> None:
    assert sorted(_error_entries()) == sorted(CATALOG)


@pytest.mark.parametrize("slug", sorted(CATALOG))
def test_an_error_entry_says_what_a_person_needs(slug: str) -> None:
    code, title = CATALOG[slug]
    entry = re.sub(r"\s+", " ", _error_entries()[slug].replace("`", ""))
    assert entry.startswith(f" Code {code}: {title}.")
    for question in ("**What happened:**", "**Did it take effect?**", "**What to do:**"):
        assert question in entry


def test_exit_codes_are_documented() -> None:
    rows = re.findall(r"^\| (\d+) \|", (DOCS / "exit-codes.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [int(row) for row in rows] == list(range(9))


def _commands(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                yield from _commands(child, f"{name} {word}")


def _flags(parser: argparse.ArgumentParser) -> set[str]:
    """Long flags that `--help` shows; `--help` itself is explained once for all."""
    shown = (action for action in parser._actions if action.help != argparse.SUPPRESS)
    return {flag for action in shown for flag in action.option_strings if flag.startswith("--")} - {"--help"}


def _cli_chapters() -> dict[str, str]:
    parts = re.split(r"^## (.+)$", (DOCS / "cli.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {title.strip("`"): text for title, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_cli_reference_has_a_chapter_for_each_command_and_flag() -> None:
    chapters = _cli_chapters()
    common = set(re.findall(r"`(--[a-z-]+)", chapters["Flags that every command takes"]))
    wanted = {name: _flags(parser) for name, parser in _commands(build_parser(), "interlock") if " " in name}
    assert sorted(set(chapters) - {"Flags that every command takes"}) == sorted(wanted)
    for name, flags in wanted.items():
        documented = set(re.findall(r"`(--[a-z-]+)", chapters[name]))
        assert flags - common == documented - common, name


def _properties(schema: object) -> set[str]:
    """Names of all object members that a JSON Schema declares, wherever they stand."""
    names: set[str] = set()
    if isinstance(schema, dict):
        declared = schema.get("properties")
        names |= set(declared) if isinstance(declared, dict) else set()
        for value in schema.values():
            names |= _properties(value)
    elif isinstance(schema, list):
        for value in schema:
            names |= _properties(value)
    return names


def test_every_manifest_field_is_documented() -> None:
    command = [sys.executable, "-m", "interlock", "schema"]
    schema = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=30).stdout)
    documented = set(re.findall(r"[A-Za-z]+", " ".join(re.findall(r"`([^`]+)`", _prose(DOCS / "manifest.md")))))
    assert _properties(schema) >= {"schemaVersion", "integrationId", "transports"}
    assert _properties(schema) - documented == set()


def test_the_example_manifest_is_right(tmp_path: Path) -> None:
    manifest = str(ROOT / "examples/interlock.yaml")
    command = [sys.executable, "-m", "interlock", "check", "--json", "--home", str(tmp_path), "--manifest", manifest]
    shown = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=30).stdout)
    assert [server["key"] for server in shown["servers"]] == ["git", "time", "tracker"]
    assert [problem for problem in shown["problems"] if problem["severity"] == "error"] == []


# Written with brackets so that this file does not match itself.
_UNWANTED = re.compile(
    rb"(?<![\w.-])/(?:w[o]rk|f[a]rm|r[o]ot)/|py[p]i\.org|files\.python[h]osted|registry\.npm[j]s|(?<![\w.-])/tm[p]/(?:v|team|npm)/"
)


def test_no_machine_path_or_package_index_in_any_file() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {match.group().decode()}"
        for file in _tracked_files()
        for match in _UNWANTED.finditer(file.read_bytes())
    ]
    assert found == []


_PROOF = re.compile(r"`(tests/[\w/]+\.py)(?:::(test_\w+))?`")


def test_every_promise_names_a_test_that_is_there() -> None:
    rows = re.findall(r"^\| (\d+) \| .+$", (DOCS / "bridge.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(map(int, rows)) == [number for number in range(1, 68) if number not in (7, 12)]
    for row in re.findall(r"^\| \d+ \| .+$", (DOCS / "bridge.md").read_text(encoding="utf-8"), re.MULTILINE):
        proofs = _PROOF.findall(row)
        assert proofs, row
        for file, name in proofs:
            text = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"^(?:async )?def {name or 'test_'}", text, re.MULTILINE), row
