"""`fromFile` of variables and headers: where the path leads, what is warned of, and that trust is bound to it."""

from __future__ import annotations

import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from interlock.manifest.config import EnvValue, HeaderValue
from interlock.manifest.launch import LaunchPlan, launch_plan, plan_hash

if TYPE_CHECKING:
    from conftest import Desk

STDIO = """\
schemaVersion: agent-routing/v1
integrationId: acme.search
transports:
  stdio:
    command: [node]
    env: {TOKEN: VALUE}
"""
HTTP = """\
schemaVersion: agent-routing/v1
integrationId: acme.search
transports:
  http:
    endpoint: https://mcp.example.com/mcp
    headers: {X-Key: VALUE}
"""


def key_file(folder: Path, mode: int = 0o600) -> Path:
    path = folder / "keys" / "acme"
    path.parent.mkdir(exist_ok=True)
    path.write_text("value")
    path.chmod(mode)
    return path


def test_the_path_is_relative_to_the_manifest(desk: Desk) -> None:
    path = key_file(desk.home)
    loaded = desk.load_text(STDIO.replace("VALUE", "{fromFile: keys/acme}"))
    assert loaded.problems == ()
    assert loaded.gateway.servers["search"].transport.env == (EnvValue("TOKEN", file=path),)
    loaded = desk.load_text(HTTP.replace("VALUE", '{fromFile: keys/acme, prefix: "Bearer "}'))
    assert loaded.problems == ()
    assert loaded.gateway.servers["search"].transport.headers == (HeaderValue("X-Key", file=path, prefix="Bearer "),)


def test_a_tilde_is_the_home_directory(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(desk.home))
    monkeypatch.setenv("USERPROFILE", str(desk.home))
    path = key_file(desk.home)
    loaded = desk.load_text(STDIO.replace("VALUE", "{fromFile: ~/keys/acme}"))
    assert loaded.gateway.servers["search"].transport.env == (EnvValue("TOKEN", file=path),)


@pytest.mark.parametrize("text", [STDIO, HTTP])
def test_what_the_file_is_now_is_only_warned_of(desk: Desk, text: str) -> None:
    text = text.replace("VALUE", "{fromFile: keys/acme}")
    assert [(each.code, each.severity) for each in desk.load_text(text).problems] == [("no-file", "warning")]
    key_file(desk.home, 0o644)
    wide = [] if sys.platform == "win32" else [("wide-file", "warning")]
    assert [(each.code, each.severity) for each in desk.load_text(text).problems] == wide


@pytest.mark.parametrize("text", [STDIO, HTTP])
@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("{fromFile: a, fromEnv: B}", "contradiction"),
        ("{fromFile: a, literal: b}", "contradiction"),
        ('{fromFile: "${HOME}/a"}', "placeholder"),
    ],
)
def test_what_is_refused(desk: Desk, text: str, value: str, code: str) -> None:
    assert code in {each.code for each in desk.load_text(text.replace("VALUE", value)).errors}


@pytest.mark.parametrize("text", [STDIO, HTTP])
@pytest.mark.parametrize("start", ["a", "gh" + "p_"])
def test_a_secret_in_place_of_the_path_is_refused_and_never_repeated(desk: Desk, text: str, start: str) -> None:
    secret = start + secrets.token_hex(24)
    loaded = desk.load_text(text.replace("VALUE", f"{{fromFile: {secret}}}"))
    assert "literal-secret" in {each.code for each in loaded.errors}
    assert not any(secret in str(each) for each in loaded.problems)


def plan_of(desk: Desk, text: str) -> LaunchPlan:
    return launch_plan(desk.load_text(text).gateway.servers["search"], {})


def test_the_plan_that_a_person_trusts_names_the_file(desk: Desk) -> None:
    assert plan_of(desk, STDIO.replace("VALUE", "{fromFile: /k/a}")).env == ("TOKEN from file /k/a",)
    assert plan_of(desk, HTTP.replace("VALUE", "{fromFile: /k/a}")).headers == ("X-Key from file /k/a",)
    plan = plan_of(desk, HTTP.replace("VALUE", '{fromFile: /k/a, prefix: "Bearer "}'))
    assert plan.headers == ("X-Key from file /k/a after 'Bearer '",)


@pytest.mark.parametrize("text", [STDIO, HTTP])
def test_the_file_is_part_of_what_is_trusted(desk: Desk, text: str) -> None:
    values = ["{fromFile: /k/a}", "{fromFile: /k/b}", "{fromEnv: A}", "from file /k/a"]
    text = text.replace("TOKEN", "PLACE")
    assert len({plan_hash([plan_of(desk, text.replace("VALUE", each))]) for each in values}) == len(values)
