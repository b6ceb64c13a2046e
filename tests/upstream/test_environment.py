"""Which variables reach a child: the safe base, what the manifest names, and nothing more."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.manifest.config import EnvValue
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.model.verdict import Verdict
from interlock.upstream.environment import base_environment, child_environment, search_path

HOST = {
    "HOME": "/home/ada",
    "PATH": "/usr/bin:/bin",
    "LANG": "de_DE.UTF-8",
    "LC_ALL": "C",
    "TZ": "UTC",
    "SSL_CERT_FILE": "/ca.pem",
    "XDG_CACHE_HOME": "/home/ada/.cache",
    "GITHUB_TOKEN": "ghp_secret",
    "HTTPS_PROXY": "http://user:password@proxy",
    "PYTHONPATH": "/elsewhere",
    "LD_PRELOAD": "/evil.so",
    "NODE_OPTIONS": "--require /evil.js",
    "SHELL": "() { :; }; echo",
}


def test_the_base_holds_no_credential_and_nothing_that_loads_code() -> None:
    assert base_environment(HOST, windows=False) == {
        "HOME": "/home/ada",
        "PATH": "/usr/bin:/bin",
        "LANG": "de_DE.UTF-8",
        "LC_ALL": "C",
        "TZ": "UTC",
        "SSL_CERT_FILE": "/ca.pem",
        "XDG_CACHE_HOME": "/home/ada/.cache",
    }


def test_the_base_on_windows_knows_names_in_any_case() -> None:
    host = {"Path": "C:\\x", "SystemRoot": "C:\\Windows", "ComSpec": "cmd.exe", "GITHUB_TOKEN": "x", "HOME": "/h"}
    assert base_environment(host, windows=True) == {
        "Path": "C:\\x",
        "SystemRoot": "C:\\Windows",
        "ComSpec": "cmd.exe",
    }


@pytest.mark.parametrize(
    ("entry", "name", "value"),
    [
        (EnvValue("TOKEN", source="GITHUB_TOKEN"), "TOKEN", "ghp_secret"),
        (EnvValue("GITHUB_TOKEN"), "GITHUB_TOKEN", "ghp_secret"),
        (EnvValue("MODE", literal="quiet"), "MODE", "quiet"),
        (EnvValue("EMPTY", literal=""), "EMPTY", ""),
        (EnvValue("PATH", literal="/opt/bin"), "PATH", "/opt/bin"),
        (EnvValue("TOKEN", source="GITHUB_TOKEN", literal="literal wins"), "TOKEN", "literal wins"),
    ],
)
def test_what_the_manifest_names(entry: EnvValue, name: str, value: str) -> None:
    child = child_environment((entry,), HOST, windows=False)
    assert child[name] == value
    assert child.keys() - {name} == base_environment(HOST, windows=False).keys() - {name}


def test_an_empty_variable_is_set() -> None:
    assert child_environment((EnvValue("A", source="B"),), {"B": ""}, windows=False) == {"A": ""}


def test_all_missing_variables_are_named_at_once_and_no_value() -> None:
    wanted = (EnvValue("B", source="ZULU"), EnvValue("A", source="ALPHA"), EnvValue("C", source="GITHUB_TOKEN"))
    with pytest.raises(Fault) as caught:
        child_environment(wanted, HOST, server="git", windows=False)
    fault = caught.value
    assert (fault.slug, fault.stage, fault.verdict) == ("env-missing", Stage.DISCOVER, Verdict.NEVER_REACHED)
    assert fault.server == "git"
    assert "variables ALPHA, ZULU," in fault.message
    assert "ghp_secret" not in fault.message


def test_on_windows_a_name_replaces_the_same_name_in_another_case() -> None:
    host = {"Path": "C:\\base", "My_Token": "t"}
    child = child_environment((EnvValue("PATH", literal="C:\\x"), EnvValue("T", source="MY_TOKEN")), host, windows=True)
    assert child == {"PATH": "C:\\x", "T": "t"}


@pytest.mark.parametrize(
    "entry", [EnvValue("A", literal="x\0y"), EnvValue("A=B", literal="x"), EnvValue("", literal="x")]
)
def test_what_no_process_can_get_is_a_fault_without_the_value(entry: EnvValue) -> None:
    with pytest.raises(Fault) as caught:
        child_environment((entry,), {}, windows=False)
    assert caught.value.slug == "spawn-failed"
    assert "x" not in caught.value.message.split("it holds")[0].replace("'A=B'", "")


@given(st.dictionaries(st.text(min_size=1), st.text()), st.sets(st.text(min_size=1, max_size=5)))
def test_nothing_else_ever_gets_in(host: dict[str, str], named: set[str]) -> None:
    wanted = tuple(EnvValue(name) for name in named if name in host and "=" not in name and "\0" not in host[name])
    child = child_environment(wanted, host, windows=False)
    allowed = base_environment(host, windows=False).keys() | {entry.name for entry in wanted}
    assert child.keys() <= allowed
    assert all(child[entry.name] == host[entry.name] for entry in wanted)


@pytest.mark.parametrize(
    ("environment", "windows", "directories"),
    [
        ({"PATH": "/a:/b::/c"}, False, ["/a", "/b", "/c"]),
        ({"PATH": ""}, False, []),
        ({"Path": "C:\\a;;D:\\b"}, True, ["C:\\a", "D:\\b"]),
    ],
)
def test_search_path(environment: dict[str, str], windows: bool, directories: list[str]) -> None:
    assert search_path(environment, windows=windows) == directories


def test_without_a_path_the_system_default_is_searched() -> None:
    assert "/bin" in search_path({}, windows=False)
