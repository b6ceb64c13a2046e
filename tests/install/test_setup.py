"""`interlock setup` from outside: a throwaway home, a real bridge through the launcher, a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from interlock.build import build
from interlock.install import laying, proof, proof_native, settings
from interlock.install.places import Places
from interlock.lab.auth.lab import AuthLab
from interlock.upstream.oauth.flow_note import read_note

from .conftest import run, until


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of a fixture server without authorization."""
    with serving_modern() as url:
        yield url


@contextmanager
def serving_modern() -> Iterator[str]:
    command = [sys.executable, "-m", "interlock.lab.modern_server", "--http", "0"]
    root = Path(__file__).resolve().parents[2]
    environ = {**os.environ, "PYTHONPATH": str(root / "src"), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, env=environ, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stderr is not None
            yield process.stderr.readline().split()[-1]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def laid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which the copy is laid already: most tests are about something else."""
    home = tmp_path_factory.mktemp("setup") / ".interlock"
    laying.lay_self(home)
    return home


@pytest.fixture
def person(clean: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """Environment of a person with a new home and no host's program on PATH."""
    del clean["INTERLOCK_HOME"]
    bin = tmp_path / "bin"
    bin.mkdir()
    (bin / "sh").symlink_to("/bin/sh")
    clean["PATH"] = str(bin)
    return clean


def setup(*arguments: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, "-m", "interlock", "setup", *arguments], environ, 120)


def test_from_nothing_to_tools(server: str, person: dict[str, str]) -> None:
    """The whole way at the default home: laid, written, and called as the host would."""
    home = Path(person["HOME"])
    done = setup("codex", server, "--yes", environ=person)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "It works: 28 tools" in done.stdout
    assert "Using: a local bridge.\n" in done.stdout
    assert "(0)" not in done.stdout
    launcher = str(home / ".interlock" / "bin" / "interlock")
    entry = tomllib.loads((home / ".codex" / "config.toml").read_text())["mcp_servers"]["local"]
    assert entry == {"command": launcher, "args": ["bridge", server, "--host", "codex"]}
    assert settings.read(home / ".interlock").updates is None, "from a checkout nothing can be looked for"
    again = setup("codex", server, "--no-updates", "--json", environ=person)
    told = json.loads(again.stdout)
    assert (told["how"], told["rung"], told["exit"], "laid" in told) == ("unchanged", 1, 0, False)
    assert settings.read(home / ".interlock").updates is False


def test_a_dry_run_changes_nothing(server: str, person: dict[str, str]) -> None:
    done = setup("cursor", server, "--dry-run", "--timeout", "30", environ=person)
    assert done.returncode == 0, done.stderr
    assert "Would lay the home copy" in done.stdout
    assert '"--timeout",\n        "30"' in done.stdout
    assert list(Path(person["HOME"]).rglob("*")) == [Path(person["HOME"], ".interlock")], "what the fixture made"


