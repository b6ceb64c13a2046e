"""`tool-missing` and `wrong-tool`: each machine has one cause, the healthy one none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlock.model.stage import Stage

from .ward import causes, tool, wrong

if TYPE_CHECKING:
    from .ward import Ward

SEARCH = tool("search", "Search the notes of the team by words that stand in them")
WRITE = tool("write", "Append a line of text to one note of the team")


async def test_a_healthy_machine_misses_no_tool(ward: Ward) -> None:
    ward.manifest(ward.server("notes"))
    ward.knows("notes", [SEARCH, WRITE])
    assert wrong(await ward.complain("tool-missing")) == []
    assert wrong(await ward.complain("tool-missing", server="notes", tool="search")) == []


async def test_the_server_is_asked_where_it_was_named(ward: Ward) -> None:
    ward.manifest(ward.server("notes", "--tool-name", "fresh"))
    ward.knows("notes", [SEARCH])
    findings = await ward.complain("tool-missing", server="notes", tool="fresh", start=True)
    assert wrong(findings) == []
    findings = wrong(await ward.complain("tool-missing", server="notes", tool="fresch", start=True))
    assert [each.check for each in findings] == ["tool-list"]
    assert findings[0].stage is Stage.DESCRIBE
    assert "`notes` itself lists no tool `fresch`" in findings[0].seen
    assert "`fresh`" in findings[0].todo


async def test_what_was_never_asked_is_not_claimed(ward: Ward) -> None:
    ward.manifest(ward.server("notes"))
    findings = await ward.complain("tool-missing")
    assert wrong(findings) == []
    assert [each.check for each in findings if each.severity == "unknown"] == ["tool-list"]


async def test_a_server_without_any_tool(ward: Ward) -> None:
    ward.manifest(ward.server("notes"))
    ward.knows("notes", [])
    (finding,) = wrong(await ward.complain("tool-missing"))
    assert (finding.check, finding.seen) == ("tool-list", "`notes` listed no tool at all when it was last asked")


async def test_a_tool_that_the_manifest_denies(ward: Ward) -> None:
    path = ward.manifest(ward.server("notes", more="capability:\n  tools:\n    deny: [write]\n"))
    ward.knows("notes", [SEARCH, WRITE])
    (finding,) = wrong(await ward.complain("tool-missing", tool="write"))
    assert (finding.check, finding.stage, finding.severity) == ("tool-rules", Stage.AUTHORIZE, "problem")
    assert (finding.where, "denied by 'write'" in finding.seen) == (f"{path}:6", True)
    assert wrong(await ward.complain("tool-missing", tool="search")) == []


async def test_a_rule_that_fits_no_tool(ward: Ward) -> None:
    path = ward.manifest(ward.server("notes", more="capability:\n  tools:\n    allow: [Search]\n"))
    ward.knows("notes", [SEARCH, WRITE])
    (finding,) = wrong(await ward.complain("tool-missing"))
    assert (finding.check, finding.severity, finding.where) == ("tool-rules", "problem", f"{path}:6")
    assert "fits none of its 2 tools" in finding.seen
    assert finding.todo == "Did you mean `search`?"


async def test_a_tool_that_is_withheld_for_its_schema(ward: Ward) -> None:
    ward.manifest(ward.server("notes"))
    ward.knows("notes", [SEARCH, {"name": "bad", "inputSchema": {"type": "array"}}])
    (finding,) = wrong(await ward.complain("tool-missing", tool="bad"))
    assert (finding.check, finding.severity) == ("tool-definitions", "problem")
    assert "'array'" in finding.seen
    assert causes(await ward.complain("tool-missing")) == [("tool-definitions", "warning")]


async def test_a_name_that_is_shown_otherwise_is_a_note(ward: Ward) -> None:
    ward.manifest(ward.server("notes"))
    long = "a" * 100
    ward.knows("notes", [tool(long)])
    findings = await ward.complain("tool-missing", tool=long)
    assert wrong(findings) == []
    (note,) = [each for each in findings if each.check == "tool-names"]
    assert note.seen.startswith("hosts see `aaa")


async def test_more_tools_than_the_host_is_said_to_take(ward: Ward) -> None:
    ward.manifest(ward.server("notes"))
    ward.write("~/.cursor/mcp.json", {"mcpServers": {"il": {"command": "interlock", "args": ["connect"]}}})
    ward.knows("notes", [tool(f"t{number:02}") for number in range(41)])
    findings = [
        each for each in wrong(await ward.complain("tool-missing", host="cursor")) if each.check == "tool-count"
    ]
    assert [each.seen for each in findings] == ["41 tools are offered, and cursor is said to take the first 40"]
    ward.knows("notes", [tool(f"t{number:02}") for number in range(40)])
    assert not [
        each for each in wrong(await ward.complain("tool-missing", host="cursor")) if each.check == "tool-count"
    ]


async def test_a_host_s_own_list(ward: Ward) -> None:
    path = ward.write(
        "~/.codex/config.toml", '[mcp_servers.notes]\ncommand = "/bin/true"\nenabled_tools = ["search"]\n'
    )
    (finding,) = wrong(await ward.complain("tool-missing", host="codex", server="notes", tool="write"))
    assert (finding.check, finding.stage, finding.host) == ("host-tool-lists", Stage.AUTHORIZE, "codex")
    assert finding.where == f"{path}:3"
    assert wrong(await ward.complain("tool-missing", host="codex", server="notes", tool="search")) == []


# -- wrong-tool --------------------------------------------------------------------------------------------------------


async def test_tools_that_can_be_told_apart(ward: Ward) -> None:
    ward.manifest(ward.server("notes"), ward.server("tickets"))
    ward.knows("notes", [SEARCH, WRITE])
    ward.knows(
        "tickets",
        [tool("find", "Find tickets that are open, by their state and by who has them"), tool("close", "Close it")],
    )
    assert wrong(await ward.complain("wrong-tool")) == []


async def test_names_that_are_equal_once_cleaned(ward: Ward) -> None:
    path = ward.manifest(ward.server("notes"), ward.server("tickets"))
    ward.knows("notes", [tool("get_item", "One note")])
    ward.knows("tickets", [tool("getItem", "One ticket, with all that was said of it")])
    (finding,) = wrong(await ward.complain("wrong-tool"))
    assert (finding.check, finding.stage, finding.severity) == ("alike-tools", Stage.SELECT, "problem")
    assert "`notes/get_item` and `tickets/getItem` have the same name once cleaned" in finding.seen
    assert finding.where == f"{path}:2 and {path}:6"
    assert "deny: [getItem]" in finding.todo


async def test_descriptions_that_are_nearly_equal(ward: Ward) -> None:
    ward.manifest(ward.server("notes"), ward.server("archive"))
    ward.knows("notes", [SEARCH])
    ward.knows("archive", [tool("look_up", str(SEARCH["description"]).replace("notes", "papers"))])
    (finding,) = wrong(await ward.complain("wrong-tool", tool="search"))
    assert "nearly the same description" in finding.seen
    assert wrong(await ward.complain("wrong-tool", tool="other")) == []
    assert len(wrong(await ward.complain("wrong-tool", server="archive"))) == 1


async def test_a_denied_tool_confuses_nobody(ward: Ward) -> None:
    ward.manifest(ward.server("notes"), ward.server("tickets", more="capability: {tools: {deny: [search]}}\n"))
    ward.knows("notes", [SEARCH])
    ward.knows("tickets", [SEARCH])
    assert wrong(await ward.complain("wrong-tool")) == []


async def test_bare_names_of_two_servers(ward: Ward) -> None:
    entries = {key: {"source": "custom", **ward.native("--tool-name", "same", "--name", key)} for key in ("one", "two")}
    ward.write("~/.config/zed/settings.json", {"context_servers": entries})
    findings = await ward.complain("wrong-tool", host="zed", start=True)
    bare = [each for each in findings if each.check == "bare-names"]
    assert [(each.severity, each.stage) for each in bare] == [("problem", Stage.SELECT)]
    assert "is a tool of one, two" in bare[0].seen
    (note,) = [each for each in await ward.complain("wrong-tool", host="zed") if each.check == "bare-names"]
    assert note.severity == "note"


async def test_names_that_a_host_loses(ward: Ward) -> None:
    """Claude Code keeps the first of two that become the same."""
    entries = {key: {"type": "stdio", **ward.native("--tool-name", "same")} for key in ("my.srv", "my_srv")}
    ward.write("~/.claude.json", {"mcpServers": entries})
    findings = await ward.complain("tool-missing", host="claude-code", tool="same", start=True, seconds=60)
    lost = [each for each in findings if each.check == "tool-names"]
    assert [(each.severity, each.stage) for each in lost] == [("problem", Stage.DESCRIBE)]
    assert "`my_srv/same`" in lost[0].seen


async def test_a_server_past_interlock_has_its_own_names(ward: Ward) -> None:
    ward.manifest("integrationId: a.notes\ntransports: {http: {endpoint: 'https://mcp.example.com/notes'}}\n")
    ward.knows("notes", [SEARCH])
    lines = '[mcp_servers.il]\ncommand = "/bin/interlock"\nargs = ["connect"]\n[mcp_servers.direct]\nurl = "https://mcp.example.com/notes"\n'
    ward.write("~/.codex/config.toml", lines)
    findings = wrong(await ward.complain("wrong-tool", host="codex"))
    assert [(each.check, each.stage) for each in findings] == [("also-direct", Stage.AUTHORIZE)]


async def test_one_server_in_two_hosts_is_not_confused_with_itself(ward: Ward) -> None:
    for file in ("~/.cursor/mcp.json", "~/.claude.json"):
        ward.write(file, {"mcpServers": {file[2:8]: {"type": "stdio", **ward.native()}}})
    findings = await ward.complain("wrong-tool", start=True, seconds=60)
    assert "alike-tools" not in {each.check for each in findings}
