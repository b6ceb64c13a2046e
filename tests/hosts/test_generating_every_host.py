"""Every host's own adapter under `generate`: written, read back by the same adapter, and a second run that changes nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.hosts.tiny import carry_out, gateway, machine

from interlock.hosts import generated, registry
from interlock.hosts.adapter import Adapter
from interlock.hosts.generating import Generated, place_for, plan, standing
from interlock.hosts.machine import Machine, Platform
from interlock.hosts.reading import read
from interlock.hosts.wanting import Prepared, WriteScope, candidates, connect, direct
from interlock.manifest.config import Gateway

HOME = "/home/ada/.interlock"
LOCAL = (
    "integrationId: a.notes\ntransports: {stdio: {command: [uvx, notes, --fast], env: {MODE: quiet, NOTES_TOKEN: "
    "{fromEnv: NOTES_TOKEN}}}}\ncapability: {tools: {deny: [wipe]}}\npolicy: {defaultApproval: prompt}\n"
    "tools: {list: {approval: auto}}\n"
)
REMOTE = (
    'integrationId: a.docs\ntransports: {http: {endpoint: "https://docs.example.com/mcp", headers: {X-Team: red, '
    'Authorization: {fromEnv: DOCS_TOKEN, prefix: "Bearer "}}}}\n'
)
SCOPES: tuple[WriteScope, ...] = ("user", "project", "local")


def prepared(adapter: Adapter, here: Machine, scope: WriteScope, found: Gateway, *, own: bool) -> list[Prepared]:
    if own:
        words = ("/home/ada/.interlock/bin/interlock", "connect", "--host", adapter.id)
        return [Prepared(connect(words, found, scope, here.folder), None)]
    return [direct(config, adapter, here, scope, here.folder) for config in candidates(found)[0]]


def run(adapter: Adapter, here: Machine, scope: WriteScope, found: Gateway, *, own: bool) -> Generated:
    ledger = generated.read(HOME, here)
    made = plan(adapter, here, prepared(adapter, here, scope, found, own=own), "warn", scope=scope, ledger=ledger)
    carry_out(here, [*made.edits, *generated.edits(HOME, made.owned)])
    return made


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
@pytest.mark.parametrize("id", registry.IDS)
def test_written_read_back_and_nothing_more_to_do(id: str, platform: Platform, tmp_path: Path) -> None:
    adapter = registry.find(id)
    assert adapter is not None
    found = gateway(tmp_path / "m", LOCAL, REMOTE)
    tried = 0
    for scope in SCOPES:
        if place_for(adapter, scope) is None:
            continue
        tried += 1
        for own in (False, True):
            folder = r"C:\code" if platform == "windows" else "/home/ada/code"
            here = machine(tmp_path / f"{scope}-{own}", folder, platform)
            Path(here.real(folder), ".git").mkdir(parents=True)
            made = run(adapter, here, scope, found, own=own)
            assert made.file is not None, scope
            written = {item.server for item in made.entries}
            assert written == {"interlock"} if own else "notes" in written, made.refused
            place = place_for(adapter, scope)
            assert place is not None
            if place.shared:  # another host's file too: it is read only where this host is
                adapter = replace(adapter, places=tuple(replace(each, shared=False) for each in adapter.places))
            seen = read(adapter, standing(here, scope))
            there = {each.server: each for each in seen.declarations if each.file == made.file and each.scope == scope}
            for server in written:
                entry = there[server].entry
                assert entry is not None, there[server].decided_by
                if server == "docs":
                    assert entry.url == "https://docs.example.com/mcp"
                else:
                    words = "connect" if own else "notes"
                    assert words in entry.command
            again = plan(
                adapter, here, prepared(adapter, here, scope, found, own=own), "warn", scope=scope,
                ledger=generated.read(HOME, here),
            )  # fmt: skip
            assert again.edits == (), scope
            assert again.owned == {}, scope
    assert tried


@pytest.mark.parametrize("id", registry.IDS)
def test_what_was_generated_goes_away_again_with_all_that_belongs_to_it(id: str, tmp_path: Path) -> None:
    adapter = registry.find(id)
    assert adapter is not None
    here = machine(tmp_path / "root")
    Path(here.real(here.folder), ".git").mkdir(parents=True)
    scope: WriteScope = "user" if place_for(adapter, "user") is not None else "project"
    run(adapter, here, scope, gateway(tmp_path / "m", LOCAL, REMOTE), own=False)
    run(adapter, here, scope, Gateway({}, (), ""), own=False)
    ledger = generated.read(HOME, here)
    assert list(ledger.of_host(id)) == []
    for file in Path(here.root or "").rglob("*"):
        if file.is_file():
            assert "notes" not in file.read_text(), file
            assert "docs" not in file.read_text(), file


@pytest.mark.parametrize("id", registry.IDS)
def test_no_value_of_a_secret_is_ever_written(id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "gh" + "p_" + "C" * 36
    for name in ("NOTES_TOKEN", "DOCS_TOKEN"):
        monkeypatch.setenv(name, secret)
    adapter = registry.find(id)
    assert adapter is not None
    for own in (False, True):
        here = machine(tmp_path / str(own), "/home/ada/code", "linux", NOTES_TOKEN=secret, DOCS_TOKEN=secret)
        for scope in SCOPES:
            run(adapter, here, scope, gateway(tmp_path / "m", LOCAL, REMOTE), own=own)
        for file in Path(here.root or "").rglob("*"):
            assert not file.is_file() or secret not in file.read_text(), file
