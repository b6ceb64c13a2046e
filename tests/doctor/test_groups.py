"""What `interlock doctor` prints for people: one remedy once, short paths, and a next step that stands by itself."""

from __future__ import annotations

from interlock.cli.doctor_groups import groups, next_lines, without_repeats
from interlock.doctor.finding import Check, Finding, Severity
from interlock.hosts.machine import Machine
from interlock.model.stage import Stage

ON = Machine(platform="linux", home="/home/ada", folder="/home/ada/shop", environ={})
FIX = "Pin a version."


def finding(
    seen: str, where: str, todo: str = FIX, *, check: str = "unpinned", host: str = "codex", server: str = "docs",
    severity: Severity = "warning", why: str = "It changes.",
) -> Finding:  # fmt: skip
    return Check(check, Stage.DISCOVER).found(severity, seen, where, why, todo, host=host, server=server)


def text(*findings: Finding, why: bool = False) -> list[str]:
    return [line for group in groups(findings) for line in group.lines(ON, 80, why=why)]


def test_the_same_seen_and_the_same_remedy_is_told_once_with_all_places() -> None:
    lines = text(
        finding("`npx` runs.", "/home/ada/.codex/config.toml:3"),
        finding("`npx` runs.", "/home/ada/shop/.mcp.json:7", host="claude-code"),
    )
    assert lines == [
        "unpinned: `npx` runs.  [~/.codex/config.toml:3, .mcp.json:7]",
        "      fix: Pin a version.",
    ]


def test_different_things_with_one_remedy_have_a_line_each() -> None:
    lines = text(finding("one", "/home/ada/a.json:1"), finding("two", "/home/ada/b.json:2"))
    assert lines == [
        "unpinned:",
        "      - one  [codex: docs, ~/a.json:1]",
        "      - two  [codex: docs, ~/b.json:2]",
        "      fix: Pin a version.",
    ]


def test_other_remedies_checks_and_severities_stay_apart() -> None:
    first = finding("one", "/a:1")
    others = [
        finding("one", "/a:1", "Other."),
        finding("one", "/a:1", check="x"),
        finding("one", "/a:1", severity="problem"),
    ]
    assert len(groups([first, *others])) == 4


def test_findings_without_a_remedy_stay_apart() -> None:
    assert len(groups([finding("one", "/a:1", ""), finding("two", "/b:1", "")])) == 2


def test_many_places_are_counted() -> None:
    (first, *rest) = text(*(finding("one", f"/a/{number}") for number in range(9)))
    assert "/a/5, and 3 more]" in " ".join([first, *rest])
    assert "/a/6" not in " ".join([first, *rest])


def test_why_is_told_where_it_is_wanted_and_the_width_is_kept() -> None:
    long = finding("word " * 60, "/home/ada/.codex/config.toml:3", "do " * 60, why="because " * 30)
    lines = text(long, why=True)
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("      why: ") for line in lines) == 1
    assert sum(line.startswith("      fix: ") for line in lines) == 1
    assert not any("why: " in line for line in text(long))


def test_paths_are_short_but_not_where_they_are_to_be_typed() -> None:
    lines = text(
        finding(
            "it is in (/home/ada/.codex/config.toml)",
            "/home/adam/x:1",
            "Write `--dir=/home/ada/bin/x` to /home/ada/.x.",
        )
    )
    assert "(~/.codex/config.toml)" in lines[0]
    assert "/home/adam/x:1]" in lines[1]
    assert lines[2] == "      fix: Write `--dir=/home/ada/bin/x` to ~/.x."


def test_what_one_fault_takes_down_is_not_told_again() -> None:
    where = "/home/ada/.gemini/settings.json:5"
    fault = finding("one fault takes 2 servers down", where, check="blast-radius", host="gemini-cli")
    at_it = finding("cannot use `docs`", where, check="host-entry", host="gemini-cli")
    beside = finding(
        f"cannot use `a` ({where})", "/home/ada/.gemini/settings.json:2", check="host-entry", host="gemini-cli"
    )
    other = finding("cannot use `a`", where, check="host-entry", host="qwen-code")
    elsewhere = finding("cannot use `b`", "/home/ada/.gemini/settings.json:2", check="host-entry", host="gemini-cli")
    assert without_repeats([fault, at_it, beside, other, elsewhere]) == [fault, other, elsewhere]


def test_the_next_step_says_where_what_and_how() -> None:
    step = finding("`${T}` stays as it is.", "/home/ada/.codex/config.toml:6", 'Use `env_vars = ["T"]`.')
    assert " ".join(" ".join(next_lines(step, ON, 80)).split()) == (
        'codex, `docs`, ~/.codex/config.toml:6: `${T}` stays as it is. Use `env_vars = ["T"]`.'
    )
