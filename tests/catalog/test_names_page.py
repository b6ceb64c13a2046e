"""docs/names.md says what the profiles and functions say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from interlock.catalog.naming import CONSERVATIVE, exposed_name, known_hosts, profile_for
from interlock.catalog.uris import expose_uri
from interlock.model.names import CanonicalName

PAGE = (Path(__file__).resolve().parents[2] / "docs/names.md").read_text(encoding="utf-8")


def rows(header: str) -> list[list[str]]:
    """The cells of the table that begins with this header, without back-quotes."""
    table = PAGE.partition(f"| {header} |")[2].partition("\n\n")[0]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_every_host_has_its_row() -> None:
    assert [row[0] for row in rows("host")] == [*known_hosts(), "any other"]


@pytest.mark.parametrize("row", rows("host"), ids=lambda row: row[0])
def test_the_row_of_a_host_is_its_profile(row: list[str]) -> None:
    profile = profile_for(row[0])
    before = "unknown" if profile.evidence == "unknown" else profile.host_prefix
    assert row[1:] == [before, str(profile.total), str(profile.limit), profile.alphabet, profile.evidence]
    assert (row[0] == "any other") == (profile is CONSERVATIVE)


@pytest.mark.parametrize("row", rows("canonical"), ids=lambda row: row[0])
def test_example_names_are_right(row: list[str]) -> None:
    name = CanonicalName.parse(row[0])
    assert row[1:] == [exposed_name(name, profile_for(host)) for host in ("claude-code", "gemini-cli", "copilot-cli")]


@pytest.mark.parametrize("row", rows("key"), ids=lambda row: row[0])
def test_example_uris_are_right(row: list[str]) -> None:
    assert row[2] == expose_uri(row[0], row[1])


def test_the_tables_were_found() -> None:
    assert re.findall(r"^\| (host|canonical|key) \|", PAGE, re.MULTILINE) == ["canonical", "host", "key"]
