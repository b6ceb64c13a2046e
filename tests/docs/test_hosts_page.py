"""docs/hosts.md says of each host what the adapters say, docs/inventory.md every code there is."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.docs.hosts_page import PAGE, PAGES, rendered

from interlock.hosts.registry import IDS, every


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_tables_are_those_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert rendered(text) == text, "run `python -m tests.docs.hosts_page`"


def test_every_host_is_in_every_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(list(every())) == len(IDS)
    for adapter in every():
        assert page.count(f"\n| {adapter.label} |") >= 6, adapter.id
