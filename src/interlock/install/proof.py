"""The one real call that setup ends with: the entry's command is started as the host would start it, and makes a call.

The environment is the narrow one of the strictest hosts, so that what works here works there. A configuration that merely
looks right proves nothing, and neither does a list of tools, which may be remembered. So a tool is called that no server
has: the bridge passes on what is not listed, only the server itself can say that it does not know it, and nothing happens.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from interlock.install.talking import Talk, start, tool_names

DEADLINE_SECONDS = 30.0

# What Codex lets through (its whitelist is the narrowest that was observed), and what Windows programs cannot do without.
_KEPT = (
    "HOME", "LOGNAME", "PATH", "SHELL", "USER", "LANG", "LC_ALL", "TERM", "TMPDIR", "TZ", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "SYSTEMROOT", "SYSTEMDRIVE", "USERPROFILE", "USERNAME", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA", "TEMP", "TMP",
    "COMSPEC", "PATHEXT", "WINDIR", "HOMEDRIVE", "HOMEPATH",
)  # fmt: skip
_PROBE = "interlock-setup-probe"


class Outcome(NamedTuple):
    kind: Literal["tools", "login", "wait", "refused", "silent", "not_started"]
    """`login`: the server is there, and a person has to sign in at `authorize_url`."""
    tools: tuple[str, ...] = ()
    authorize_url: str | None = None
    said: str = ""
    """The server's or the system's words, for people."""
    seconds: float = 0.0
    verdict: str | None = None
    server: str | None = None
    slug: str | None = None
    """Interlock's own name of the error (docs/errors.md), where it is one."""


def clean_environment(environ: Mapping[str, str], names: Sequence[str] = ()) -> dict[str, str]:
    """What a host passes on at the least, and the variables that the entry names."""
    return {name: environ[name] for name in (*_KEPT, *names) if name in environ}


def call(command: Sequence[str], environ: Mapping[str, str], seconds: float = DEADLINE_SECONDS) -> Outcome:
    """Start it, `initialize`, one call of a tool that is not there, `tools/list`. Never raises; within `seconds` and a little."""
    begun = time.monotonic()
    try:
        process = start(command, environ)
    except OSError as error:
        return Outcome("not_started", said=f"{command[0]}: {error.strerror or error}")
    talk = Talk(process, begun + seconds)
    outcome = _held(talk)
    talk.leave(stay=outcome.kind == "login")
    return outcome._replace(seconds=time.monotonic() - begun)


def _held(talk: Talk) -> Outcome:
    first = talk.begin("interlock-setup")
    if first is None:
        return _no_answer(talk, "initialize")
    if "error" in first:
        return _refused(first["error"])
    called = talk.ask(2, "tools/call", {"name": _PROBE, "arguments": {}})
    if called is None:
        return _no_answer(talk, "tools/call")
    if (verdict := _verdict(called)) is not None:
        return verdict._replace(server=_server(first))
    # Asked after the call: a list that was remembered has been compared with the server's own by then.
    listed = talk.ask(3, "tools/list", {})
    if listed is None:
        return _no_answer(talk, "tools/list")
    if "error" in listed:
        return _refused(listed["error"])
    return Outcome("tools", tool_names(listed), server=_server(first))


def _no_answer(talk: Talk, method: str) -> Outcome:
    ended = talk.ended()
    words = talk.said().splitlines()
    last = f": {words[-1][:400]}" if words else ""
    if ended is not None:
        return Outcome("not_started", said=f"it ended with exit code {ended} before it answered {method}{last}")
    return Outcome("silent", said=f"{method} was not answered in time{last}")


def _refused(error: object) -> Outcome:
    """A JSON-RPC error or the `_meta` of a failed call: `wait` with a URL is a sign-in, what else it says counts as it says."""
    if not isinstance(error, dict):
        return Outcome("refused")
    data = error.get("data")
    known = data if isinstance(data, dict) else error
    url, verdict, slug = known.get("authorize_url"), known.get("verdict"), known.get("error")
    kind: Literal["login", "wait", "refused"] = "wait" if verdict == "wait" else "refused"
    if isinstance(url, str) and url:
        kind = "login"
    return Outcome(
        kind,
        authorize_url=url if isinstance(url, str) and url else None,
        said=str(error.get("message", "")),
        verdict=verdict if isinstance(verdict, str) else None,
        slug=slug if isinstance(slug, str) else None,
    )


def _verdict(called: Mapping[str, object]) -> Outcome | None:
    """Interlock's own word on the call; None where the answer is the server's, however it refuses what it does not have.

    Interlock's facts stand in the `data` of an error or the `_meta` of a result, with its build as `interlock`
    (docs/errors.md). "Unknown" is the good answer, also where the server is an Interlock itself: a bridge never says it of
    a tool without having asked.
    """
    error = called.get("error")
    facts = error.get("data") if isinstance(error, dict) else _meta(called)
    if not isinstance(facts, dict) or "interlock" not in facts or "verdict" not in facts:
        return None
    outcome = _refused(facts)
    return None if outcome.slug == "unknown-name" else outcome._replace(said=_words(called))


def _meta(answer: Mapping[str, object]) -> object:
    result = answer.get("result")
    return result.get("_meta") if isinstance(result, dict) else None


def _words(answer: Mapping[str, object]) -> str:
    error, result = answer.get("error"), answer.get("result")
    if isinstance(error, dict):
        return str(error.get("message", ""))
    content = result.get("content") if isinstance(result, dict) else None
    texts = [str(part["text"]) for part in content or () if isinstance(part, dict) and "text" in part]
    return "\n".join(texts)


def _server(first: Mapping[str, object]) -> str | None:
    result = first.get("result")
    info = result.get("serverInfo") if isinstance(result, dict) else None
    return str(info["name"]) if isinstance(info, dict) and "name" in info else None
