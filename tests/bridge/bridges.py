"""The bridges that are driven: how each is started for a server URL, with a home of its own and a client's settings."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

ROOT = Path(__file__).resolve().parents[2]

Flow = Literal["browser", "device", "client-credentials"]
_SECRET_VARIABLE = "BRIDGE_DRIVER_SECRET"
_KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "COVERAGE_PROCESS_CONFIG", "PYTHONDONTWRITEBYTECODE")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a scenario prescribes for the client, in words that each bridge turns into its own flags."""

    client_id: str | None = None
    client_secret: str | None = None
    client_metadata_url: str | None = None
    scope: str | None = None
    resource: str | None = None
    flow: Flow = "browser"
    era: Literal["auto", "modern", "legacy"] = "auto"
    timeout: float | None = None
    """Deadline of one call, where the bridge has one."""
    browser: bool = False
    """Whether it may open a browser (see browser.py); otherwise only URLs are printed, where it has that choice."""
    allow_missing_pkce: bool = False
    grace_seconds: float | None = None
    """How long a refusal is not yet believed, where the bridge waits at all."""
    bearer: str | None = None
    """A token for the server that needs no authorization server."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A command line and what its environment has besides the common part."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Bridge(Protocol):
    @property
    def name(self) -> str: ...

    def launch(self, url: str, home: Path, settings: Settings) -> Launch:
        """`home` is where it keeps its grants; two launches with one home share a machine."""
        ...


@dataclass(frozen=True, slots=True)
class Interlock:
    """`interlock bridge` of this checkout, or the `program` given."""

    program: Sequence[str] = (sys.executable, "-m", "interlock")
    name: str = "interlock"

    def launch(self, url: str, home: Path, settings: Settings) -> Launch:
        command = [*self.program, "bridge", url, "--home", str(home), "--era", settings.era]
        environment = {"PYTHONPATH": str(ROOT / "src"), "INTERLOCK_NO_UPDATE": "1"}
        for flag, value in (
            ("--client-id", settings.client_id),
            ("--client-metadata-url", settings.client_metadata_url),
            ("--scope", settings.scope),
            ("--resource", settings.resource),
        ):
            command += [flag, value] if value is not None else []
        if settings.timeout is not None:
            command += ["--timeout", f"{settings.timeout:g}"]
        if settings.flow != "browser":
            command += ["--flow", settings.flow]
        if not settings.browser:
            command.append("--no-browser")
        if settings.allow_missing_pkce:
            command.append("--allow-missing-pkce")
        if settings.grace_seconds is not None:
            command += ["--grace-seconds", f"{settings.grace_seconds:g}"]
        if settings.client_secret is not None:
            command += ["--client-secret-env", _SECRET_VARIABLE]
            environment[_SECRET_VARIABLE] = settings.client_secret
        if settings.bearer is not None:
            command += ["--token-env", _SECRET_VARIABLE]
            environment[_SECRET_VARIABLE] = settings.bearer
        return Launch(command, environment)


@dataclass(frozen=True, slots=True)
class McpRemote:
    """npm `mcp-remote`, with the flags that let it do its best: both eras, HTTP only, a patient wait for the person.

    It has no flag against opening a browser; without one to open, it only prints.
    """

    node: Path
    entry: Path
    protocol: Literal["auto", "legacy"] = "auto"
    defaults: bool = False
    """As a user starts it who reads no further than the first line of its page."""
    name: str = "mcp-remote"

    def launch(self, url: str, home: Path, settings: Settings) -> Launch:
        command = [str(self.node), str(self.entry), url]
        if not self.defaults:
            protocol = "legacy" if settings.era == "legacy" else self.protocol
            command += ["--allow-http", "--transport", "http-only", "--protocol", protocol]
        environment = {"MCP_REMOTE_CONFIG_DIR": str(home)}
        if settings.timeout is not None:
            command += ["--headers-timeout", f"{settings.timeout:g}", "--body-timeout", f"{settings.timeout:g}"]
        if settings.client_id is not None:
            information = {"client_id": settings.client_id}
            if settings.client_secret is not None:
                information["client_secret"] = f"${{{_SECRET_VARIABLE}}}"
                environment[_SECRET_VARIABLE] = settings.client_secret
            command += ["--static-oauth-client-info", json.dumps(information)]
        if settings.client_metadata_url is not None:
            command += ["--client-metadata-url", settings.client_metadata_url]
        if settings.scope is not None:
            command += ["--static-oauth-client-metadata", json.dumps({"scope": settings.scope})]
        if settings.resource is not None:
            command += ["--resource", settings.resource]
        if settings.flow == "device":
            command.append("--device-code")
        elif settings.flow == "client-credentials":
            command.append("--client-credentials")
        if settings.bearer is not None:
            command += ["--header", f"Authorization:Bearer ${{{_SECRET_VARIABLE}}}"]
            environment[_SECRET_VARIABLE] = settings.bearer
        return Launch(command, environment)


@dataclass(frozen=True, slots=True)
class Other:
    """Any command; the server's URL is its last word, as hosts write it."""

    command: Sequence[str]
    name: str = "other"

    def launch(self, url: str, home: Path, settings: Settings) -> Launch:
        return Launch([*self.command, url])


