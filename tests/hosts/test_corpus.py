"""Every file of the corpus: the inventory is right, and what Interlock writes there can be taken back byte for byte."""

from __future__ import annotations

import os
import random
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.hosts.corpus_cases import KINDS, Case, bare, codes, every, lay_out, seen
from tests.hosts.text import random_jsonc, random_toml, random_yaml
from tests.hosts.text.samples import files, is_subsequence

from interlock.hosts import generated, registry
from interlock.hosts.adapter import Adapter
from interlock.hosts.changes.applying import apply
from interlock.hosts.changes.refused import Refused
from interlock.hosts.changes.restoring import restore
from interlock.hosts.declaration import Declaration
from interlock.hosts.generating import Generated, file_for, place_for, plan, standing
from interlock.hosts.inventory import Inventory, take
from interlock.hosts.machine import Machine, Platform
from interlock.hosts.place import Format
from interlock.hosts.reading import parse
from interlock.hosts.text.document import Damaged
from interlock.hosts.wanting import Prepared, WriteScope
from interlock.hosts.writing import Edit, FileEdits, Wanted

CASES = every()
SCOPES: tuple[WriteScope, ...] = ("user", "project", "local")


@pytest.fixture(autouse=True, scope="module")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """That a change outlives a power failure is proved elsewhere; here are a thousand of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _descriptor: None)
        yield


def test_there_are_files_enough_and_of_every_host() -> None:
    assert sum(len(case.contents) for case in CASES) >= 150
    assert {case.host for case in CASES} == set(registry.IDS)


# What the host makes of them


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_inventory(case: Case, tmp_path: Path) -> None:
    machine = lay_out(case, tmp_path)
    inventory = take(machine)
    assert inventory.problems == []
    for host, rows in case.expect.items():
        reading = inventory.of(host)
        assert reading is not None
        wrong = list(_compared(case, reading.declarations, [bare(case, row) for row in rows]))
        assert not wrong, "\n".join([host, *map(str, wrong)])
    reading = inventory.of(case.host)
    assert reading is not None
    found: dict[str, list[str]] = {}
    for each in reading.problems:
        if each.severity != "note":
            found.setdefault(each.spot.file if each.spot is not None else "", []).append(each.code)
    assert {file: sorted(each) for file, each in found.items()} == {
        case.path(file): sorted(each) for file, each in case.of_files.items()
    }
    _no_secret(inventory)


def _compared(
    case: Case, declarations: Sequence[Declaration], rows: Sequence[Mapping[str, object]]
) -> Iterator[tuple[str, object]]:
    """What is there and not expected, and the other way round; of two that name one entry, what differs."""
    left = list(declarations)
    for row in rows:
        same = [each for each in left if all(row[name] == getattr(each, name) for name in ("scope", "file", "server"))]
        exact = next((each for each in same if seen(case, each, row) == row), None)
        if exact is not None:
            left.remove(exact)
        elif same:
            left.remove(same[0])
            is_now = seen(case, same[0], row)
            yield str(row["server"]), {name: (row[name], is_now[name]) for name in row if row[name] != is_now[name]}
        else:
            yield "not found", dict(row)
    for each in left:
        yield (
            "not expected",
            (each.scope, str(each.spot), each.server, each.state, each.decided_by.rule, codes(each.problems)),
        )


def _no_secret(inventory: Inventory) -> None:
    for declaration in inventory.declarations:
        for each in declaration.problems:
            for secret in KINDS.values():
                assert secret not in f"{each.seen}{each.why}{each.todo}", each.code
        for secret in KINDS.values():
            assert secret not in declaration.decided_by.by


# Written, and taken back


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_round_trip(case: Case, tmp_path: Path) -> None:
    adapter = registry.find(case.host)
    assert adapter is not None
    machine = lay_out(case, tmp_path)
    before = content_of(tmp_path)
    for scope in SCOPES:
        if place_for(adapter, scope) is not None and (scope in case.writes or _is_there(adapter, machine, scope)):
            should = case.writes.get(scope, "written")
            assert _round(adapter, machine, scope, tmp_path) == should, scope
            assert content_of(tmp_path) == before


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_round_trip_of_any_file(case: Case, tmp_path: Path) -> None:
    """Also of those that no host's entry is ever written into: what can be parsed can be changed and taken back."""
    machine = lay_out(case, tmp_path)
    home = Path(machine.real(machine.user(".interlock")))
    before = content_of(tmp_path)
    for path, content in case.contents.items():
        if b"interlock" in content:
            continue  # nothing new
        format = _FORMATS.get(path.rpartition(".")[2], "jsonc")
        table = {"toml": "mcp_servers", "yaml": "extensions"}.get(format, "mcpServers")
        edit = Edit((table, "interlock"), {"command": "interlock", "args": ["connect"]})
        edits = [FileEdits(file=path, format=format, comments=True, edits=(edit,))]
        try:
            applied = apply(home, machine, edits, command="generate")
        except Refused:
            assert content_of(tmp_path) == before, path
            continue
        after = content_of(tmp_path)
        name = os.path.relpath(os.path.realpath(machine.real(path)), os.path.realpath(tmp_path))
        assert {each for each in after if after[each] != before[each]} == {
            each for each in before if os.path.realpath(tmp_path / each) == os.path.realpath(tmp_path / name)
        }
        survived(content, after[name], format)
        assert apply(home, machine, edits, command="generate").files == ()
        assert restore(home, machine, applied.id, force=False).complete
        assert content_of(tmp_path) == before, path


