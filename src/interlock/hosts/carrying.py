"""From a host's entry to the manifest's words: references named, literal secrets found, and what a manifest cannot say.

Nothing here is written anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from interlock.hosts.adapter import Adapter, Form
from interlock.hosts.candidate import STRICT, Candidate, Note, Unfit, Value, variable_name
from interlock.hosts.checks.references import references
from interlock.hosts.checks.subject import Subject
from interlock.hosts.checks.variables import as_text
from interlock.hosts.declaration import Declaration, Spot
from interlock.hosts.entry import Approval, Entry
from interlock.hosts.identity import at_home, of_command, of_url
from interlock.hosts.machine import Machine
from interlock.hosts.platforms import unwrapped
from interlock.hosts.references import Reference, found, normal
from interlock.manifest import secrets
from interlock.manifest.logical import PROJECT_ROOT

KNOWN_TO_ALL = frozenset(
    (
        "HOME",
        "userHome",
        "USERPROFILE",
        "USER",
        "USERNAME",
        "LOGNAME",
        "APPDATA",
        "LOCALAPPDATA",
        "PATH",
        "TMPDIR",
        "TEMP",
    )
)
"""Variables that are the same for every program of this user and never secret: they may be filled in once and for all."""
_PROJECT_WORDS = frozenset(("workspaceFolder", "CLAUDE_PROJECT_DIR", "PWD", "workspaceRoot"))
_TILDE = re.compile(r"(?:\A|(?<==))~(?=[/\\]|\Z)")
_SCHEMES = frozenset(("bearer", "basic", "token", "apikey", "api-key", "key"))
OUR_HEADERS = frozenset(
    ("host", "content-length", "content-type", "connection", "accept", "accept-encoding", "user-agent")
)


def candidate(
    declaration: Declaration, adapter: Adapter, machine: Machine, root: str, *, moving: bool = False
) -> Candidate:
    """`root` is how the manifest names the folder of the project here. Raises Unfit.

    `moving`: the entry is to leave the host, so what starts now has to start from the manifest.
    """
    entry = declaration.runs
    if entry is None:
        raise Unfit("", "it cannot be read")
    work = _Work(Subject(adapter, machine, declaration), entry, root, moving)
    made = work.stdio() if entry.command else work.remote()
    return replace(
        made,
        enabled=entry.enabled
        and not (
            declaration.state == "disabled" and declaration.decided_by.rule in ("entry-off", "list-off", "policy")
        ),
        allow=entry.allow,
        deny=entry.deny,
        approvals=work.approvals(),
        startup=entry.startup_seconds,
        call=entry.call_seconds,
        oauth=entry.oauth,
        notes=tuple(work.notes),
    )


@dataclass(slots=True)
class _Work:
    subject: Subject
    entry: Entry
    root: str
    moving: bool
    notes: list[Note] = field(default_factory=list)

    @property
    def machine(self) -> Machine:
        return self.subject.machine

    @property
    def forms(self) -> Sequence[Form]:
        variables = self.subject.adapter.variables.value
        return variables.forms if variables is not None else ()

    def stdio(self) -> Candidate:
        entry, declaration = self.entry, self.subject.declaration
        if entry.transport not in ("stdio", None):
            raise Unfit("type", "it has a command and says that it is no stdio server")
        words = unwrapped(entry.command)
        wrapped = len(words) < len(entry.command)
        skipped = len(entry.command) - len(words)
        values = {name: self._value("env", name, text) for name, text in entry.env.items()}
        for name in entry.env_names:
            values.setdefault(name, Value(source=name, spot=self.subject.env(name)[1]))
        cwd = self._cwd()
        bare, moved = self._secrets_of_words(words, skipped)
        for name, value in moved.items():
            values[name] = value
        finished = tuple(self._word(index + skipped, word, cwd) for index, word in enumerate(bare))
        identity = of_command([normal(word, self.forms) for word in bare], self.machine.home, self.forms)
        return Candidate(
            declaration=declaration, identity=identity, kind="stdio", words=finished, wrapped=wrapped, cwd=cwd,
            values=values,
        )  # fmt: skip

    def remote(self) -> Candidate:
        entry = self.entry
        name, spot = self.subject.url()
        if entry.transport not in ("http", "sse") or entry.url is None:
            what = (
                f"a manifest has no {entry.transport} transport" if entry.transport else "it cannot be told what it is"
            )
            raise Unfit(name, what, spot)
        values: dict[str, Value] = {}
        for header, text in entry.headers.items():
            if header.lower() in OUR_HEADERS or header.lower().startswith("mcp-"):
                at = self.subject.header(header)[1]
                self.notes.append(Note(f"headers.{header}", "left out: Interlock makes this header itself", at))
                continue
            values[header] = self._value("headers", header, text)
        for header, (prefix, variable) in entry.header_names.items():
            values[header] = Value(source=variable, prefix=prefix, spot=self.subject.header(header)[1])
        url, endpoint = self._url(entry.url, name, spot)
        kind: Literal["http", "sse"] = "sse" if entry.transport == "sse" else "http"
        return Candidate(
            declaration=self.subject.declaration, identity=of_url(entry.url, self.forms), kind=kind, url=url,
            endpoint=endpoint, values=values,
        )  # fmt: skip

    # Fields

    def approvals(self) -> dict[str, Approval]:
        """By exact name: a rule for a group of tools that asks holds for all, and one that runs them for none."""
        made = {name: word for name, word in self.entry.approvals.items() if "*" not in name or name == "*"}
        for name, word in self.entry.approvals.items():
            if name in made:
                continue
            what = "a manifest has approvals for exact names, so this rule is left out: those tools ask"
            if word != "auto":
                made["*"] = max(made.get("*", word), word, key=STRICT.index)
                what = f"a manifest has approvals for exact names, so `{word}` holds for all tools"
            self.notes.append(Note(f"approval of {name}", what, self.subject.declaration.spot))
        return made

    def _url(self, text: str, name: str, spot: Spot) -> tuple[str | None, Value | None]:
        filled = self._filled(text, name, spot)
        inside = found(filled, self.forms)
        if not inside:
            reason = secrets.url(filled)
            if reason is None:
                return filled, None
            return None, Value(secret=filled, spot=spot, why=reason)
        one = inside[0]
        if len(inside) == 1 and (one.start, one.end) == (0, len(filled)) and one.kind == "env":
            self._as_text("url", one, one.name, filled, name, spot)
            return None, Value(source=one.name, spot=spot)
        named = ", ".join(dict.fromkeys(each.name for each in inside))
        raise Unfit(
            name, f"a part of its URL is a variable ({named}), and a manifest takes a whole URL from one: put the whole URL into a "
            "variable and write `endpointEnv`", spot,
        )  # fmt: skip

    def _value(self, table: Literal["env", "headers"], name: str, text: str) -> Value:
        field_name, spot = self.subject.env(name) if table == "env" else self.subject.header(name)
        filled = self._filled(text, field_name, spot)
        inside = found(filled, self.forms)
        if inside:
            return self._referring(table, name, filled, inside, field_name, spot)
        prefix, rest = _scheme(filled) if table == "headers" else ("", filled)
        reason = secrets.named_literal(name, rest) or secrets.known_format(filled)
        if reason is not None:
            return Value(secret=rest, prefix=prefix, spot=spot, why=reason)
        if secrets.placeholder(filled):
            raise Unfit(field_name, "it looks like a variable in a spelling that no host is known to fill in", spot)
        return Value(literal=filled, spot=spot)

    def _referring(
        self, table: str, name: str, text: str, inside: Sequence[Reference], field_name: str, spot: Spot
    ) -> Value:
        one = inside[0]
        prefix, suffix = text[: one.start], text[one.end :]
        if len(inside) > 1 or suffix or (prefix and table == "env"):
            raise Unfit(field_name, "it puts a variable into a longer text, which a manifest cannot", spot)
        if prefix and secrets.known_format(prefix):
            raise Unfit(field_name, "a secret stands in front of its variable", spot)
        variable = variable_name(one.name) if one.kind == "input" else one.name
        self._as_text(table, one, variable, text, field_name, spot)
        if one.kind == "file":
            return Value(file=one.name, prefix=prefix, spot=spot)
        if one.kind == "input":
            self._answered(variable, field_name, spot)
            what = f"the host asks a person for it; behind Interlock the variable {variable} holds it"
            self.notes.append(Note(field_name, what, spot))
            return Value(source=variable, prefix=prefix, spot=spot)
        if one.default is not None:
            return self._default(one, name, prefix, field_name, spot)
        return Value(source=one.name, prefix=prefix, spot=spot)

    def _default(self, one: Reference, name: str, prefix: str, field_name: str, spot: Spot) -> Value:
        """A manifest has no defaults: the variable where it is set now, else the default itself."""
        default = one.default or ""
        if one.name in self.machine.environ:
            what = f"the default for an unset {one.name} is left out; the variable is set now and has to stay set"
            self.notes.append(Note(field_name, what, spot))
            return Value(source=one.name, prefix=prefix, spot=spot)
        reason = secrets.named_literal(name, default)
        if reason is not None:
            return Value(secret=default, prefix=prefix, spot=spot, why=reason)
        what = f"{one.name} is not set now, so its default is taken; setting the variable changes nothing any more"
        self.notes.append(Note(field_name, what, spot))
        return Value(literal=prefix + default, spot=spot)

    def _as_text(self, table: str, one: Reference, variable: str, text: str, field_name: str, spot: Spot) -> None:
        """A reference that the host does not fill in: its server has started with the text itself. Raises Unfit."""
        label = self.subject.adapter.label
        inside = next((each for each in references(text) if each.start == one.start), None)
        known = self.subject.adapter.variables.value is not None
        wrong = None if inside is None else as_text(self.subject, table, inside, field_name, spot)
        shown = "this reference" if inside is None else f"`{inside.text}`"
        if known and wrong is None:
            return
        there = one.kind == "file" or one.default is not None or variable in self.machine.environ
        if self.moving and not there:
            why = f"passes {shown} on as it stands" if known else f"is not known to fill in {shown}"
            mend = wrong.todo if wrong is not None else ""
            raise Unfit(
                field_name, f"{label} {why}, and {variable} is not set here: behind Interlock the server would not start", spot,
                f"{mend} Or set {variable} where {label} starts, and adopt again.".strip(),
            )  # fmt: skip
        if wrong is not None:
            what = (
                f"mended: {label} passes {shown} on as it stands; from now on the server gets the variable {variable}"
            )
            if one.kind == "file":
                what = (
                    f"mended: {label} passes {shown} on as it stands; from now on the server gets what is in the file"
                )
            elif variable not in self.machine.environ and one.default is None:
                what = f"mended: {label} passes {shown} on as it stands; here it is the variable {variable}, which is not set"
            self.notes.append(Note(field_name, what, spot, mends=True))

    def _answered(self, variable: str, field_name: str, spot: Spot) -> None:
        """Raises Unfit where the host has the answer and Interlock would not."""
        if self.moving and variable not in self.machine.environ:
            label = self.subject.adapter.label
            raise Unfit(
                field_name, f"{label} asks a person for it, and {variable} is not set here: behind Interlock the server would not "
                "start", spot, f"Set {variable} where {label} starts, and adopt again.",
            )  # fmt: skip

    def _word(self, index: int, text: str, cwd: str | None) -> str:
        name, spot = self.subject.word(index)
        filled = self._filled(text, name, spot)
        filled = self._at_home(filled, name, spot)
        inside = found(filled, self.forms)
        if inside:
            filled = self._at_project(filled, inside, name, spot)
        elif self._is_relative(filled, index) and self.entry.cwd is None:
            filled = self._from_project(filled, name, spot)
        return filled

    def _at_home(self, text: str, field_name: str, spot: Spot) -> str:
        """With the whole path for a leading `~`, which a manifest passes on to the server as it stands."""
        if not _TILDE.search(text):
            return text
        label = self.subject.adapter.label
        fills = self.subject.adapter.expands_home.value
        if fills is False:
            what = f"mended: {label} passes `~` on as it stands; the whole path is written"
            self.notes.append(Note(field_name, what, spot, mends=True))
        elif fills is None:
            what = f"the whole path is written for `~`: it is not known whether {label} fills it in"
            self.notes.append(Note(field_name, what, spot))
        return _TILDE.sub(lambda _: self.machine.home, text)

    def _at_project(self, text: str, inside: Sequence[Reference], name: str, spot: Spot) -> str:
        one = inside[0]
        if self._in_project and len(inside) == 1 and one.start == 0 and one.name in _PROJECT_WORDS:
            return self.root + text[one.end :]
        if any(each.name in _PROJECT_WORDS for each in inside):
            raise Unfit(
                name,
                "it depends on the folder that the host is opened in, which a manifest for all of them cannot",
                spot,
            )
        named = ", ".join(each.name for each in inside)
        raise Unfit(
            name, f"a word of its command holds a variable ({named}), and a manifest fills in none there: give it to the server as "
            "an environment variable, if it reads one", spot,
        )  # fmt: skip

    @property
    def _in_project(self) -> bool:
        return self.subject.declaration.scope in ("project", "local")

    def _is_relative(self, word: str, index: int) -> bool:
        return word in (".", "..") or word.startswith(("./", "../", ".\\", "..\\"))

    def _from_project(self, word: str, name: str, spot: Spot) -> str:
        if self._in_project:
            rest = word.replace("\\", "/").removeprefix(".").removeprefix("/")
            if word.startswith(".."):
                return f"{self.root}/{word}"
            return f"{self.root}/{rest}" if rest else self.root
        raise Unfit(
            name, "a path in its command is relative to the folder that the host is opened in, which is not Interlock's; write an "
            "absolute path", spot,
        )  # fmt: skip

    def _cwd(self) -> str | None:
        if self.entry.cwd is None:
            # Hosts start a project's servers in the project's folder, and so does a manifest that lies in it.
            return self.root if self._in_project and self.root != PROJECT_ROOT else None
        name, spot = self.subject.cwd()
        text = self._at_home(self._filled(self.entry.cwd, name, spot), name, spot)
        inside = found(text, self.forms)
        if inside:
            return self._at_project(text, inside, name, spot)
        if self._is_relative(text, 0):
            return self._from_project(text, name, spot)
        return text

    def _filled(self, text: str, field_name: str, spot: Spot) -> str:
        """With the variables filled in that are the same for every program of this user."""
        made, done = "", 0
        for each in found(text, self.forms):
            value = self._known(each.name) if each.kind == "env" else None
            whole = (each.start, each.end) == (0, len(text)) and each.name not in (
                "HOME",
                "userHome",
                "USERPROFILE",
                "/",
            )
            if value is None or (whole and field_name.startswith(("env", "header"))):
                continue
            made += text[done : each.start] + value
            done = each.end
            if each.name == "PATH":
                self.notes.append(
                    Note(field_name, "the PATH of this moment is written down; later changes of it do not count", spot)
                )
        return at_home(made + text[done:], {"HOME": self.machine.home}, self.forms)

    def _known(self, name: str) -> str | None:
        if name in ("HOME", "userHome", "USERPROFILE"):
            return self.machine.home
        if name in ("/", "pathSeparator"):
            return "\\" if self.machine.platform == "windows" else "/"
        return self.machine.environ.get(name) if name in KNOWN_TO_ALL else None

    # Secrets inside of a command

    def _secrets_of_words(self, words: Sequence[str], skipped: int) -> tuple[list[str], dict[str, Value]]:
        """The words without secrets that can be given to the program otherwise, and those. Raises Unfit for any other."""
        kept: list[str] = []
        moved: dict[str, Value] = {}
        program = of_command(words[:1], self.machine.home)[-1] if words else ""
        before: str | None = None
        for index, word in enumerate(words):
            reason = secrets.argument(before, word) if not found(word, self.forms) else None
            name, equals, value = word.removeprefix("--env=").partition("=")
            if reason is not None:
                spot = self.subject.word(index + skipped)[1]
                inside = program in ("docker", "podman") and (before in ("-e", "--env") or word.startswith("--env="))
                leading = program.rpartition("/")[2] == "env" and all("=" in each for each in kept[1:])
                if not equals or not (inside or leading):
                    field_name = self.subject.word(index + skipped)[0]
                    raise Unfit(field_name, f"a secret stands in its command ({reason}); give it to the server as an environment "
                                "variable, if it reads one", spot)  # fmt: skip
                moved[name] = Value(secret=value, spot=spot, why=reason)
                if inside:
                    kept.append(f"--env={name}" if word.startswith("--env=") else name)
            else:
                kept.append(word)
            before = word
        return kept, moved


def _scheme(text: str) -> tuple[str, str]:
    """`Bearer ` and what follows it."""
    word, space, rest = text.partition(" ")
    return (f"{word} ", rest.strip()) if space and word.lower() in _SCHEMES and rest.strip() else ("", text)