@dataclass(frozen=True, slots=True)
class Supergateway:
    """npm `supergateway`: no sign-in of its own, only a token that it is given."""

    node: Path
    entry: Path
    name: str = "supergateway"

    def launch(self, url: str, home: Path, settings: Settings) -> Launch:
        command = [str(self.node), str(self.entry), "--streamableHttp", url, "--logLevel", "none"]
        return Launch([*command, "--oauth2Bearer", settings.bearer] if settings.bearer is not None else command)


@dataclass(frozen=True, slots=True)
class McpProxy:
    """PyPI `mcp-proxy`: no sign-in for a person either, only a token that it is given."""

    program: Path
    name: str = "mcp-proxy"

    def launch(self, url: str, home: Path, settings: Settings) -> Launch:
        environment = {"API_ACCESS_TOKEN": settings.bearer} if settings.bearer is not None else {}
        return Launch([str(self.program), "--transport", "streamablehttp", url], environment)


TOKEN_ONLY = ("supergateway", "mcp-proxy")
"""Names of bridges that nobody can sign in with: they play only the situations that need no sign-in."""


def environment_of(launch: Launch, home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a bridge: little of ours, a user home of its own, and nothing that opens a real browser."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "USERPROFILE": str(home),
        "NO_COLOR": "1",
        "BROWSER": "true",
        "DISPLAY": "",
        **(extra or {}),
        **launch.environment,
    }


def rival_cache() -> Path:
    """Where `benchmarks/setup_rivals.py` keeps the other programs."""
    return Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "interlock-bench"


def mcp_remote(cache: Path) -> McpRemote | None:
    """The rival out of the benchmarks' cache folder; None where it is not installed."""
    found = _npm(cache, "mcp-remote")
    return None if found is None else McpRemote(*found)


def named(name: str, cache: Path) -> Bridge | None:
    """Any bridge by its name; None where it is not installed. Raises KeyError for an unknown one."""
    if name == "interlock":
        return Interlock()
    if name == "mcp-remote":
        return mcp_remote(cache)
    if name == "supergateway":
        found = _npm(cache, "supergateway")
        return None if found is None else Supergateway(*found)
    if name == "mcp-proxy":
        program = cache / "python" / "mcp-proxy" / "bin" / "mcp-proxy"
        return McpProxy(program) if program.exists() else None
    raise KeyError(name)


NAMES = ("interlock", "mcp-remote", *TOKEN_ONLY)


def _npm(cache: Path, name: str) -> tuple[Path, Path] | None:
    """Node.js and the program's entry point."""
    modules = cache / "npm" / "node_modules"
    node, package = modules / "node" / "bin" / "node", modules / name / "package.json"
    if not node.exists() or not package.exists():
        return None
    return node, package.parent / json.loads(package.read_text(encoding="utf-8"))["bin"][name]
