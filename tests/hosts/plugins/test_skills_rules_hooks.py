"""Skills, rules files, hooks: found where hosts look, judged by the rules of their formats, shown without secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlock.hosts.plugins import hooks, rules, showing, skills
from interlock.hosts.plugins.invisible import invisible

from .laid import machine, put

FINE = "---\nname: greet\ndescription: says hello\n---\nHello.\n"
FAULTS = [
    (FINE, []),
    (FINE.replace("\n", "\r\n"), []),
    ("\ufeff" + FINE, []),
    ("Hello.\n", ["skill-no-frontmatter"]),
    ("---\ndescription: d\n---\n", ["skill-name"]),
    ("---\nname: other\ndescription: d\n---\n", ["skill-name"]),
    ("---\nname: Greet\ndescription: d\n---\n", ["skill-name"]),
    ("---\nname: greet--you\ndescription: d\n---\n", ["skill-name"]),
    (f"---\nname: {'a' * 65}\ndescription: d\n---\n", ["skill-name"]),
    ("---\nname: greet\n---\n", ["skill-description"]),
    (f"---\nname: greet\ndescription: {'d' * 1024}\n---\n", []),
    (f"---\nname: greet\ndescription: {'d' * 1025}\n---\n", ["skill-description"]),
    (f"---\nname: greet\ndescription: d\ncompatibility: {'c' * 501}\n---\n", ["skill-compatibility"]),
    ("---\nname: greet\ndescription: d\nmetadata: m\n---\n", ["skill-metadata"]),
    ("---\nname: greet\ndescription: use when: now\n---\n", ["skill-yaml"]),
    (FINE + "do\u200bthis\n", ["hidden-text"]),
]


@pytest.mark.parametrize(("text", "codes"), FAULTS)
def test_rules_of_a_skill(tmp_path: Path, text: str, codes: list[str]) -> None:
    on = machine(tmp_path)
    put(on, "./.claude/skills/greet/SKILL.md", text)
    (skill,) = skills.found(on)
    assert [each.code for each in skill.problems] == codes
    assert skill.scope == "project"
    assert "claude-code" in skill.hosts


def test_what_a_skill_may_use(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, "~/.agents/skills/greet/SKILL.md", (
        "---\nname: greet\ndescription: d\nallowed-tools: Bash(git add:*) Read, mcp__issues__get\n"
        "hooks:\n  PreToolUse: []\n---\nCall mcp__my_notes__search first.\n"
    ))  # fmt: skip
    (skill,) = skills.found(on, ["codex"])
    assert skill.allowed_tools == ("Bash(git add:*)", "Read", "mcp__issues__get")
    assert set(skill.servers) == {"issues", "my_notes"}
    assert skill.hooks == ("PreToolUse",)
    assert skill.hosts == ("codex",)


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("~/.claude/skills", "claude-code"), ("~/.codex/skills", "codex"), ("~/.codex/skills/.system", "codex"),
        ("./.agents/skills", "codex"), ("./.cursor/skills", "cursor"), ("./.github/skills", "copilot-cli"),
        ("./.opencode/skill", "opencode"), ("~/.gemini/config/skills", "antigravity"), ("~/.qwen/skills", "qwen-code"),
    ],
)  # fmt: skip
def test_places_of_skills(tmp_path: Path, path: str, host: str) -> None:
    on = machine(tmp_path)
    put(on, f"{path}/greet/SKILL.md", FINE)
    assert [each.name for each in skills.found(on, [host])] == ["greet"]


HIDDEN = [
    ("plain", 0), ("na\u00efve caf\u00e9 \u4e2d\u6587", 0), ("\ufeffbegins", 0), ("mid\ufeffdle", 1), ("a\u200bb", 1),
    ("\u202egnp.exe", 1), ("tag\U000e0041\U000e0042", 2), ("family \U0001f468\u200d\U0001f469", 0),
    ("flag \U0001f3f4\U000e0067\U000e0062\U000e007f", 0), ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", 0),
    ("soft\u00adhyphen", 1), ("\u2066isolate\u2069", 2),
]  # fmt: skip


@pytest.mark.parametrize(("text", "count"), HIDDEN)
def test_characters_that_nobody_sees(text: str, count: int) -> None:
    assert len(invisible(text, "f")) == count


def test_where_an_invisible_character_stands() -> None:
    (spot,) = invisible("one\ntwo \u200bthree\n", "f")
    assert (spot.line, spot.column) == (2, 5)


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("./AGENTS.md", "codex"), ("./CLAUDE.md", "claude-code"), ("./GEMINI.md", "gemini-cli"), ("./.cursorrules", "cursor"),
        ("./.cursor/rules/deep/a.mdc", "cursor"), ("./.windsurfrules", "windsurf"),
        ("./.github/copilot-instructions.md", "copilot-cli"), ("./.junie/guidelines.md", "jetbrains"),
        ("~/.claude/CLAUDE.md", "claude-code"), ("~/.codex/AGENTS.md", "codex"), ("./.clinerules", "cline"),
    ],
)  # fmt: skip
def test_places_of_rules(tmp_path: Path, path: str, host: str) -> None:
    on = machine(tmp_path)
    logical = put(on, path, "Be \u200bkind.\n")
    (rule,) = rules.found(on, [host])
    assert (rule.path, rule.hosts, rule.size, len(rule.hidden)) == (logical, (host,), 12, 1)


def test_rules_of_every_folder_up_to_the_repository(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, "~/AGENTS.md", "above the repository")
    put(on, "./AGENTS.md", "x" * 40_000)
    (rule,) = rules.found(on, ["codex"])
    assert rule.path == "/home/ada/code/AGENTS.md"
    assert "32 KiB" in rule.note


def test_hooks_of_three_shapes_with_their_secrets_blacked_out(tmp_path: Path) -> None:
    on = machine(tmp_path)
    token = "gh" + "p_" + "A" * 36
    put(on, "~/.claude/settings.json", {"hooks": {"Stop": [{"hooks": [
        {"type": "command", "command": f"curl -H 'Authorization: Bearer {token}' https://a"},
        {"type": "prompt", "prompt": "done?"},
    ]}]}})  # fmt: skip
    put(
        on,
        "./.cursor/hooks.json",
        {"version": 1, "hooks": {"afterFileEdit": [{"command": "fmt --api-key hunter2hunter2"}]}},
    )
    put(
        on,
        "~/.codex/config.toml",
        '[[hooks.PreToolUse]]\nmatcher = "Bash"\n\n[[hooks.PreToolUse.hooks]]\ntype = "command"\ncommand = "x"\n',
    )
    found = hooks.found(on)
    assert [(each.host, each.event, each.does, each.spot.line > 0) for each in found] == [
        ("claude-code", "Stop", "command", True), ("claude-code", "Stop", "prompt", True),
        ("codex", "PreToolUse", "command", True), ("cursor", "afterFileEdit", "command", True),
    ]  # fmt: skip
    told = json.dumps(showing.as_dict(showing.take(on))) + "\n".join(showing.lines(showing.take(on)))
    assert token not in told
    assert "hunter2" not in told
    assert "fmt --api-key ****" in told


def test_what_is_shown_is_printable(tmp_path: Path) -> None:
    on = machine(tmp_path)
    put(on, "./.claude/skills/greet/SKILL.md", FINE.replace("greet", "gr\u202eeet"))
    put(on, "./.cursor/hooks.json", {"hooks": {"stop\u001b[2J": [{"command": "a\u001b[31m"}]}})
    assert all(line.isprintable() for line in showing.lines(showing.take(on)))