def test_flags_stand_anywhere_and_the_bridges_go_on(
    server: str, person: dict[str, str], laid: Path, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("")
    token.chmod(0o600)
    done = setup(
        "--home", str(laid), "claude-code", server, "--no-browser", "--name", "mine", "--token-file", token.name,
        "--header-env", "X-Team=TEAM", "--no-updates", "--json", "--dry-run", environ=person | {"TEAM": "red"},
    )  # fmt: skip
    told = json.loads(done.stdout)
    assert (told["name"], told["exit"]) == ("mine", 0), done.stderr
    plan = told["plan"]
    args = json.loads(plan.partition("\n")[2])["mcpServers"]["mine"]["args"]
    assert args[:6] == ["bridge", server, "--host", "claude-code", "--no-browser", "--header-env"]
    assert args[-4:] == ["--token-file", str(Path.cwd() / "token"), "--home", str(laid)]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["emacs", "https://x.example/mcp"], 2, "no host that setup knows"),
        (["codex", "ftp://x.example/mcp"], 2, "http"),
        (["codex", "https://user:hunter2hunter2@x.example/mcp"], 2, "password"),
        (["codex", "https://x.example/mcp?api_key=hunter2hunter2hunter2"], 2, "secret"),
        (["codex", "https://x.example/mcp", "--no-such-flag"], 2, "--no-such-flag"),
        (["codex", "https://x.example/mcp", "--name", "a b"], 2, "--name"),
        (["codex", "https://x.example/mcp", "--session-header", "Authorization=Bearer hunter2hunter2"], 2, "secret"),
        (["claude-desktop", "https://x.example/mcp", "--token-env", "TOK"], 2, "--token-file"),
        (["claude-ai", "https://x.example/mcp"], 8, "starts no local process"),
        (["codex"], 2, "required: URL\n"),
        ([], 2, "HOST is one of claude-code, codex, cursor,"),
        (["https://x.example/mcp", "codex"], 2, "`interlock setup codex https://x.example/mcp`"),
        (["codex", "127.0.0.1:7421/mcp"], 2, "  http://127.0.0.1:7421/mcp\n"),
        (["codex", "x.example/mcp"], 2, "  https://x.example/mcp\n"),
        (["codex", "me:hunter2@x.example/mcp"], 2, "needs a scheme"),
        (["codex", "https://x.example/mcp", "--token-env", "sk-hunter2hunter2"], 2, "--token-env takes the name"),
        (["codex", "https://x.example/mcp", "--token-env", "ghp_" + "hunter2" * 5], 2, "--token-env takes the name"),
        (["codex", "https://x.example/mcp", "--token-env="], 2, "--token-env takes the name"),
        (["codex", "https://x.example/mcp", "--client-secret-env", "hunter2-hunter2"], 2, "--client-secret-env takes"),
        (["codex", "https://x.example/mcp", "--header-env", "X-A=hunter2.x"], 2, "--header-env takes the name"),
        (["codex", "https://x.example/mcp", "--client-id", "ghp_" + "hunter2" * 5], 2, "looks like a GitHub token"),
    ],
)
def test_what_is_refused(arguments: list[str], code: int, words: str, person: dict[str, str]) -> None:
    done = setup(*arguments, "--yes", environ=person)
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    assert list(Path(person["HOME"]).rglob("*")) == [Path(person["HOME"], ".interlock")], "nothing was written"


