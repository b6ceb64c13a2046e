"""Fake machines of every platform in a temporary folder, servers of a manifest, and short forms of what a host makes of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from interlock.hosts import registry
from interlock.hosts.adapter import Adapter
from interlock.hosts.entry import Entry
from interlock.hosts.machine import Machine, Platform
from interlock.hosts.reading import Reading, read
from interlock.hosts.text.editing import edited
from interlock.hosts.writing import FileEdits, Rendered, Wanted
from interlock.manifest.config import (
    EnvValue,
    HeaderValue,
    HttpTransport,
    Origin,
    Policy,
    Rule,
    ServerConfig,
    StdioTransport,
    ToolOverride,
)

_HERE = Origin(Path("manifest.yaml"), 1)
HOMES: Mapping[Platform, tuple[str, str]] = {
    "linux": ("/home/ada", "/home/ada/code/app"),
    "macos": ("/Users/ada", "/Users/ada/code/app"),
    "windows": ("C:\\Users\\ada", "C:\\Users\\ada\\code\\app"),
}


def machine(root: Path, platform: Platform = "linux", environ: Mapping[str, str] | None = None) -> Machine:
    """With a repository at the working directory."""
    home, folder = HOMES[platform]
    made = Machine(platform=platform, home=home, folder=folder, environ=environ or {}, root=str(root))
    Path(made.real(made.join(folder, ".git"))).mkdir(parents=True)
    return made


def put(on: Machine, path: str, content: object) -> str:
    """A text as it stands, anything else as JSON."""
    file = Path(on.real(path))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes((content if isinstance(content, str) else json.dumps(content, indent=2)).encode())
    return path


def adapter(id: str) -> Adapter:
    found = registry.find(id)
    assert found is not None
    return found


def states(reading: Reading) -> dict[tuple[str, str], str]:
    """State by server and file."""
    return {(each.server or "", each.file): each.state for each in reading.declarations}


def codes(reading: Reading) -> set[str]:
    return {problem.code for each in reading.declarations for problem in each.problems} | {
        problem.code for problem in reading.problems
    }


def runs(reading: Reading) -> dict[str, tuple[str, ...] | str | None]:
    """What the host starts: the command, or the URL, by name."""
    found: dict[str, tuple[str, ...] | str | None] = {}
    for each in reading.declarations:
        if each.state == "effective" and each.runs is not None and each.server is not None:
            found[each.server] = each.runs.command or each.runs.url
    return found


def stdio(*command: str, **more: object) -> ServerConfig:
    env = more.pop("env", ())
    assert isinstance(env, tuple)
    return _server(StdioTransport(command or ("uvx", "issues-mcp"), Path("/srv"), env), more)


def http(
    url: str = "https://issues.example/mcp", *, headers: tuple[HeaderValue, ...] = (), **more: object
) -> ServerConfig:
    return _server(HttpTransport(endpoint=url, headers=headers), more)


def _server(transport: StdioTransport | HttpTransport, more: Mapping[str, object]) -> ServerConfig:
    allow, deny, tools = more.get("allow"), more.get("deny", ()), more.get("tools", {})
    policy, enabled = more.get("policy", Policy()), more.get("enabled", True)
    assert isinstance(deny, tuple)
    assert isinstance(tools, dict)
    assert isinstance(policy, Policy)
    return ServerConfig(
        key="issues", integration_id="acme.issues", scope="user", origin=_HERE, transport=transport, policy=policy,
        enabled=bool(enabled), allow=None if not isinstance(allow, tuple) else rules(*allow), deny=rules(*deny), tools=tools,
    )  # fmt: skip


def rules(*globs: str) -> tuple[Rule, ...]:
    return tuple(Rule(glob, _HERE) for glob in globs)


READ_TOOL = {"get": ToolOverride(read=True), "put": ToolOverride(read=False)}
TOKEN = (EnvValue("TOKEN", source="TOKEN"), EnvValue("LEVEL", literal="info"))
BEARER = (HeaderValue("Authorization", source="TOKEN", prefix="Bearer "), HeaderValue("X-Team", literal="a"))


def written(id: str, server: ServerConfig | None, on: Machine, **more: object) -> Rendered:
    scope = more.get("scope", "user")
    assert scope in ("user", "project", "local")
    return adapter(id).write(
        Wanted(
            name="issues", scope=scope, server=server, project_root=on.folder if scope != "user" else None,
            connect=() if server is not None else ("/opt/bin/interlock", "connect", "--host", id),
            pass_names=() if server is not None else ("TOKEN",),
        ),
        on,
    )  # fmt: skip


def lost(rendered: Rendered) -> dict[str, bool]:
    """What is lost, and whether that is a weakening."""
    return {loss.field: loss.weakens for loss in rendered.losses}


def back(id: str, rendered: Rendered) -> Entry:
    """The entry as the same adapter reads it."""
    return adapter(id).read(dict(rendered.entry))


def applied(on: Machine, changes: FileEdits) -> str:
    """The other file after the change."""
    file = Path(on.real(changes.file))
    return edited(file.read_bytes() if file.exists() else b"", changes).decode()


def look(id: str, on: Machine) -> Reading:
    return read(adapter(id), on)
