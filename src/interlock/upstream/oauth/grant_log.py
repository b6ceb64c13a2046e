"""`grant.log`: a short chronicle of refreshes, refusals and logins of this machine, in the server's own words.

It outlives the session of a host, so that "why did I have to log in again?" has an answer. No token is ever in it. All
processes write into one file; a line is written in one piece, and none is lost but by rotation.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path

from interlock.upstream.oauth import private_files
from interlock.upstream.secret_forms import MASK, masked

NAME = "grant.log"
ROTATE_AT = 256 * 1024
"""Bytes; then it becomes `grant.log.1`, and the one before that goes."""
TEXT_LIMIT = 500
REPEAT_SECONDS = 60.0
MAX_RECENT = 64
MAX_READ = 64 * 1024
"""Characters of a text that are looked at: far more than are shown, so that no secret is cut before it is masked."""

_APPEND = os.O_RDWR | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_LOCK_SECONDS = 0.1

# Shapes of secrets in a server's words: a JSON Web Token, what follows a scheme, the value of a telling name (RFC 6749,
# 7636, 8628), and any long run that looks like no word. Errs towards masking: a UUID may be a refresh token.
_JWT = re.compile(r"eyJ[\w-]{6,}+(?:\.[\w-]*+){0,4}+")
_SCHEME = re.compile(r"\b(bearer|basic|dpop)([ \t]++)(?=[\w.~+/=-]*[\d._~+/=])[\w.~+/=-]{6,}+", re.IGNORECASE)
_NAMED = re.compile(
    r"""(?P<name>(?:access|refresh|id|device|user|registration_access|initial_access)[_-]?(?:token|code)|client[_-]?secret
         |code[_-]?verifier|client[_-]?assertion|assertion|password|passwd|secret|api[_-]?key|authorization|token|code|state)
        (?P<between>["']?\s{0,3}[=:]\s{0,3}["']?)(?P<value>[^\s"'&,;]{6,}+)""",
    re.VERBOSE | re.IGNORECASE,
)
_OPAQUE = re.compile(r"(?P<url>://)?[A-Za-z0-9_~+=./-]{20,}+")
_SEGMENT = re.compile(r"[A-Za-z0-9_~+=.-]{16,}+")
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]+"
)


class GrantLog:
    """One for a process. `build` is asked at each line."""

    def __init__(self, home: Path, build: Callable[[], str]) -> None:
        self._home = home
        self._file = home / NAME
        self._build = build
        self._recent: dict[tuple[str, str, str], tuple[float, int]] = {}
        """For each line of the last minute, without its time: when it was written, and how often it came again since."""

    def write(self, event: str, about: str, text: str, secrets: Iterable[str] = ()) -> None:
        """One line: local time, build, process, event, what it is about (the resource's host), words. Never raises.

        What comes again within a minute, word for word, is counted and written later: nobody's server fills the log.
        `secrets` are masked wherever they stand, in all forms of secret_forms.py; pass every token and secret that is at hand.
        """
        with contextlib.suppress(Exception):
            known = tuple(secrets)
            said = (_word(masked(event, known, 1)), _word(masked(about, known, 1)), mask(text, known))
            now = time.monotonic()
            for each, times in self._over(now):
                self._append(self._line(each, f" (and {times} more times within a minute)"))
            written, again = self._recent.get(said, (now, -1))
            self._recent[said] = (written, again + 1)
            if again < 0:
                self._append(self._line(said, ""))

    def _over(self, now: float) -> list[tuple[tuple[str, str, str], int]]:
        """Lines whose minute is over and that came again in it, with how often. Forgets them, and those that did not."""
        oldest = sorted(self._recent.items(), key=lambda pair: pair[1][0])
        over = {each: count for each, (at, count) in oldest if now - at >= REPEAT_SECONDS}
        over |= {each: count for each, (_at, count) in oldest[: max(len(oldest) - MAX_RECENT + 1, 0)]}
        for each in over:
            del self._recent[each]
        return [(each, count) for each, count in over.items() if count]

    def _line(self, said: tuple[str, str, str], more: str) -> bytes:
        now = datetime.now().astimezone().isoformat(timespec="milliseconds")
        line = " ".join((now, _word(self._build()), str(os.getpid()), *said))
        return (line.rstrip() + more).encode("utf-8", "replace") + b"\n"

    def _append(self, line: bytes) -> None:
        from interlock.upstream.oauth.file_lock import Busy, locked_now

        private_files.create_missing(self._home)
        try:
            with locked_now(self._home / f"{NAME}.lock", _LOCK_SECONDS):
                self._put_alone(line)
        except (Busy, OSError):
            # A stopped process holds it, or there can be no lock. Appending at the end is one step on POSIX without one.
            descriptor = self._open()
            if descriptor is not None:
                with _closing(descriptor):
                    os.write(descriptor, line)

    def _put_alone(self, line: bytes) -> None:
        """Under the lock: rotate where it is time, and take back what a full disk took only half of."""
        with contextlib.suppress(FileNotFoundError):
            if os.lstat(self._file).st_size + len(line) > ROTATE_AT:
                with contextlib.suppress(OSError):
                    os.replace(self._file, self._file.with_name(f"{NAME}.1"))
        descriptor = self._open()
        if descriptor is None:
            return
        with _closing(descriptor):
            before = os.fstat(descriptor).st_size
            written = 0
            with contextlib.suppress(OSError):
                written = os.write(descriptor, line)
            if written < len(line) and os.fstat(descriptor).st_size == before + written:
                os.ftruncate(descriptor, before)

    def _open(self) -> int | None:
        try:
            descriptor = os.open(self._file, _APPEND)
        except FileNotFoundError:
            private_files.owned_file(self._file)
            descriptor = os.open(self._file, _APPEND)
        except OSError:
            if not self._repaired():
                return None
            private_files.owned_file(self._file)
            descriptor = os.open(self._file, _APPEND)
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            return None
        if sys.platform != "win32" and stat.S_IMODE(status.st_mode) != 0o600:
            with contextlib.suppress(OSError):
                os.fchmod(descriptor, 0o600)
        return descriptor

    def _repaired(self) -> bool:
        """A planted link, or another user's file (of a time as root), is set aside; ours without its modes gets them back."""
        try:
            status = os.lstat(self._file)
        except OSError:
            return False
        if stat.S_ISLNK(status.st_mode):
            return private_files.set_aside(self._file, "link") is not None
        if sys.platform == "win32" or not stat.S_ISREG(status.st_mode):
            return False
        if status.st_uid != os.geteuid():
            return private_files.set_aside(self._file, "foreign") is not None
        os.chmod(self._file, 0o600)
        return True


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """One line of at most 500 characters, printable, without the secrets given and without what looks like one."""
    text = masked(text[:MAX_READ], secrets, 1)
    text = _UNPRINTABLE.sub(" ", text)
    text = _JWT.sub(MASK, text)
    text = _SCHEME.sub(lambda found: f"{found[1]}{found[2]}{MASK}", text)
    text = _NAMED.sub(_masked_value, text)
    text = _OPAQUE.sub(_masked_run, text)
    # Cut last: half a secret would not be known for one.
    return text if len(text) <= TEXT_LIMIT else text[: TEXT_LIMIT - 6] + " [cut]"


def _masked_value(found: re.Match[str]) -> str:
    value = found["value"]
    # `error code: invalid_grant` is what the log is for.
    return (
        found[0]
        if re.fullmatch(r"[a-z]+(?:_[a-z]+)*[.:]?|\[redacted\]", value)
        else found["name"] + found["between"] + MASK
    )


def _masked_run(found: re.Match[str]) -> str:
    if found["url"]:
        # Of a URL only the parts that look like no name: which endpoint it was is worth knowing.
        return _SEGMENT.sub(lambda part: MASK if _random(part[0]) else part[0], found[0])
    return MASK if _random(found[0]) else found[0]


def _random(run: str) -> bool:
    """Digits among letters, or capitals all over: more than a version, a name with a number, or CamelCase has."""
    digits = sum(character.isdigit() for character in run)
    upper = sum(character.isupper() for character in run)
    lower = sum(character.islower() for character in run)
    if not upper + lower:
        return digits >= 20
    return digits >= 4 or (digits >= 1 and upper > 0 and lower > 0) or min(upper, lower) * 5 >= len(run)


def _word(text: str) -> str:
    """One field of the line: no space in it, never empty."""
    return re.sub(r"\s+", "_", _UNPRINTABLE.sub("_", text))[:200] or "-"