def test_a_token_is_named_and_never_written(server: str, person: dict[str, str], laid: Path) -> None:
    secret = "s3cr3t" * 4
    done = setup(
        "codex",
        server,
        "--token-env",
        "MY_TOKEN",
        "--no-updates",
        "--home",
        str(laid),
        environ=person | {"MY_TOKEN": secret},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    config = Path(person["HOME"], ".codex", "config.toml").read_text()
    assert tomllib.loads(config)["mcp_servers"]["local"]["env_vars"] == ["MY_TOKEN"]
    assert secret not in config + done.stdout + done.stderr
    for file in laid.rglob("*"):
        if file.is_file() and "app" not in file.parts:
            assert secret.encode() not in file.read_bytes(), file


def test_what_was_there_is_named_where_it_is_replaced(server: str, person: dict[str, str], laid: Path) -> None:
    flags = ("--no-updates", "--home", str(laid))
    assert "Wrote the entry" in setup("opencode", server, "--timeout", "60", *flags, environ=person).stdout
    again = setup("opencode", server, *flags, environ=person)
    assert again.returncode == 0, again.stderr
    assert 'Replaced the entry "local" in ' in again.stdout
    words = ["- command: ", "--host opencode --timeout 60 --home", "+ command: ", "--host opencode --home"]
    places = [again.stdout.index(word) for word in words]
    assert places == sorted(places)


def test_variables_that_are_not_set_are_named_before_anything_is_written(
    server: str, person: dict[str, str], laid: Path
) -> None:
    done = setup(
        "codex", server, "--header-env", "X-A=NOPE", "--dry-run", "--home", str(laid), environ=person
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("Not set here: NOPE.") < done.stdout.index("Would write into")


def test_a_host_with_secrets_of_its_own_says_where_they_belong(server: str, person: dict[str, str], laid: Path) -> None:
    flags = ("--token-env", "NOPE", "--dry-run", "--home", str(laid))
    done = setup("continue", server, *flags, environ=person)
    assert done.returncode == 0, done.stderr
    assert 'NOPE: "${{ secrets.NOPE }}"' in done.stdout
    assert "put them into ~/.continue/.env" in done.stdout
    assert "The host must be started with it" not in done.stdout


def test_a_second_bridge_to_the_same_url_is_said_aloud(server: str, person: dict[str, str], laid: Path) -> None:
    flags = ("--no-updates", "--home", str(laid))
    assert "Beside it" not in setup("opencode", server, *flags, environ=person).stdout
    assert "Beside it" not in setup("opencode", server, *flags, environ=person).stdout, "an entry is not beside itself"
    second = setup("opencode", server, "--name", "two", *flags, environ=person)
    assert 'Beside it "local" in ' in second.stdout
    assert "starts a bridge to the same URL too" in second.stdout
    told = json.loads(setup("opencode", server, "--json", *flags, environ=person).stdout)
    assert [(one["name"], one["way"]) for one in told["parallel"]] == [("two", "interlock")]


def test_gooses_yaml_is_written_and_taken_back(server: str, person: dict[str, str], laid: Path) -> None:
    path = Path(person["HOME"], ".config", "goose", "config.yaml")
    path.parent.mkdir(parents=True)
    path.write_text("# mine\nGOOSE_MODE: auto\n")
    done = setup("goose", server, "--name", "mine", "--no-updates", "--home", str(laid), "--json", environ=person)
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["how"], told["file"], len(told["proof"]["tools"])) == ("file", str(path), 28)
    assert "  mine:\n    name: mine\n" in path.read_text()
    assert path.read_text().startswith("# mine\nGOOSE_MODE: auto\n")
    back = told["undo"].split()
    assert back == ["interlock", "restore", Path(told["backup"]).parent.name, "--home", str(laid)]
    undone = run([sys.executable, "-m", *back], person, 120)
    assert undone.returncode == 0, undone.stdout + undone.stderr
    assert path.read_text() == "# mine\nGOOSE_MODE: auto\n"


def test_a_damaged_file_is_told_in_words(server: str, person: dict[str, str], laid: Path) -> None:
    path = Path(person["HOME"], ".cursor", "mcp.json")
    path.parent.mkdir()
    path.write_text("{mcpServers: {}}")
    done = setup("cursor", server, "--no-updates", "--home", str(laid), environ=person)
    assert done.returncode == 8
    assert f"{path}:1:2: it is left as it is: the key has no quotation marks" in done.stderr
    assert path.read_text() == "{mcpServers: {}}"


def test_a_yes_to_updates_is_told(server: str, person: dict[str, str], installed: Path) -> None:
    """For an Interlock that came from an index; how to take it back stands beside it."""
    home = Path(person["HOME"], ".interlock")
    done = setup("cursor", server, "--yes", environ=person | {"PYTHONPATH": str(installed)})
    assert done.returncode == 0, done.stdout + done.stderr
    line = "Newer releases are looked for every six hours from now on (off: --no-updates, or INTERLOCK_NO_UPDATE=1).\n"
    assert line in done.stdout
    assert settings.read(home).updates is True
    again = setup("cursor", server, "--yes", environ=person | {"PYTHONPATH": str(installed)})
    assert "Newer releases" not in again.stdout


def test_a_remembered_list_is_no_proof(person: dict[str, str], laid: Path, tmp_path: Path) -> None:
    """The server has been known, and is away: that is said, whatever is remembered of it."""
    with serving_modern() as url:
        first = setup("opencode", url, "--no-updates", "--home", str(laid), environ=person)
        assert first.returncode == 0, first.stdout + first.stderr
    again = setup("opencode", url, "--no-updates", "--home", str(laid), environ=person)
    assert again.returncode == 5, again.stdout
    assert "It works" not in again.stdout


@contextmanager
def leaving_nobody(home: Path) -> Iterator[None]:
    """Bridges that would wait two minutes for a person end with the test."""
    try:
        yield
    finally:
        for file in home.glob("grants/*.flow.json"):
            note = read_note(file.parent, file.name.removesuffix(".flow.json"))
            if note is not None:
                os.kill(note.pid, signal.SIGKILL)


async def test_without_a_grant_the_address_is_told_and_opened(
    person: dict[str, str], tmp_path: Path, laid: Path
) -> None:
    """Also where the tools are remembered from the time when there was a grant."""
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >>{opened}\n')
    browser.chmod(0o755)
    environ = person | {"BROWSER": str(browser)}
    flags = ("--no-updates", "--home", str(laid))
    with leaving_nobody(laid):
        async with AuthLab() as lab:
            token = ("--token-env", "LAB_TOKEN")
            known = await asyncio.to_thread(
                lambda: setup("opencode", lab.url, *token, *flags, environ=environ | {"LAB_TOKEN": lab.personal_token})
            )
            assert known.returncode == 0, known.stdout + known.stderr
            quiet = await asyncio.to_thread(lambda: setup("opencode", lab.url, *flags, "--no-browser", environ=environ))
            assert quiet.returncode == 6, quiet.stdout + quiet.stderr
            assert not opened.exists()
            done = await asyncio.to_thread(lambda: setup("opencode", lab.url, *flags, environ=environ))
            assert done.returncode == 6, done.stdout + done.stderr
            assert "Sign in once for this machine to use it:" in done.stdout
            url = next(line.strip() for line in done.stdout.splitlines() if line.startswith("  http"))
            assert "code_challenge=" in url
            await asyncio.to_thread(until, lambda: opened.exists() and opened.read_text().endswith("\n"))
            assert opened.read_text().split() == [url], "one page for one sign-in"


def test_a_server_that_is_away(person: dict[str, str], laid: Path) -> None:
    done = setup("cursor", "http://127.0.0.1:1/mcp", "--no-updates", "--home", str(laid), environ=person)
    assert done.returncode == 5
    assert "The entry is written, but the call did not succeed" in done.stdout


def test_a_parallel_connection_is_said_aloud(server: str, person: dict[str, str], laid: Path) -> None:
    path = Path(person["HOME"], ".cursor", "mcp.json")
    path.parent.mkdir()
    remote = {"command": "npx", "args": ["-y", "mcp-remote", server]}
    path.write_text(json.dumps({"mcpServers": {"direct": {"url": server + "/"}, "remote": remote}}))
    done = setup("cursor", server, "--no-updates", "--home", str(laid), environ=person)
    assert done.returncode == 0, done.stderr
    assert '"direct"' in done.stdout
    assert '"remote"' in done.stdout
    assert "no session binding" in done.stdout


def test_a_plugin_that_carries_the_bridge_is_enough(server: str, person: dict[str, str], laid: Path) -> None:
    folder = Path(person["HOME"], ".gemini", "extensions", "x")
    folder.mkdir(parents=True)
    entry = {"command": Places(laid).launcher, "args": ["bridge", server, "--home", str(laid)]}
    (folder / "gemini-extension.json").write_text(json.dumps({"name": "x", "mcpServers": {"x": entry}}))
    done = setup("gemini-cli", server, "--no-updates", "--home", str(laid), "--json", environ=person)
    told = json.loads(done.stdout)
    assert (told["rung"], told["exit"], told["proof"]["outcome"]) == (0, 0, "tools")
    assert not Path(person["HOME"], ".gemini", "settings.json").exists()


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
def test_where_no_process_can_be_started_the_native_entry_and_its_price(server: str, person: dict[str, str]) -> None:
    """Here the home is a file, so no copy can be laid."""
    blocked = Path(person["HOME"], "blocked")
    blocked.write_text("")
    done = setup("vscode", server, "--no-updates", "--home", str(blocked / "interlock"), environ=person)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The bridge cannot be started on this machine" in done.stdout
    assert "Using: VS Code's own HTTP connection.\n" in done.stdout
    assert "The price: no sign-in shared" in done.stdout
    assert "The way is open" in done.stdout
    entry = json.loads(Path(person["HOME"], ".config", "Code", "User", "mcp.json").read_text())["servers"]["local"]
    assert entry == {"type": "http", "url": server}


def test_the_home_copy_is_renewed_where_it_is_damaged(server: str, person: dict[str, str]) -> None:
    home = Path(person["HOME"], ".interlock")
    laying.lay_self(home)
    (Path(Places(home).lib(build())) / "interlock" / "build.py").unlink()
    done = setup("cursor", server, "--yes", environ=person)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "is not fit to run" in done.stdout


def test_the_native_call(server: str) -> None:
    assert proof_native.call(server).kind == "tools"
    assert proof_native.call(server + "-not").verdict == "never_reached"
    assert proof_native.call("http://127.0.0.1:1/mcp").verdict == "never_reached"


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_the_copy_outlives_the_environment_it_came_from(server: str, person: dict[str, str], tmp_path: Path) -> None:
    """A fresh environment, a real installation by pip, setup; then the environment goes, and the host's entry still works."""
    root = Path(__file__).resolve().parents[2]
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, timeout=120)
    python = venv / "bin" / "python"
    installed = subprocess.run(
        [python, "-m", "pip", "install", "--quiet", root], capture_output=True, text=True, timeout=400, check=False
    )
    if "No matching distribution" in installed.stderr:
        pytest.skip("pip has no place here to take the requirements from")
    assert installed.returncode == 0, installed.stderr
    del person["PYTHONPATH"]
    done = run([str(venv / "bin" / "interlock"), "setup", "codex", server, "--no-updates"], person, 120)
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.rmtree(venv)
    entry = tomllib.loads(Path(person["HOME"], ".codex", "config.toml").read_text())["mcp_servers"]["local"]
    outcome = proof.call([entry["command"], *entry["args"]], proof.clean_environment(person))
    assert (outcome.kind, len(outcome.tools)) == ("tools", 28)