_FORMATS: Mapping[str, Format] = {"toml": "toml", "yaml": "yaml", "yml": "yaml"}


@pytest.mark.parametrize("platform", ["linux", "macos", "windows"])
@pytest.mark.parametrize("id", registry.IDS)
def test_round_trip_where_there_is_nothing(id: str, platform: Platform, tmp_path: Path) -> None:
    """Files and folders that were made are gone again."""
    adapter = registry.find(id)
    assert adapter is not None
    home = "C:\\Users\\ana" if platform == "windows" else "/home/ana"
    machine = Machine(platform=platform, home=home, folder=home, environ={}, root=str(tmp_path))
    machine = replace(machine, folder=machine.user("shop"))
    os.makedirs(machine.real(machine.join(machine.folder, ".git")))
    before = _folders(tmp_path)
    for scope in SCOPES:
        if place_for(adapter, scope) is not None:
            assert _round(adapter, machine, scope, tmp_path) == "written"
            assert _folders(tmp_path) == before, scope


def _folders(root: Path) -> set[str]:
    return {folder for folder, _, _ in os.walk(root) if ".interlock" not in folder}


def _is_there(adapter: Adapter, machine: Machine, scope: WriteScope) -> bool:
    place = place_for(adapter, scope)
    file = None if place is None else file_for(place, standing(machine, scope))
    return file is not None and os.path.lexists(machine.real(file))


def _round(adapter: Adapter, machine: Machine, scope: WriteScope, root: Path) -> str:
    before = content_of(root)
    home = Path(machine.real(machine.user(".interlock")))
    made = planned(adapter, machine, scope)
    if made.refused:
        assert made.edits == ()
        return "refused"
    assert made.file is not None
    try:
        applied = apply(home, machine, _edits(machine, made), command="generate")
    except Refused:
        assert content_of(root) == before
        return "refused"
    after = content_of(root)
    real = os.path.realpath(machine.real(made.file))
    for name, content in before.items():
        if os.path.realpath(root / name) != real:
            assert after[name] == content, name
    name = os.path.relpath(real, os.path.realpath(root))
    survived(before.get(name, b""), after[name], _format(adapter, scope))
    # A second run, and one that has forgotten the first.
    again = planned(adapter, machine, scope)
    assert (again.edits, again.owned, again.refused) == ((), {}, ())
    forgetful = planned(adapter, machine, scope, ledger=generated.Ledger())
    assert (forgetful.edits, forgetful.refused) == ((), ())
    assert content_of(root) == after
    assert restore(home, machine, applied.id, force=False).complete
    assert content_of(root) == before
    return "written"


def planned(adapter: Adapter, machine: Machine, scope: WriteScope, ledger: generated.Ledger | None = None) -> Generated:
    words = ("interlock", "connect", "--host", adapter.id)
    root = machine.repository() or machine.folder
    wanted = Wanted(name="interlock", scope=scope, connect=words, pass_names=(), project_root=root)
    if ledger is None:
        ledger = generated.read(machine.user(".interlock"), machine)
    return plan(adapter, machine, [Prepared(wanted, None)], scope=scope, ledger=ledger)


def _edits(machine: Machine, made: Generated) -> list[object]:
    return [*made.edits, *generated.edits(machine.user(".interlock"), made.owned)]


def _format(adapter: Adapter, scope: WriteScope) -> Format:
    place = place_for(adapter, scope)
    assert place is not None
    return place.format


