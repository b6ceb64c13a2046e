"""The chronicle of grants: one line each, no secret, rotation, and silence where it cannot be written."""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
import uuid
from base64 import urlsafe_b64encode
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.upstream.oauth import grant_log
from interlock.upstream.oauth.file_lock import locked_now
from interlock.upstream.oauth.grant_log import ROTATE_AT, TEXT_LIMIT, GrantLog, mask
from interlock.upstream.secret_forms import MASK

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and links")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def log(home: Path) -> GrantLog:
    return GrantLog(home, lambda: "v1.2.3+abcdef012345")


def lines(home: Path) -> list[str]:
    return (home / "grant.log").read_text(encoding="utf-8").splitlines()


def test_a_line_says_when_which_build_who_what_and_the_servers_words(log: GrantLog, home: Path) -> None:
    before = datetime.now().astimezone()
    log.write("refresh-refused", "resource.test", "400 invalid_grant: Der Zugriff wurde widerrufen (größer)")
    log.write("refreshed", "", "")
    first, second = lines(home)
    when, rest = first.split(" ", 1)
    written = datetime.fromisoformat(when)
    assert written.utcoffset() == before.utcoffset()
    assert abs((written - before).total_seconds()) < 10
    build = "v1.2.3+abcdef012345"
    assert rest == (
        f"{build} {os.getpid()} refresh-refused resource.test 400 invalid_grant: Der Zugriff wurde widerrufen (größer)"
    )
    assert second.split(" ", 1)[1] == f"{build} {os.getpid()} refreshed -"


def test_the_build_is_asked_at_each_line_and_may_fail(home: Path) -> None:
    builds = iter(["v1", "v2"])
    log = GrantLog(home, lambda: next(builds))
    for number in range(3):
        log.write("refreshed", "resource.test", f"ok {number}")
    assert [line.split()[1] for line in lines(home)] == ["v1", "v2"]


