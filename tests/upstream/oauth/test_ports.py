"""Which port a login listens on, and how a program that holds it is named."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from interlock.manifest.config import OAuth
from interlock.model.verdict import Verdict
from interlock.upstream.oauth import ports
from interlock.upstream.oauth.grant import Registration

IDS = [f"{number:032x}" for number in range(300)]


def test_the_port_of_a_grant_is_stable_and_in_its_range() -> None:
    assert ports.stable_port("0" * 32) == ports.stable_port("0" * 32)
    found = {ports.stable_port(id) for id in IDS}
    assert all(33418 <= port < 33418 + 512 for port in found)
    assert len(found) > 150  # spread, so that grants of one machine rarely meet


def test_candidates_begin_with_the_stable_port_and_are_distinct() -> None:
    for id in IDS:
        listed = ports.candidates(id, OAuth())
        assert listed[0] == ports.stable_port(id)
        assert len(set(listed)) == len(listed) == ports.TRIES
        assert all(33418 <= port < 33418 + 512 for port in listed)


def test_a_port_in_the_settings_is_the_only_candidate() -> None:
    assert ports.candidates(IDS[0], OAuth(callback_port=8123)) == (8123,)


@pytest.mark.parametrize(
    ("registered", "port", "used"),
    [
        (None, 33500, "http://localhost:33500/callback"),
        ("http://localhost:33500/callback", 33500, "http://localhost:33500/callback"),
        ("http://127.0.0.1:33500/callback", 33500, "http://127.0.0.1:33500/callback"),
        ("http://127.0.0.1:33501/callback", 33500, "http://localhost:33500/callback"),
        ("http://localhost:99999/callback", 33500, "http://localhost:33500/callback"),
    ],
)
def test_the_redirect_uri_is_as_registered_where_the_port_is_the_same(
    registered: str | None, port: int, used: str
) -> None:
    registration = Registration(issuer="https://a.test", client_id="c", source="dynamic", redirect_uri=registered)
    assert ports.redirect_for(registration, port) == used


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_owner_of_a_port_is_named(family: socket.AddressFamily) -> None:
    with socket.socket(family) as holder:
        holder.bind(("127.0.0.1" if family == socket.AF_INET else "::1", 0))
        port = holder.getsockname()[1]
        assert ports.owner_pid(port) is None  # bound is not listening
        holder.listen()
        assert ports.owner_pid(port) == os.getpid()
        name = Path("/proc/self/comm").read_text(encoding="utf-8").strip()
        assert ports.owner_of(port) == f"{name} (process {os.getpid()})"
    assert ports.owner_of(port) is None


def test_a_taken_port_says_who_has_it_and_what_to_do() -> None:
    fixed = ports.PortTaken(8123, "python3 (process 17)", fixed=True)
    assert (fixed.slug, fixed.verdict, fixed.retry) == ("port-taken", Verdict.WAIT, "later")
    assert "port 8123, and python3 (process 17) holds it" in fixed.message
    ours = ports.PortTaken(4000, "another sign-in of Interlock (process 7)", fixed=True, ours=True)
    assert "End it" not in ours.message
    assert "Finish that one, or wait" in ours.message
    assert "another oauth.callbackPort (--callback-port) that the authorization server knows" in fixed.message
    unknown = ports.PortTaken(33418, None, fixed=False)
    assert "another program holds it" in unknown.message
    assert "next candidates are taken too" in unknown.message


def test_lsof_is_asked_where_there_is_no_proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "lsof"
    fake.write_text("#!/bin/sh\nprintf 'p4711\\nf12\\n'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(ports.sys, "platform", "darwin")
    assert ports.owner_pid(33418) == 4711
    fake.write_text("#!/bin/sh\nexit 1\n")
    assert ports.owner_pid(33418) is None