def content_of(root: Path) -> dict[str, bytes]:
    """Every file and link below, without Interlock's own home."""
    found = {}
    for folder, _folders, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if ".interlock" not in path.parts:
                link = os.readlink(path).encode() if path.is_symlink() else b""
                found[str(path.relative_to(root))] = link + (path.read_bytes() if path.exists() else b"")
    return found


def survived(before: bytes, after: bytes, format: Format) -> None:
    """Nothing of a person's is gone, moved or otherwise written; new bytes only."""
    if not before.strip():
        return
    assert after.startswith(b"\xef\xbb\xbf") == before.startswith(b"\xef\xbb\xbf")
    if b"\r\n" in before and b"\n" not in before.replace(b"\r\n", b""):
        assert b"\n" not in after.replace(b"\r\n", b"")
    if format != "yaml" or before.strip():
        # Where nothing is said to stand, something may be written instead.
        assert is_subsequence(re.sub(rb"(: *)(?:null|\{\})", rb"\1", before.rstrip()), after)
    lines = iter(after.splitlines())
    lost = []
    for line in before.splitlines():
        ahead = list(lines)
        at = next((at for at, each in enumerate(ahead) if _same_line(line, each)), None)
        if at is None:
            lost.append(line)
        lines = iter(ahead if at is None else ahead[at + 1 :])
    # One line may be opened to take the entry in, where an object stands on one line.
    assert len(lost) <= 1, lost
    old = parse(before, format).value if before.strip() else {}
    new = _without(parse(after, format).value)
    if isinstance(new, dict) and isinstance(old, dict):  # a new file may need more at its top (Continue)
        new = {name: each for name, each in new.items() if name in old}
    assert new == _without(old)


def _same_line(before: bytes, after: bytes) -> bool:
    return before.rstrip() == after.rstrip() or before.rstrip() + b"," == after.rstrip()


def _without(value: object) -> object:
    """Without what was written, and without objects that are empty then."""
    if isinstance(value, dict):
        inner = {name: _without(each) for name, each in value.items() if name != "interlock"}
        return {name: each for name, each in inner.items() if each not in ({}, [], None)}
    if isinstance(value, list):
        return [_without(each) for each in value if not (isinstance(each, dict) and each.get("name") == "interlock")]
    return value


# Around it any file


def _around(id: str, content: bytes) -> str:
    """What became of it: written and taken back, or refused; the file is as it was either way."""
    adapter = registry.find(id)
    assert adapter is not None
    place = place_for(adapter, "user")
    assert place is not None
    with tempfile.TemporaryDirectory() as root:
        machine = Machine(platform="linux", home="/home/ana", folder="/home/ana/shop", environ={}, root=root)
        file = Path(machine.real(place.find(machine)[0]))
        file.parent.mkdir(parents=True)
        file.write_bytes(content)
        became = _round(adapter, machine, "user", Path(root))
        assert file.read_bytes() == content
    return became


_CHANCES = st.integers(0, 2**32).map(random.Random)


def _table(id: str, value: dict[str, object]) -> dict[str, object]:
    """The drawn `servers` under this host's own key."""
    adapter = registry.find(id)
    assert adapter is not None
    place = place_for(adapter, "user")
    assert place is not None
    key = place.tables[0][0]
    return {
        key if name == "servers" else name: each for name, each in value.items() if name == "servers" or name != key
    }


@settings(max_examples=40)
@given(st.sampled_from(["claude-code", "gemini-cli", "opencode", "cursor", "zed"]), files(), _CHANCES)
def test_any_json_around_it(id: str, value: dict[str, object], chance: random.Random) -> None:
    became = _around(id, random_jsonc.Writer(chance, comments=chance.random() < 0.6).file(_table(id, value)))
    assert became == "written" or id not in ("opencode", "zed")  # those take every liberty


@settings(max_examples=25)
@given(files(), _CHANCES)
def test_any_toml_around_it(value: dict[str, object], chance: random.Random) -> None:
    content = random_toml.Writer(chance).file(_table("codex", value))
    assume(_readable(content, "toml"))
    assert _around("codex", content) == "written"


@settings(max_examples=25)
@given(files(), _CHANCES)
def test_any_yaml_around_it(value: dict[str, object], chance: random.Random) -> None:
    content = random_yaml.Writer(chance).file(_table("goose", value))
    assume(_readable(content, "yaml"))
    assert _around("goose", content) == "written"


def _readable(content: bytes, format: Format) -> bool:
    try:
        parse(content, format)
    except Damaged:
        return False
    return True
