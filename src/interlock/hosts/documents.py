"""Imported servers as manifest documents: what is written for each, which secrets stand in the way, and the YAML text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as member
from pathlib import Path

from interlock.hosts.candidate import Value, variable_name
from interlock.hosts.declaration import Spot
from interlock.hosts.merging import Merged
from interlock.manifest.config import ServerConfig
from interlock.manifest.entry import default_key
from interlock.manifest.logical import PROJECT_ROOT
from interlock.manifest.problems import Problem

Plain = str | bool | int | float | list["Plain"] | dict[str, "Plain"]
Document = dict[str, Plain]

_CLIENT = ("clientId", "clientIdEnv", "clientSecretEnv", "clientMetadataUrl", "issuer", "resource", "callbackPort")
_LOOPBACK = re.compile(r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/]|\Z)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """A literal secret in a host's file. The manifest says `variable`, or the file that it is to be moved to."""

    server: str
    field: str
    spot: Spot | None
    why: str
    variable: str
    value: str = member(repr=False)
    is_set: bool = False
    """The variable is set to this very value already."""
    file: Path | None = None
    """Where it is moved to, where that was asked for and is possible."""
    movable: bool = True

    @property
    def settled(self) -> bool:
        """The manifest's reference works as things stand, or will once the plan is carried out."""
        return self.is_set or self.file is not None

    @property
    def todo(self) -> str:
        where = f" at {self.spot}" if self.spot is not None else ""
        if self.file is not None:
            return f"{self.field}{where}: moved into {self.file}"
        if self.is_set:
            return f"{self.field}{where}: the variable {self.variable} holds the same value already"
        return f"{self.field}{where} is a secret ({self.why}): set the variable {self.variable} to it where Interlock starts"


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a document may rely on."""

    environ: Mapping[str, str]
    secrets: Path | None = None
    """The folder to move secrets to; None: they are named by variables."""
    secrets_shown: str = ""
    """The same as the manifest writes it (`~/.interlock/secrets`)."""
    asking: frozenset[str] = frozenset()
    """Hosts that are known to ask before a call."""
    moving: bool = False
    """The entries are to leave their hosts, so what starts there has to start from the manifest."""


@dataclass(slots=True)
class Names:
    """Variables that were given out, so that no two secrets share one."""

    environ: Mapping[str, str]
    given: dict[str, str] = member(default_factory=dict)

    def of(self, secret: str, *wanted: str) -> tuple[str, bool]:
        """A variable for this secret, and whether it holds it already."""
        same = [name for name in wanted if self.environ.get(name) == secret]
        if not same and len(secret) >= 12:
            same = sorted(name for name, value in self.environ.items() if value == secret and _NAME.fullmatch(name))
        if same:
            return same[0], True
        for name in wanted:
            free = name not in self.environ or name not in wanted[:-1]
            if free and self.given.setdefault(name, secret) == secret:
                return name, False
        number = 2
        while self.given.setdefault(f"{wanted[-1]}_{number}", secret) != secret:
            number += 1
        return f"{wanted[-1]}_{number}", False


_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def document(server: Merged, means: Means, names: Names, ids: set[str]) -> tuple[Document, list[Secret]]:
    """The manifest document of one server, and the secrets that it refers to."""
    work = _Work(server, means, names)
    taken = server.taken
    made: Document = {"schemaVersion": "agent-routing/v1", "integrationId": _identifier(server.key, ids)}
    if default_key(str(made["integrationId"])) != server.key:
        made["key"] = server.key
    if not taken.enabled:
        made["enabled"] = False
    lists: Document = {}
    if taken.allow is not None:
        lists["allow"] = [*taken.allow]
    if taken.deny:
        lists["deny"] = [*taken.deny]
    if lists:
        made["capability"] = {"tools": lists}
    made["transports"] = {taken.kind: work.stdio() if taken.kind == "stdio" else work.remote()}
    policy, tools = _policy(server, means)
    if policy:
        made["policy"] = policy
    if tools:
        made["tools"] = tools
    return made, work.secrets


@dataclass(slots=True)
class _Work:
    server: Merged
    means: Means
    names: Names
    secrets: list[Secret] = member(default_factory=list)

    def stdio(self) -> Document:
        taken = self.server.taken
        made: Document = {}
        if taken.wrapped:
            words: list[Plain] = [*taken.words]
            made["commandByPlatform"] = {"windows": words}
            if not any("\\" in word or word[1:3] == ":/" for word in taken.words):
                made["commandByPlatform"] = {"windows": words, "linux": words, "macos": words}
        else:
            made["command"] = [*taken.words]
        if taken.cwd is not None:
            made["cwd"] = taken.cwd
        elif any(PROJECT_ROOT in word for word in taken.words):
            made["cwd"] = PROJECT_ROOT
        env: Document = {}
        copied: list[Plain] = []
        for name, value in taken.values.items():
            if value.source == name:
                copied.append(name)
            else:
                env[name] = self._value(name, value, f"env.{name}", name, variable_name(self.server.key, name))
        if copied:
            made["envNames"] = copied
        if env:
            made["env"] = env
        return made

    def remote(self) -> Document:
        taken = self.server.taken
        made: Document = {}
        if taken.url is not None:
            made["endpoint"] = taken.url
        elif taken.endpoint is not None:
            made["endpointEnv"] = self._endpoint(taken.endpoint)
        headers: Document = {}
        signed = False
        for name, value in taken.values.items():
            last = "TOKEN" if name.lower() == "authorization" else name
            headers[name] = self._value(name, value, f"headers.{name}", variable_name(self.server.key, last))
            signed = signed or value.literal is None
        client: Document = {name: _number(name, taken.oauth[name]) for name in _CLIENT if name in taken.oauth}
        authorized = any(name.lower() == "authorization" for name in headers)
        if not authorized and (client or "scopes" in taken.oauth or self._may_sign_in(signed)):
            made["auth"] = "oauth"
            if taken.oauth.get("scopes"):
                made["scopes"] = [*taken.oauth["scopes"].replace(",", " ").split()]
            if client:
                made["oauth"] = client
        if headers:
            made["headers"] = headers
        return made

    def _may_sign_in(self, signed: bool) -> bool:
        """Every host signs in by itself when a server asks for it; a server on this machine rarely does."""
        url = self.server.taken.url
        return not signed and not (url is not None and _LOOPBACK.match(url))

    def _endpoint(self, value: Value) -> str:
        if value.secret is None:
            return value.source or ""
        variable, is_set = self.names.of(value.secret, variable_name(self.server.key, "URL"))
        self.secrets.append(
            Secret(
                server=self.server.key, field="url", spot=value.spot, why=value.why, variable=variable,
                value=value.secret, is_set=is_set, movable=False,
            )
        )  # fmt: skip
        return variable

    def _value(self, name: str, value: Value, field_name: str, *wanted: str) -> Plain:
        prefix: Document = {"prefix": value.prefix} if value.prefix else {}
        if value.secret is None:
            if value.source is not None:
                return {"fromEnv": value.source, **prefix}
            if value.file is not None:
                return {"fromFile": value.file, **prefix}
            return value.literal or ""
        variable, is_set = self.names.of(value.secret, *wanted)
        file, shown = None, ""
        if self.means.secrets is not None:
            name = f"{_file_name(self.server.key)}-{_file_name(name)}"
            file, shown = self.means.secrets / name, f"{self.means.secrets_shown}/{name}"
        self.secrets.append(
            Secret(
                server=self.server.key, field=field_name, spot=value.spot, why=value.why, variable=variable,
                value=value.secret, is_set=is_set, file=file,
            )
        )  # fmt: skip
        return {"fromEnv": variable, **prefix} if file is None else {"fromFile": shown, **prefix}


def _policy(server: Merged, means: Means) -> tuple[Document, Document]:
    taken = server.taken
    policy: Document = {}
    default = taken.approvals.get("*")
    if default is not None:
        policy["defaultApproval"] = default
    elif any(source.declaration.host in means.asking for source in server.sources):
        policy["defaultApproval"] = "host"
    if taken.startup is not None:
        policy["startupTimeoutSeconds"] = min(max(taken.startup, 0.1), 3600)
    if taken.call is not None:
        policy["toolTimeoutSeconds"] = min(max(taken.call, 0.1), 86400)
    tools: Document = {name: {"approval": word} for name, word in taken.approvals.items() if name != "*"}
    return policy, tools


def _number(name: str, text: str) -> Plain:
    return int(text) if name == "callbackPort" and text.isdigit() else text


def _identifier(key: str, ids: set[str]) -> str:
    """`local.` and the key, as far as an id can hold it; each is given once."""
    base = re.sub(r"[^A-Za-z0-9_-]+", "-", key).strip("-") or "server"
    made, number = f"local.{base}"[:120], 2
    while made in ids:
        made, number = f"local.{base}"[:116] + f"-{number}", number + 1
    ids.add(made)
    return made


def _file_name(text: str) -> str:
    return re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-.") or "value"


# Text


def text_of(documents: Sequence[tuple[Document, Sequence[str]]]) -> str:
    """YAML, with remarks as comments above each document."""
    return "---\n".join(
        "".join(f"# {_comment(line)}\n" for line in remarks) + _map(made, "") for made, remarks in documents
    )


def _comment(line: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in line)


def _map(value: Mapping[str, Plain], indent: str) -> str:
    lines = ""
    for name, inner in value.items():
        if isinstance(inner, dict) and inner and not _is_flat(inner):
            lines += f"{indent}{_scalar(name)}:\n{_map(inner, indent + '  ')}"
        else:
            lines += f"{indent}{_scalar(name)}: {_flow(inner)}\n"
    return lines


def _is_flat(value: Mapping[str, Plain]) -> bool:
    """Short tables that say where one value comes from, or one rule, stand on one line."""
    return set(value) <= {"fromEnv", "fromFile", "prefix", "literal", "notSecret", "approval", "read"}


def _flow(value: Plain) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(name)}: {_flow(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _scalar(value)
    return f"{value:g}" if float(value).is_integer() and abs(value) < 1e6 else repr(value)


_PLAIN = re.compile(r"[A-Za-z_/~.][A-Za-z0-9_./~@+-]*(?::[A-Za-z0-9_./~@+-]+)*")
_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n", "~"))


def _scalar(text: str) -> str:
    if (
        _PLAIN.fullmatch(text)
        and text.lower() not in _WORDS
        and not re.fullmatch(r"[._0-9eE+-]+|\.(?:inf|nan)", text, re.IGNORECASE)
    ):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escaped(letter) for letter in quoted)


def _escaped(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def loaded(
    text: str, file: Path, scope: str, platform: str, environ: Mapping[str, str]
) -> tuple[list[ServerConfig], list[Problem]]:
    """The documents as the manifest's own loader reads them; nothing is read from or written to the disk for it."""
    from interlock.manifest.checking import check
    from interlock.manifest.entry import build
    from interlock.manifest.nodes import Table, chunks
    from interlock.manifest.parsing import parse
    from interlock.manifest.problems import Report
    from interlock.manifest.transports import Context
    from interlock.manifest.view import View

    report = Report(file)
    configs = []
    for chunk in chunks(text):
        parsed = parse(chunk)
        for fault in parsed.faults:
            report.add(fault.code, fault.what, write=fault.write, at=fault.at)
        if parsed.root is None:
            continue
        before = report.errors
        check(parsed.root, report)
        if report.errors == before:
            view = View(parsed.root if isinstance(parsed.root, Table) else None)
            config = build(view, Context(file, "user" if scope == "user" else "project", platform, environ), report)
            if config is not None:
                configs.append(config)
    return configs, [each for each in report.problems if each.severity == "error"]