def test_what_comes_again_within_a_minute_is_counted(
    log: GrantLog, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [1000.0]
    monkeypatch.setattr(grant_log.time, "monotonic", lambda: clock[0])
    for _ in range(100):
        log.write("refresh-refused", "a.test", "busy")
        log.write("refresh-refused", "b.test", "busy")
    assert len(lines(home)) == 2
    clock[0] += 59.0
    log.write("refresh-refused", "a.test", "busy")
    assert len(lines(home)) == 2
    clock[0] += 1.1
    log.write("refresh-refused", "a.test", "busy")
    said = [line.split(" ", 3)[3] for line in lines(home)[2:]]
    assert said == [
        "refresh-refused a.test busy (and 100 more times within a minute)",
        "refresh-refused b.test busy (and 99 more times within a minute)",
        "refresh-refused a.test busy",
    ]


def test_many_different_lines_are_all_written_and_not_all_remembered(log: GrantLog, home: Path) -> None:
    for number in range(500):
        log.write("refreshed", "resource.test", f"line {number}")
    assert len(lines(home)) == 500
    assert len(log._recent) <= grant_log.MAX_RECENT


@pytest.mark.parametrize(
    "text",
    [
        "one\ntwo",
        "one\r\ntwo",
        "one\x00two",
        "one\x1b[31mtwo",
        "one\u2028two",
        "one\x85two",
        "one\u202etwo",
        "one\ud800two",
        "one\x0btwo",
    ],
)
def test_words_cannot_make_a_line_of_their_own(log: GrantLog, home: Path, text: str) -> None:
    log.write(text, text, text)
    (line,) = lines(home)
    assert line.isprintable()
    words = line.split(" ")
    assert words[3].startswith("one")
    assert words[4].startswith("one")
    assert line.endswith("two")


def test_long_words_are_cut(log: GrantLog, home: Path) -> None:
    log.write("refused", "h" * 5000, "no " * 5000)
    (line,) = lines(home)
    assert len(line) < TEXT_LIMIT + 300
    assert line.endswith("[cut]")


def jwt() -> str:
    parts = (b'{"alg":"RS256","typ":"JWT"}', b'{"sub":"someone","aud":"x"}', secrets.token_bytes(64))
    return ".".join(urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


def capitals() -> str:
    """A token without a digit in it."""
    return "".join(
        secrets.choice("abcdefghijklmnopqrstuvwxyz" if place % 2 else "ABCDEFGHIJKLMNOP") for place in range(40)
    )


def made() -> dict[str, str]:
    """Secrets as authorization servers make them, made now."""
    return {
        "jwt": jwt(),
        "hex": secrets.token_hex(32),
        "url-safe": secrets.token_urlsafe(32),
        "base64": "q+/" + secrets.token_hex(20).upper() + "aZ9/" + secrets.token_hex(8) + "==",
        "uuid": str(uuid.uuid4()),
        "prefixed": "rt_" + secrets.token_hex(16),
        "letters": capitals(),
        "dotted": f"1.{secrets.token_hex(12)}.{secrets.token_hex(12)}",
        "slashed": f"1//{secrets.token_urlsafe(40)}",
    }


@pytest.mark.parametrize("kind", sorted(made()))
@pytest.mark.parametrize(
    "shape",
    [
        "{}",
        "the token {} is expired",
        '{{"error": "invalid_grant", "error_description": "refresh token {} was used before"}}',
        "refresh_token={}&grant_type=refresh_token",
        "Authorization: Bearer {}",
        "https://issuer.test/cb?code={}&state=x",
        "<{}>",
        "token:{},",
    ],
)
def test_what_looks_like_a_secret_is_masked(kind: str, shape: str) -> None:
    secret = made()[kind]
    shown = mask(shape.format(secret))
    assert MASK in shown
    for start in range(len(secret) - 12):
        assert secret[start : start + 12] not in shown


@pytest.mark.parametrize(
    "shape",
    ["{}", "Token {}!", "before{}after", "error=invalid_grant ({})", "{} and {}", "x" * (TEXT_LIMIT - 10) + " {}"],
)
@pytest.mark.parametrize("secret", ["hunter2", "correct horse battery staple", "pässwörd/+=&", "a b"])
def test_a_secret_that_is_given_is_masked_whatever_it_looks_like(
    log: GrantLog, home: Path, shape: str, secret: str
) -> None:
    for form in (secret, quote(secret, safe="")):
        log.write(shape.format(form, form), shape.format(form, form), shape.format(form, form), [secret, "", "x" * 30])
    text = (home / "grant.log").read_text(encoding="utf-8")
    assert secret not in text
    assert quote(secret, safe="") not in text
    assert secret.replace(" ", "_") not in text


def test_a_longer_secret_is_masked_before_one_that_it_begins_with() -> None:
    assert mask("got abcdef-tail here", ["abcdef", "abcdef-tail"]) == f"got {MASK} here"


@pytest.mark.parametrize(
    "text",
    [
        "400 invalid_grant: Token has been expired or revoked.",
        "error code: temporarily_unavailable",
        "503 Service Unavailable, retry after 120 seconds",
        "POST https://login.example.com/common/oauth2/v2.0/token answers 400",
        "the clock of resource.test is 1804 seconds ahead of this machine's; set up NTP",
        "AADSTS9010010: the resource https://api.example.com/v2/mcp is not registered",
        "token: expired",
        "InvalidAuthenticationTokenTenant: the tenant is not the one of the resource",
        "Bearer error, scope files:read files:write",
        "refresh waits until 2026-11-30T14:31:09+00:00",
        "authorization-server.staging.example.com answers 502",
        "generation 17, expires in 3599.5 s",
    ],
)
def test_a_servers_ordinary_words_stay(text: str) -> None:
    assert mask(text) == text


@given(st.text(max_size=2000))
def test_masking_any_text_gives_one_printable_line(text: str) -> None:
    shown = mask(text)
    assert len(shown) <= TEXT_LIMIT
    assert len(shown.splitlines()) <= 1
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", shown)
    shown.encode("utf-8")


@given(st.text(min_size=8, max_size=60), st.text(max_size=50), st.text(max_size=50))
def test_a_given_secret_never_comes_through(secret: str, before: str, after: str) -> None:
    if secret in MASK or secret in before or secret in after:
        return
    assert secret not in mask(before, [secret]) + "|" + mask(secret, [secret]) + "|" + mask(after, [secret])


@pytest.mark.parametrize("character", ["e", "y", "a", "1", ".", "-", "=", "/", " ", "eyJ", "a1", "token=", "Bearer "])
def test_masking_takes_linear_time(character: str) -> None:
    # Quadratic work on a megabyte would not end within the test's time limit.
    assert len(mask(character * (1024 * 1024 // len(character)))) <= TEXT_LIMIT


def test_rotation_keeps_one_earlier_file(log: GrantLog, home: Path) -> None:
    text = "word " * 90
    needed = 2 * ROTATE_AT // 450 + 20
    for number in range(needed):
        log.write("refreshed", "resource.test", f"{number} {text}")
    assert sorted(path.name for path in home.iterdir()) == ["grant.log", "grant.log.1", "grant.log.lock"]
    numbers = [
        int(line.split()[5]) for name in ("grant.log.1", "grant.log") for line in (home / name).read_text().splitlines()
    ]
    assert numbers == list(range(numbers[0], needed))
    assert ROTATE_AT - 1000 < (home / "grant.log.1").stat().st_size <= ROTATE_AT
    assert (home / "grant.log").stat().st_size <= ROTATE_AT


def test_a_process_that_is_stopped_while_it_writes_stops_nobody(log: GrantLog, home: Path) -> None:
    log.write("refreshed", "resource.test", "before")
    with locked_now(home / "grant.log.lock", 0):
        log.write("refreshed", "resource.test", "meanwhile")
    log.write("refreshed", "resource.test", "after")
    assert [line.split()[-1] for line in lines(home)] == ["before", "meanwhile", "after"]


@posix
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_files_are_private_under_any_umask(log: GrantLog, home: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        log.write("refreshed", "resource.test", "ok")
        log.write("refreshed", "resource.test", "again")
    finally:
        os.umask(before)
    assert len(lines(home)) == 2
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()} == {
        "grant.log": 0o600,
        "grant.log.lock": 0o600,
    }
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    (home / "grant.log").chmod(0o644)
    log.write("refreshed", "resource.test", "once more")
    assert stat.S_IMODE((home / "grant.log").stat().st_mode) == 0o600


@posix
def test_a_planted_link_is_not_written_through(log: GrantLog, home: Path, tmp_path: Path) -> None:
    home.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    (home / "grant.log").symlink_to(victim)
    log.write("refreshed", "resource.test", "ok")
    assert victim.read_text() == "mine\n"
    assert len(lines(home)) == 1
    assert not (home / "grant.log").is_symlink()
    (home / "grant.log.lock").unlink()
    (home / "grant.log.lock").symlink_to(tmp_path / "planted")
    log.write("refreshed", "resource.test", "again")
    assert not (tmp_path / "planted").exists()
    assert len(lines(home)) == 2


@pytest.mark.parametrize("obstacle", ["home is a file", "log is a folder", "a pipe"])
def test_where_it_cannot_be_written_nothing_happens(log: GrantLog, home: Path, obstacle: str) -> None:
    if obstacle == "home is a file":
        home.write_text("file")
    elif obstacle == "log is a folder":
        (home / "grant.log").mkdir(parents=True)
    elif sys.platform == "win32":
        pytest.skip("POSIX only")
    else:
        home.mkdir()
        os.mkfifo(home / "grant.log")
    log.write("refreshed", "resource.test", "ok")
    assert home.is_file() or not (home / "grant.log").is_file()
