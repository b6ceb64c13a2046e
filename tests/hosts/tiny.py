"""A host that no one uses, small enough to see through: for tests of what holds for every host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from interlock.hosts.adapter import Adapter, CallableNames, Tolerance, Variables
from interlock.hosts.entry import Entry
from interlock.hosts.fact import Fact, unknown
from interlock.hosts.machine import Machine, Platform
from interlock.hosts.place import Place
from interlock.hosts.reading import BadEntry
from interlock.hosts.shapes import env_texts, reference, text, texts, words
from interlock.hosts.text.editing import edited
from interlock.hosts.writing import Edit, FileEdits, Json, Loss, Rendered, Wanted
from interlock.manifest.config import Gateway, StdioTransport
from interlock.manifest.loading import load

RULES = "/home/ada/.tiny/rules.json"


def read(raw: Mapping[str, object]) -> Entry:
    command, url = text(raw, "command"), text(raw, "url")
    if (command is None) == (url is None):
        raise BadEntry("exactly one of `command` and `url` is needed", "command")
    if command is None:
        return Entry(transport="http", url=url)
    return Entry(transport="stdio", command=(command, *texts(raw, "args")), cwd=text(raw, "cwd"))


def write(wanted: Wanted, machine: Machine) -> Rendered:
    if wanted.server is None:
        program, *rest = wanted.connect
        entry: dict[str, Json] = {"command": program, "args": [*rest]}
        if wanted.pass_names:
            entry["env"] = {name: reference("${V}", name) for name in wanted.pass_names}
        return Rendered(entry=entry)
    server = wanted.server
    if not isinstance(server.transport, StdioTransport):
        return Rendered(entry={"url": server.transport.endpoint or ""})
    program, rest = words(server.transport)
    entry = {"command": program, "args": rest}
    env, losses = env_texts(server.transport.env, "${V}")
    if env:
        entry["env"] = {**env}
    if server.deny:
        losses.append(Loss("capability.tools.deny", "this host has no list of tools", weakens=True))
    rules: list[Json] = [f"{wanted.name}:{tool}" for tool, rule in server.tools.items() if rule.approval == "auto"]
    edits: tuple[FileEdits, ...] = ()
    if rules:
        path = machine.real(RULES)
        standing: list[Json] = []
        if Path(path).is_file():
            import json

            standing = json.loads(Path(path).read_text())["allow"]
        missing = [rule for rule in rules if rule not in standing]
        if missing:
            edit = Edit(("allow",), [*standing, *missing])
            edits = (FileEdits(file=RULES, format="json", comments=False, edits=(edit,)),)
    return Rendered(entry=entry, losses=tuple(losses), edits=edits)


def tiny(**more: object) -> Adapter:
    facts: dict[str, object] = {
        "id": "tiny",
        "label": "Tiny",
        "seen": "1.0",
        "verified": "2026-11-30",
        "places": (
            Place(
                scope="project", find=lambda machine: [machine.join(machine.folder, ".tiny.json")], format="jsonc",
                tables=(("servers",),), rank=2, shown=".tiny.json", known=Fact(True, "O"), writes=True,
            ),
            Place(
                scope="user", find=lambda machine: [machine.user(".tiny", "servers.json")], format="jsonc",
                tables=(("servers",),), rank=1, shown="~/.tiny/servers.json", known=Fact(True, "O"), writes=True,
            ),
        ),
        "tolerance": Tolerance(
            comments=Fact(True, "O"), trailing_comma=Fact(True, "O"), bom=Fact(True, "O"),
            duplicate_keys=Fact("last", "O"), fault=Fact("file", "O"), bad_entry=Fact("entry", "O"),
        ),
        "merge": Fact("entry", "O"),
        "transports": Fact(frozenset(("stdio", "http")), "O"),
        "variables": Fact(Variables(forms=("${V}",), fields=frozenset(("env",))), "O"),
        "child_env": unknown(),
        "switch": unknown(),
        "names": Fact(CallableNames(form="{server}_{tool}"), "O"),
        "read": read,
        "write": write,
        "fields": frozenset(("command", "args", "cwd", "env", "url")),
        "server_names": Fact("^[a-z0-9-]+$", "O"),
    }  # fmt: skip
    return Adapter(**{**facts, **more})  # type: ignore[arg-type]


def machine(root: Path, folder: str = "/home/ada/code", platform: Platform = "linux", **environ: str) -> Machine:
    home = r"C:\Users\ada" if platform == "windows" else "/home/ada"
    return Machine(platform=platform, home=home, folder=folder, environ=environ, root=str(root))


def put(where: Machine, path: str, content: str) -> Path:
    real = Path(where.real(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    real.write_bytes(content.encode())
    return real


def gateway(folder: Path, *documents: str, environ: Mapping[str, str] | None = None) -> Gateway:
    """The manifest of a user, from documents without their first line."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "interlock.yaml").write_text(
        "---\n".join(f"schemaVersion: agent-routing/v1\n{document}" for document in documents)
    )
    loaded = load(
        manifests=(), home=folder, project_root=None, environ=environ or {"PATH": "/usr/bin:/bin"},
        managed_dir=folder / "managed", platform="linux",
    )  # fmt: skip
    assert loaded.errors == ()
    return loaded.gateway


def carry_out(where: Machine, edits: Sequence[FileEdits]) -> dict[str, bytes]:
    """Make the changes, with nothing of locks and backups; the files that changed."""
    changed = {}
    for each in edits:
        real = Path(where.real(each.file))
        before = real.read_bytes() if real.is_file() else b""
        after = edited(before, each)
        if after != before:
            real.parent.mkdir(parents=True, exist_ok=True)
            real.write_bytes(after)
            changed[each.file] = after
    return changed
