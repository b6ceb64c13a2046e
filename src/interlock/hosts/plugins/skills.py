"""Skills (`SKILL.md`): where they lie, who loads them, what they may do, and which rules of the format they break.

The rules are those of agentskills.io. A host may load a skill that breaks one; another host will not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from interlock.hosts.declaration import Problem, Spot
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import files
from interlock.hosts.plugins.invisible import invisible
from interlock.hosts.reading import read_bytes
from interlock.hosts.text.document import Damaged

_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*\Z")
_SERVER_TOOL = re.compile(r"\bmcp__([A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*)__")
_FRONT = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    hosts: tuple[str, ...]
    """Those that look for skills in this place, as far as is known."""
    name: str
    description: str
    path: str
    scope: str
    allowed_tools: tuple[str, ...] = ()
    hooks: tuple[str, ...] = ()
    """Events that its own hooks run at (Claude Code)."""
    servers: tuple[str, ...] = ()
    """MCP servers whose tools it names."""
    source: str = ""
    """The plugin that brings it."""
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class _Where:
    folder: str
    hosts: tuple[str, ...]
    scope: str


def _places(machine: Machine) -> Iterator[_Where]:
    user, environ = machine.user, machine.environ
    claude = environ.get("CLAUDE_CONFIG_DIR") or user(".claude")
    codex = environ.get("CODEX_HOME") or user(".codex")
    yield _Where(machine.join(claude, "skills"), ("claude-code", "opencode"), "user")
    yield _Where(machine.join(codex, "skills"), ("codex",), "user")
    yield _Where(user(".agents", "skills"), ("codex", "copilot-cli", "opencode", "gemini-cli"), "user")
    yield _Where(user(".cursor", "skills"), ("cursor",), "user")
    yield _Where(user(".copilot", "skills"), ("copilot-cli",), "user")
    yield _Where(user(".gemini", "skills"), ("gemini-cli",), "user")
    yield _Where(user(".gemini", "config", "skills"), ("antigravity",), "user")
    yield _Where(user(".qwen", "skills"), ("qwen-code",), "user")
    for name in ("skill", "skills"):
        yield _Where(machine.config("opencode", name), ("opencode",), "user")
    for folder in machine.project_folders():
        join = machine.join
        yield _Where(join(folder, ".claude", "skills"), ("claude-code", "copilot-cli", "opencode"), "project")
        yield _Where(
            join(folder, ".agents", "skills"),
            ("codex", "copilot-cli", "opencode", "gemini-cli", "antigravity"),
            "project",
        )
        yield _Where(join(folder, ".codex", "skills"), ("codex",), "project")
        yield _Where(join(folder, ".cursor", "skills"), ("cursor",), "project")
        yield _Where(join(folder, ".github", "skills"), ("copilot-cli", "vscode"), "project")
        yield _Where(join(folder, ".gemini", "skills"), ("gemini-cli",), "project")
        yield _Where(join(folder, ".qwen", "skills"), ("qwen-code",), "project")
        for name in ("skill", "skills"):
            yield _Where(join(folder, ".opencode", name), ("opencode",), "project")
    if machine.platform != "windows":
        yield _Where("/etc/codex/skills", ("codex",), "system")


def found(machine: Machine, hosts: Sequence[str] | None = None) -> list[Skill]:
    """Skills outside of plugins, in the known places. Codex keeps its own in `.system`, one folder deeper."""
    skills: list[Skill] = []
    seen: set[str] = set()
    for place in _places(machine):
        loaders = tuple(each for each in place.hosts if hosts is None or each in hosts)
        if not loaders or place.folder in seen:
            continue
        seen.add(place.folder)
        skills += in_folder(machine, place.folder, hosts=loaders, scope=place.scope)
        if "codex" in loaders:
            skills += in_folder(machine, machine.join(place.folder, ".system"), hosts=("codex",), scope="system")
    return skills


def in_folder(machine: Machine, folder: str, *, hosts: tuple[str, ...], scope: str, source: str = "") -> list[Skill]:
    """Every `NAME/SKILL.md` of a folder; a SKILL.md in the folder itself is one skill."""
    skills = []
    for path in [machine.join(folder, "SKILL.md"), *_below(machine, folder)]:
        skill = read(machine, path, hosts=hosts, scope=scope, source=source)
        if skill is not None:
            skills.append(skill)
    return skills


def _below(machine: Machine, folder: str) -> list[str]:
    return [machine.join(folder, name, "SKILL.md") for name in files.folders(machine, folder)]


def read(machine: Machine, path: str, *, hosts: tuple[str, ...], scope: str, source: str = "") -> Skill | None:
    """None where there is no such file."""
    try:
        content = read_bytes(machine, path)
    except (Damaged, OSError):
        content = b""
    if content is None:
        return None
    text = content.decode("utf-8", "replace")
    front, body_from, fault = _front(text)
    folder = machine.paths.basename(machine.paths.dirname(path))
    problems = [fault] if fault is not None else list(_faults(front, folder, path))
    if fault is not None:
        problems = [Problem(fault.code, fault.severity, fault.seen, todo=fault.todo, spot=Spot(path, 1, 1))]
    problems += _hidden(text, path)
    name = files.text_of(front.get("name"))
    hooks = files.inner(front, "hooks")
    servers = dict.fromkeys(_SERVER_TOOL.findall(text[body_from:] + " " + " ".join(_words(front.get("allowed-tools")))))
    return Skill(
        hosts=hosts, name=name or folder, description=files.text_of(front.get("description")), path=path, scope=scope,
        allowed_tools=_words(front.get("allowed-tools")), hooks=tuple(hooks), servers=tuple(servers), source=source,
        problems=tuple(problems),
    )  # fmt: skip


def _front(text: str) -> tuple[Mapping[str, object], int, Problem | None]:
    """The front matter, where the body begins, and why there is no front matter."""
    match = _FRONT.match(text)
    if match is None:
        fault = Problem(
            "skill-no-frontmatter", "problem", "It does not begin with `---`, a name, a description and `---`.",
            todo="Without them no host knows what the skill is for.",
        )  # fmt: skip
        return {}, 0, fault
    from interlock.hosts.text import yaml

    try:
        value = yaml.parse(match[1].encode()).value
    except Damaged:
        value = _loosely(match[1])
    if not isinstance(value, dict):
        return {}, match.end(), Problem("skill-no-frontmatter", "problem", "Its front matter is no list of fields.")
    return value, match.end(), None


def _loosely(text: str) -> dict[str, object]:
    """`name: a: b` is wrong YAML that some hosts take line by line."""
    found: dict[str, object] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if colon and re.fullmatch(r"[A-Za-z][A-Za-z-]*", name):
            found[name] = value.strip().strip("\"'")
    found["\0loose"] = True
    return found


def _words(value: object) -> tuple[str, ...]:
    """`Bash(git add:*) Read`: separated by spaces or commas, but not inside of parentheses; or a list."""
    if isinstance(value, list):
        return tuple(str(each) for each in value)
    if not isinstance(value, str):
        return ()
    return tuple(re.findall(r"[^\s,(]+(?:\([^)]*\))?", value))


def _faults(front: Mapping[str, object], folder: str, path: str) -> Iterator[Problem]:
    spot = Spot(path, 1, 1)
    name, description = front.get("name"), front.get("description")
    if "\0loose" in front:
        yield Problem(
            "skill-yaml", "warning", "Its front matter is not valid YAML; some hosts skip the skill.", spot=spot,
            todo="Put quotes around a value that has `: ` in it.",
        )  # fmt: skip
    if not isinstance(name, str) or not name:
        yield Problem(
            "skill-name", "warning", "It has no name.", field="name", spot=spot, todo=f"Add `name: {folder}`."
        )
    elif len(name) > 64 or not _NAME.match(name):
        yield Problem(
            "skill-name", "problem",
            "Its name is longer than 64 characters, or has others than a-z, 0-9 and single hyphens between them.",
            field="name", spot=spot,
        )  # fmt: skip
    elif name != folder:
        yield Problem(
            "skill-name", "problem", f"Its name is `{name}` and its folder `{folder}`: they must be the same.",
            field="name", spot=spot, todo="Rename one of them.",
        )  # fmt: skip
    if not isinstance(description, str) or not description.strip():
        yield Problem(
            "skill-description", "problem", "It has no description, so no model knows when to use it.",
            field="description", spot=spot,
        )  # fmt: skip
    elif len(description) > 1024:
        yield Problem(
            "skill-description", "problem", f"Its description has {len(description)} characters; 1024 are allowed.",
            field="description", spot=spot,
        )  # fmt: skip
    if len(files.text_of(front.get("compatibility"))) > 500:
        yield Problem(
            "skill-compatibility", "problem", "`compatibility` has more than 500 characters.", field="compatibility",
            spot=spot,
        )  # fmt: skip
    metadata = front.get("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        yield Problem("skill-metadata", "problem", "`metadata` is no table.", field="metadata", spot=spot)


def _hidden(text: str, path: str) -> list[Problem]:
    spots = invisible(text, path)
    if not spots:
        return []
    return [
        Problem(
            "hidden-text", "problem", f"It has {len(spots)} invisible or direction-changing characters.",
            why="A model reads what a person does not see.", spot=spots[0],
            todo="Look at the file with an editor that shows them, and remove them.",
        )
    ]  # fmt: skip
