"""The whole examination: a healthy server has no problem, a sick one does, and neither is changed by looking."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from interlock.doctor import bridge, kept
from interlock.doctor.discover import tls
from interlock.doctor.finding import Finding
from interlock.doctor.safely import safely
from interlock.lab.auth import AuthLab
from interlock.manifest.config import HttpTransport, OAuth, TokenSource
from interlock.upstream.oauth.flow_note import read_note
from interlock.upstream.oauth.grant import Refusal
from interlock.upstream.oauth.grant_store import grant_id
from interlock.upstream.oauth.issuer_binding import hold

if TYPE_CHECKING:
    from .conftest import Clinic

Snapshot = Callable[[Path], Mapping[str, object]]


def told(findings: list[Finding]) -> str:
    return "\n".join(
        f"{each.severity} {each.check}: {each.seen} | {each.where} | {each.why} | {each.todo}" for each in findings
    )


def worst(findings: list[Finding], check: str) -> str:
    order = ["ok", "note", "unknown", "warning", "problem"]
    return max((each.severity for each in findings if each.check == check), key=order.index, default="none")


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_healthy_server_has_no_problem_and_nothing_changes(
    clinic: Clinic, snapshot: Snapshot, era: str
) -> None:
    async with AuthLab(era=era) as lab:
        _, grant = await clinic.log_in(lab)
        before, counts = snapshot(clinic.home), dict(lab.counts)
        tokens = dict(lab.truth.token_requests)
        findings = await clinic.examine(lab.url)
        assert {each.severity for each in findings} <= {"ok", "note"}, told(findings)
        assert snapshot(clinic.home) == before
        changed = {name for name, count in lab.counts.items() if count != counts.get(name, 0)}
        assert changed <= {"metadata_requests", "resource_metadata_requests"}
        assert dict(lab.truth.token_requests) == tokens
        (spoken,) = [each for each in findings if each.check == "era"]
        assert spoken.seen.startswith(f"{era} era, revision 20")
        text = told(findings)
        assert "the server takes the access token" in text
        assert f"meant for {lab.url}" in text
        assert "a grant for mcp, generation 1" in text
        assert not any(secret in text for secret in (grant.access_token, grant.refresh_token))


async def test_every_check_says_where_and_problems_say_what_to_do(clinic: Clinic, lab: AuthLab) -> None:
    lab.behave.refuse_access = True
    lab.behave.pkce = "absent"
    findings = await clinic.examine(lab.url)
    assert all(each.todo and each.why for each in findings if each.severity == "problem"), told(findings)
    names = [name for name, _stage, _check in bridge.OF_SERVER]
    seen = [each.check for each in findings]
    assert sorted(seen, key=names.index) == seen


async def test_before_a_login(clinic: Clinic, lab: AuthLab, snapshot: Snapshot) -> None:
    before = snapshot(clinic.home)
    findings = await clinic.examine(lab.url)
    assert snapshot(clinic.home) == before
    assert (worst(findings, "grant"), worst(findings, "era"), worst(findings, "registration")) == (
        "warning",
        "unknown",
        "ok",
    )
    assert (lab.counts["registrations"], lab.counts["authorize_requests"]) == (0, 0)


async def test_a_server_that_is_not_there(clinic: Clinic, lab: AuthLab) -> None:
    await lab.mcp_listener.down()
    findings = await clinic.examine(lab.url)
    assert worst(findings, "address") == "problem"
    assert "nothing listens at 127.0.0.1:" in told(findings)


async def test_a_server_that_is_silent_ends_in_time(clinic: Clinic, lab: AuthLab) -> None:
    lab.behave.rs_silent = True
    case = clinic.case(lab.url)
    case.seconds = 0.5
    began = time.monotonic()
    findings = await bridge.of_server(case)
    assert time.monotonic() - began < len(bridge.OF_SERVER) * 0.5 * bridge.PATIENCE
    assert worst(findings, "address") == "problem"
    assert "no answer within 0.5 s" in told(findings)


async def test_a_name_that_does_not_resolve(clinic: Clinic) -> None:
    findings = await clinic.examine("https://nothing.invalid/mcp", "address")
    assert [(each.severity, each.seen) for each in findings] == [
        ("problem", "the name nothing.invalid does not resolve")
    ]


async def test_plain_http_to_another_machine_is_a_problem(clinic: Clinic) -> None:
    findings = await tls.check(clinic.case("http://nothing.invalid/mcp"))
    assert [each.severity for each in findings] == ["problem"]


async def test_a_path_without_an_endpoint(clinic: Clinic, lab: AuthLab) -> None:
    findings = await clinic.examine(lab.url.replace("/mcp", "/elsewhere"))
    assert [each.seen.partition(" in ")[0] for each in findings if each.severity == "problem"] == [
        "it answers HTTP 404"
    ]
    assert "there is no MCP server at this path" in told(findings)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_nothing_is_said_twice_of_a_name_that_does_not_resolve(clinic: Clinic, scheme: str) -> None:
    findings = await clinic.examine(f"{scheme}://nothing.invalid/mcp")
    assert [(each.check, each.severity) for each in findings if each.severity not in ("ok", "note")] == [
        ("address", "problem"),
        ("tls", "unknown"),
    ]
    assert findings[-1].seen.startswith("not looked at before that is mended, nor era, log-in, ")


async def test_no_name_of_an_exception_reaches_a_person(clinic: Clinic, lab: AuthLab) -> None:
    await lab.mcp_listener.down()
    url = lab.url
    for each in (url, url.replace("http:", "https:"), "https://nothing.invalid/mcp"):
        assert not re.search(r"[A-Z]\w+(Error|Timeout)", told(await clinic.examine(each)))
    await lab.mcp_listener.up()
    assert not re.search(r"[A-Z]\w+(Error|Timeout)", told(await clinic.examine(url.replace("http:", "https:"))))


async def test_a_server_that_has_moved_to_another_issuer(clinic: Clinic, lab: AuthLab) -> None:
    _id, grant = await clinic.log_in(lab)
    await clinic.change(_id, lambda kept: msgspec.structs.replace(kept, issuer="https://former.example"))
    moved = [each.grant for each in kept.look(clinic.home) if each.grant is not None]
    assert [each.issuer for each in moved] == ["https://former.example"]
    store = clinic.store()
    async with store.locked(_id, 5) as held:
        held.remove()
    other = grant_id(grant.resource, "https://former.example", None)
    async with store.locked(other, 5) as held:
        held.write(moved[0])
    (finding,) = await clinic.examine(lab.url, "grant")
    assert finding.severity == "warning"
    assert f"names another authorization server, {lab.issuer}" in finding.why
    assert "from https://former.example is of no use there" in finding.why
    assert finding.todo == f"`interlock login {lab.url}`"


async def test_the_port_of_a_setting_is_the_one_that_is_looked_at(clinic: Clinic, lab: AuthLab) -> None:
    """Also where an earlier sign-in listens elsewhere; and another sign-in of Interlock is not to be ended."""
    shared = clinic.shared()
    try:
        found = await clinic.case(lab.url).discovered()
        other = grant_id(found.resource, "https://other.example", None)
        mine = grant_id(found.resource, found.issuer, None)
        for id in (mine, other):
            await shared.logins.offer(id, found, OAuth(), {}, scope=("mcp",), seconds=10)
        note = read_note(shared.store.root, other)
        assert note is not None
        clinic.transport = HttpTransport(oauth=OAuth(callback_port=note.port))
        (finding,) = await clinic.examine(lab.url, "callback-port")
        assert finding.severity == "problem"
        assert f"holds the callback port {note.port} for another sign-in" in finding.seen
        assert finding.todo.startswith("Finish that one, or wait")
    finally:
        await shared.close()


@pytest.mark.parametrize("ahead", [1800.0, -1800.0])
async def test_the_server_s_clock_counts(clinic: Clinic, lab: AuthLab, ahead: float) -> None:
    lab.behave.clock = ahead
    await clinic.log_in(lab)
    findings = await clinic.examine(lab.url)
    text = told(findings)
    side = "behind" if ahead > 0 else "ahead of"
    assert re.search(rf"this machine's clock is (1799|1800|1801) s {side} the server's", text)
    assert "the access token ends in 60 min" in text
    assert "the server takes the access token" in text


SICK = {
    "no PKCE": ({"pkce": "absent"}, "resource-metadata", "problem", "PKCE"),
    "another issuer": ({"metadata_issuer": "https://other.example"}, "resource-metadata", "problem", "issuer"),
    "no resource metadata": ({"resource_metadata": "absent"}, "authorization-server", "warning", "nothing is known of it"),
    "no authorization server metadata": ({"metadata": ()}, "resource-metadata", "problem", "http"),
    "metadata for another server": ({"resource": "https://other.example/mcp"}, "resource-metadata", "problem", "other.example"),
    "no registration": ({"registration": False}, "registration", "problem", "oauth.clientId"),
    "iss is not promised": ({"iss_advertised": False}, "authorization-server", "note", "RFC 9207"),
    "no challenge": ({"challenge": "absent"}, "log-in", "note", "without a Bearer challenge"),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "check", "severity", "words"), SICK.values(), ids=SICK)
async def test_documents(
    clinic: Clinic, lab: AuthLab, settings: dict[str, object], check: str, severity: str, words: str
) -> None:
    for name, value in settings.items():
        setattr(lab.behave, name, value)
    findings = await clinic.examine(lab.url)
    assert worst(findings, check) == severity, told(findings)
    assert words in told([each for each in findings if each.check == check])


async def test_a_configured_client_that_belongs_elsewhere(clinic: Clinic, lab: AuthLab) -> None:
    settings = OAuth(client_id=lab.clients.preset)
    clinic.transport = HttpTransport(oauth=settings)
    found = await clinic.case(lab.url).discovered()
    hold(clinic.store(), found, settings, {})
    findings = await clinic.examine(lab.url, "registration")
    assert (worst(findings, "registration"), len(findings)) == ("ok", 1)
    async with AuthLab(era="modern") as other:
        lab.behave.authorization_servers = (other.issuer,)
        findings = await clinic.examine(lab.url, "registration")
        assert worst(findings, "registration") == "problem"
        text = told(findings)
        for part in (lab.issuer, other.issuer, f"`interlock logout {lab.url}`", "oauth.issuer (--issuer)"):
            assert part in text


async def test_a_server_without_metadata_does_not_conform(clinic: Clinic) -> None:
    async with AuthLab(era="legacy", one_origin=True) as lab:
        lab.behave.resource_metadata = "absent"
        lab.behave.metadata = ()
        findings = await clinic.examine(lab.url, "authorization-server", "resource-metadata")
        assert worst(findings, "authorization-server") == worst(findings, "resource-metadata") == "warning"
        assert "Not conforming: nothing says" in told(findings)


async def test_missing_pkce_that_is_waived_is_a_warning(clinic: Clinic, lab: AuthLab) -> None:
    lab.behave.pkce = "absent"
    clinic.transport = HttpTransport(oauth=OAuth(allow_missing_pkce=True))
    findings = await clinic.examine(lab.url, "authorization-server", "resource-metadata")
    assert {worst(findings, "authorization-server"), worst(findings, "resource-metadata")} == {"warning"}


async def test_a_server_of_2025_03_26_is_told_as_such(clinic: Clinic) -> None:
    async with AuthLab(era="legacy", one_origin=True) as lab:
        lab.behave.resource_metadata = "absent"
        findings = await clinic.examine(lab.url, "resource-metadata")
        assert worst(findings, "resource-metadata") in ("note", "warning")
        assert "its own origin is taken for the authorization server" in told(findings)


GRANTS = {
    "dead": ({"state": "dead"}, "problem", "the grant for mcp has ended"),
    "spent": ({"state": "spent", "presented_at": 1.0}, "warning", "no answer came"),
    "refused": (
        {
            "state": "refused",
            "refusal": Refusal(first_at=1, last_at=1, count=2, error="invalid_grant", description="gone"),
        },
        "warning",
        "refused 2 times",
    ),
    "access token over": ({"expires_at": 1.0}, "note", "The next call renews it."),
    "refresh token over": ({"refresh_expires_at": 1.0}, "problem", "the refresh token ended"),
    "no refresh token": ({"refresh_token": None}, "note", "no refresh token"),
    "opaque": ({"access_token": "opaque-and-not-taken"}, "warning", "is opaque"),
    "not yet": ({"refresh_not_before": 9e9}, "note", "it may be renewed from"),
    "narrow": ({"scope": ("other",)}, "note", "were not granted: mcp"),
}


@pytest.mark.parametrize(("changes", "severity", "words"), GRANTS.values(), ids=GRANTS)
async def test_grants(
    clinic: Clinic, lab: AuthLab, changes: dict[str, object], severity: str, words: str, snapshot: Snapshot
) -> None:
    id, _ = await clinic.log_in(lab)
    await clinic.change(id, lambda grant: msgspec.structs.replace(grant, **changes))
    before = snapshot(clinic.home)
    findings = await clinic.examine(lab.url, "grant")
    assert worst(findings, "grant") == severity, told(findings)
    assert words in told(findings)
    assert snapshot(clinic.home) == before
    assert lab.truth.token_requests["refresh_token"] == 0


async def test_a_token_for_somebody_else(clinic: Clinic, lab: AuthLab) -> None:
    lab.behave.wrong_audience = "https://other.example/api"
    await clinic.log_in(lab)
    findings = await clinic.examine(lab.url, "grant")
    assert "'https://other.example/api'" in told(findings)
    assert "the server rejects the access token" in told(findings)


async def test_a_revoked_token(clinic: Clinic, lab: AuthLab) -> None:
    await clinic.log_in(lab)
    lab.revoke_access()
    findings = await clinic.examine(lab.url, "grant")
    assert "the server rejects the access token, which should still be good" in told(findings)


async def test_a_grant_that_others_can_read_and_one_that_is_damaged(
    clinic: Clinic, lab: AuthLab, snapshot: Snapshot
) -> None:
    id, _ = await clinic.log_in(lab)
    file = clinic.home / "grants" / f"{id}.json"
    file.write_text("{}")
    file.chmod(0o644)
    before = snapshot(clinic.home)
    findings = await clinic.examine(lab.url, "grant")
    assert "its mode is 0644" in told(findings)
    assert "the grant's file cannot be read: no version" in told(findings)
    assert snapshot(clinic.home) == before


async def test_what_the_log_says_of_refusals(clinic: Clinic, lab: AuthLab) -> None:
    await clinic.log_in(lab)
    log = clinic.shared().log
    host = lab.url.split("/")[2]
    log.write("refresh-refused", host, "grant: invalid_grant it is over")
    log.write("refresh-refused", "another.example", "grant: invalid_grant another")
    findings = await clinic.examine(lab.url, "grant-log")
    assert [(each.severity, each.seen.endswith("invalid_grant it is over")) for each in findings] == [("note", True)]


async def test_a_personal_access_token(clinic: Clinic, lab: AuthLab, tmp_path: Path) -> None:
    clinic.transport = HttpTransport(token=TokenSource(env="ACME", file=tmp_path / "token"))
    assert worst(await clinic.examine(lab.url), "access-token") == "problem"
    clinic.environ["ACME"] = lab.personal_token
    findings = await clinic.examine(lab.url)
    assert worst(findings, "access-token") == "ok", told(findings)
    assert worst(findings, "era") == "ok"
    assert {each.check for each in findings}.isdisjoint({"grant", "registration", "resource-metadata", "callback-port"})
    assert lab.personal_token not in told(findings)
    lab.behave.refuse_personal = True
    findings = await clinic.examine(lab.url, "access-token")
    assert [(each.severity, each.seen) for each in findings] == [
        ("problem", "the token from the environment variable ACME is rejected (HTTP 401)")
    ]


async def test_a_token_file_that_others_can_read(clinic: Clinic, lab: AuthLab, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(lab.personal_token)
    (tmp_path / "token").chmod(0o644)
    clinic.transport = HttpTransport(token=TokenSource(file=tmp_path / "token"))
    findings = await clinic.examine(lab.url, "access-token")
    assert worst(findings, "access-token") == "problem"
    assert "chmod 600" in told(findings)


async def test_no_login_is_set_and_the_server_wants_one(clinic: Clinic, lab: AuthLab) -> None:
    clinic.transport = HttpTransport()
    findings = await clinic.examine(lab.url, "log-in")
    assert worst(findings, "log-in") == "problem"
    assert "auth: oauth" in told(findings)


async def test_an_open_login_and_its_port(clinic: Clinic, lab: AuthLab) -> None:
    shared = clinic.shared()
    try:
        case = clinic.case(lab.url)
        found = await case.discovered()
        id = grant_id(found.resource, found.issuer, None)
        offer = await shared.logins.offer(id, found, OAuth(), {}, scope=("mcp",), seconds=10)
        findings = await clinic.examine(lab.url, "open-login", "callback-port")
        assert offer.url in told(findings)
        assert "listens there for this sign-in" in told(findings)
    finally:
        await shared.close()
    findings = await clinic.examine(lab.url, "open-login", "callback-port")
    assert worst(findings, "open-login") == "warning"
    assert "nobody listens for its end" in told(findings)


@pytest.mark.parametrize(("fixed", "severity"), [(True, "problem"), (False, "note")])
async def test_a_foreign_process_on_the_port_is_named(clinic: Clinic, lab: AuthLab, fixed: bool, severity: str) -> None:
    from interlock.upstream.oauth.ports import stable_port

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    found = await clinic.case(lab.url).discovered()
    wanted = 0 if fixed else stable_port(grant_id(found.resource, found.issuer, None))
    try:
        server = await asyncio.start_server(hold, "127.0.0.1", wanted)
    except OSError:
        pytest.skip("something else holds this port")
    async with server:
        port = server.sockets[0].getsockname()[1]
        clinic.transport = HttpTransport(oauth=OAuth(callback_port=port if fixed else None))
        findings = await clinic.examine(lab.url, "callback-port")
    assert worst(findings, "callback-port") == severity
    assert f"callback port {port}" in told(findings)


async def test_a_variable_that_is_not_set(clinic: Clinic, lab: AuthLab) -> None:
    clinic.transport = replace(clinic.transport, oauth=OAuth(client_id_env="ACME_CLIENT"))
    findings = await clinic.examine(lab.url, "log-in", "registration")
    assert worst(findings, "log-in") == "problem"
    assert "ACME_CLIENT" in told(findings)


async def test_a_check_that_breaks_or_hangs_is_said_and_the_rest_goes_on() -> None:
    async def breaks() -> list[Finding]:
        raise RuntimeError("secret")

    async def hangs() -> list[Finding]:
        await asyncio.Event().wait()
        return []

    from interlock.model.stage import Stage

    for work, words in ((breaks(), "the check itself failed (RuntimeError)"), (hangs(), "it took longer than 0.05 s")):
        (finding,) = await safely("x", Stage.DISCOVER, work, 0.05)
        assert (finding.severity, finding.seen) == ("unknown", words)
