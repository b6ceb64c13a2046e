"""`no-approval` and `oauth-loop`: which line let a call run unasked, and what sends a sign-in round in circles."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from interlock.doctor import symptoms
from interlock.doctor.examining import examined
from interlock.doctor.finding import Finding
from interlock.lab.auth import AuthLab
from interlock.model.stage import Stage

from .ward import tool, wrong

if TYPE_CHECKING:
    from .conftest import Clinic
    from .ward import Ward

TOOLS = [tool("read"), tool("write"), tool("wipe")]


async def complain(ward: Ward, **narrow: str) -> list[Finding]:
    return wrong(await ward.complain("no-approval", **narrow))


@pytest.mark.parametrize("policy", ["", "policy: {defaultApproval: prompt}\n", "policy: {defaultApproval: writes}\n"])
async def test_a_manifest_that_asks(ward: Ward, policy: str) -> None:
    ward.manifest(ward.server("notes", more=policy))
    ward.knows("notes", TOOLS)
    ward.write("~/.codex/config.toml", '[mcp_servers.il]\ncommand = "interlock"\nargs = ["connect"]\n')
    assert await complain(ward) == []


async def test_the_line_that_lets_all_calls_through(ward: Ward) -> None:
    path = ward.manifest(ward.server("notes", more="policy:\n  defaultApproval: auto\n"))
    (finding,) = await complain(ward)  # also where nobody ever listed it
    assert (finding.check, finding.stage, finding.where) == ("approval", Stage.AUTHORIZE, f"{path}:5")
    ward.knows("notes", TOOLS)
    (finding,) = await complain(ward)
    assert finding.where == f"{path}:5"
    assert finding.seen == "nobody is asked before any tool of `notes` runs: `auto` for the server"


async def test_the_strictest_rule_counts_and_the_one_that_loosens_is_named(ward: Ward) -> None:
    more = "policy:\n  defaultApproval: writes\ntools:\n  wipe:\n    approval: auto\n"
    path = ward.manifest(ward.server("notes", more=more))
    ward.knows("notes", TOOLS)
    (finding,) = await complain(ward)
    assert "1 tool (wipe)" in finding.seen
    assert finding.where.startswith(f"{path}:")
    assert finding.where.rpartition(":")[2] in ("7", "8")
    assert await complain(ward, tool="write") == []


async def test_a_host_s_own_file_that_allows(ward: Ward) -> None:
    path = ward.write(
        "~/.codex/config.toml",
        '[mcp_servers.notes]\ncommand = "/bin/true"\n[mcp_servers.notes.tools.wipe]\napproval_mode = "approve"\n',
    )
    (finding,) = await complain(ward, host="codex", tool="wipe")
    assert (finding.check, finding.stage, finding.host) == ("host-approval", Stage.AUTHORIZE, "codex")
    assert finding.where.startswith(str(path))
    assert "`wipe`" in finding.seen
    assert await complain(ward, host="codex", tool="write") == []


async def test_a_hint_of_the_server_s_own_is_enough_for_some_hosts(ward: Ward) -> None:
    ward.write("~/.codex/config.toml", '[mcp_servers.notes]\ncommand = "/bin/true"\n')
    findings = await ward.complain("no-approval", host="codex")
    assert wrong(findings) == []
    assert [each.check for each in findings if each.severity == "note"] == ["asks-nobody"]


async def test_a_question_that_never_appeared(ward: Ward) -> None:
    path = ward.manifest(ward.server("notes"))
    ward.called("notes/write", "needs_approval", slug="needs-approval", host="codex", rule=f"{path}:2", authorize=0.0)
    (finding,) = await complain(ward)
    assert (finding.check, finding.stage, finding.where) == ("asked", Stage.OBSERVE, f"{path}:2")
    assert "by codex had to be approved and nobody could be asked" in finding.seen
    assert "`interlock call notes/write`" in finding.todo


# -- oauth-loop --------------------------------------------------------------------------------------------------------


def remote(url: str) -> str:
    return f"integrationId: lab.remote\nkey: remote\ntransports: {{http: {{endpoint: '{url}', auth: oauth}}}}\n"


async def looped(ward: Ward, **narrow: str) -> list[Finding]:
    return [each for each in await ward.complain("oauth-loop", **narrow) if each.severity == "problem"]


async def test_where_nobody_is_asked_that_is_said(ward: Ward, lab: AuthLab) -> None:
    def silent(findings: list[Finding]) -> list[str]:
        return [each.severity for each in findings if each.seen.startswith("no server was asked")]

    assert silent(await ward.complain("oauth-loop")) == ["unknown"]
    ward.manifest(remote(lab.url))
    assert silent(await ward.complain("oauth-loop")) == []


async def test_a_server_that_somebody_signed_in_to(ward: Ward, clinic: Clinic, lab: AuthLab) -> None:
    ward.manifest(remote(lab.url))
    await clinic.log_in(lab)
    findings = await ward.complain("oauth-loop")
    assert wrong(findings) == []
    assert {"grant", "address"} <= {each.check for each in findings}


SICK = {
    "no PKCE": ({"pkce": "absent"}, "resource-metadata", "PKCE"),
    "another resource": ({"resource": "https://other.example/mcp"}, "resource-metadata", "other.example"),
    "no registration": ({"registration": False}, "registration", "oauth.clientId"),
}


@pytest.mark.parametrize(("settings", "check", "words"), SICK.values(), ids=SICK)
async def test_documents_that_cannot_lead_anywhere(
    ward: Ward, lab: AuthLab, settings: dict[str, object], check: str, words: str
) -> None:
    for name, value in settings.items():
        setattr(lab.behave, name, value)
    ward.manifest(remote(lab.url))
    findings = await looped(ward)
    assert findings[0].check == check
    assert {each.stage for each in findings} == {Stage.AUTHORIZE}
    assert any(words in f"{each.seen} {each.todo}" for each in findings)


async def test_a_port_that_another_program_holds(ward: Ward, lab: AuthLab) -> None:
    async with await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0) as held:
        port = held.sockets[0].getsockname()[1]
        ward.manifest(
            f"integrationId: lab.remote\nkey: remote\ntransports: {{http: {{endpoint: '{lab.url}', "
            f"auth: oauth, oauth: {{callbackPort: {port}}}}}}}\n"
        )
        findings = await looped(ward, server="remote")
    assert [each.check for each in findings] == ["callback-port"]
    assert str(port) in findings[0].seen


async def test_clocks_that_are_apart(ward: Ward, lab: AuthLab) -> None:
    lab.behave.clock = 3600.0
    ward.manifest(remote(lab.url))
    said = [each for each in await ward.complain("oauth-loop") if "clock" in each.seen]
    assert [each.check for each in said][:1] == ["address"]


async def test_two_entries_for_one_server(ward: Ward) -> None:
    url = "https://mcp.example.com/mcp"
    path = ward.write(
        "~/.codex/config.toml",
        f'[mcp_servers.a]\nurl = "{url}"\n[mcp_servers.b]\ncommand = "/bin/true"\nargs = ["bridge", "{url}/"]\n',
    )
    from interlock.doctor.discover import two_entries

    (finding,) = await two_entries.check(ward.examination(host="codex"))
    assert (finding.check, finding.severity, finding.stage) == ("two-entries", "problem", Stage.DISCOVER)
    assert finding.where == f"{path}:1 and {path}:3"
    ward.write("~/.codex/config.toml", f'[mcp_servers.a]\nurl = "{url}"\n')
    assert await two_entries.check(ward.examination(host="codex")) == []


async def test_a_url_is_followed_through_all_stages(ward: Ward, lab: AuthLab) -> None:
    """Also where no manifest and no host declares it."""
    findings = await examined(ward.examination(server=lab.url), symptoms.OF_SERVER)
    assert {"address", "grant", "audit"} <= {each.check for each in findings}
    assert [each.check for each in findings if each.severity == "problem"] == ["declared"]
    ward.manifest(remote(lab.url))
    findings = await examined(ward.examination(server=lab.url), symptoms.OF_SERVER)
    assert [each.check for each in findings if each.severity == "problem"] == []
    assert {each.server for each in findings if each.check == "grant"} == {"remote"}


async def test_a_sign_in_that_a_start_would_need_is_no_failure_of_the_server(ward: Ward, lab: AuthLab) -> None:
    ward.manifest(remote(lab.url))
    findings = await ward.complain("does-not-start", start=True, server="remote")
    (start,) = [each for each in findings if each.check == "start"]
    assert (start.severity, start.seen) == ("warning", "`remote` wants a sign-in or another credential")
    assert start.todo == "`interlock doctor oauth-loop --server remote`"
