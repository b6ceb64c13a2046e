"""Whether the server really starts: once, as its host or Interlock would start it, and what it said where it does not."""

from __future__ import annotations

import shlex

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import count, shown, without_limits
from interlock.doctor.starting import Started, Target
from interlock.hosts.masking import masked, secret_texts
from interlock.model.fault import Fault
from interlock.model.stage import Stage
from interlock.upstream.exits import explain_exit
from interlock.wire import bounds

CHECK = Check("start", Stage.DISCOVER)
_LATE = frozenset(("timeout", "startup-timeout"))
_SIGN_IN = frozenset(("unauthorized", "login-needed", "token-rejected", "insufficient-scope", "forbidden"))


async def check(examination: Examination) -> list[Finding]:
    if not examination.start:
        return [_not_tried(each) for each in await examination.targets()]
    return [_of(each) for each in await examination.all_started()]


def _not_tried(target: Target) -> Finding:
    return CHECK.found(
        "unknown", f"whether `{target.name}` starts was not tried{_by(target)}", target.where, "Nothing is started unasked.",
        f"`interlock doctor does-not-start --server {shlex.quote(target.name)}` starts it once.",
        server=target.name, host=target.host,
    )  # fmt: skip


def _by(target: Target) -> str:
    return f" (as {target.host} starts it)" if target.host else ""


def _of(started: Started) -> Finding:
    target = started.target
    name, by = f"`{target.name}`", _by(target)
    doubts = f" {'; '.join(target.doubts).capitalize()}." if target.doubts else ""
    if started.reached == "tools":
        tools = count(len(started.snapshot.tools) if started.snapshot is not None else 0, "tool")
        spoken = (
            f" It speaks {'the modern revision only' if started.era == 'modern' else 'the legacy era'}."
            if started.era
            else ""
        )
        if started.banner:
            return CHECK.found(
                "warning", f"{name} starts, and prints what is no message on its standard output{by}", target.where,
                f"It printed: {shown(started.banner[0])}. Interlock reads past it; some hosts end the connection at such a line.",
                f"Let `{shown(target.name, 80)}` print that to standard error.", server=target.name, host=target.host,
                code="stdout-noise",
            )  # fmt: skip
        return CHECK.found(
            "ok", f"{name} starts and lists {tools}{by}.{spoken}", target.where, server=target.name, host=target.host
        )
    seen, why, todo = _explained(started)
    severity = "warning" if started.fault is not None and started.fault.slug in _SIGN_IN else "problem"
    return CHECK.found(
        "warning" if severity == "warning" else "problem", f"{name} {seen}{by}", target.where, f"{why}{doubts}{_printed(started)}",
        todo, server=target.name, host=target.host,
    )  # fmt: skip


def _explained(started: Started) -> tuple[str, str, str]:
    """What was seen, why, what to do."""
    fault, exit, target = started.fault, started.exit, started.target
    if exit is not None:
        why, todo = _ended(_of_entry(explain_exit(exit), target), target)
        return "starts and ends again", _sentence(why), todo
    if fault is not None and fault.slug in _SIGN_IN:
        return (
            "wants a sign-in or another credential",
            "It can be reached; only its tools cannot be listed without.",
            f"`interlock doctor oauth-loop --server {shlex.quote(target.name)}`",
        )
    if fault is not None and started.spawn is None:
        return "does not start", _sentence(_said(fault, target)), _todo_of(fault, target)
    if started.too_long and started.handshake is None:
        return (
            "starts and floods its standard output",
            f"It printed more than {bounds.MAX_MESSAGE_BYTES // 1024**2} MB without the end of a line. Only messages belong there.",
            "Let it print to standard error or into a file: what it prints is no MCP message.",
        )
    if started.banner and started.handshake is None:
        return (
            "starts and answers nothing that is a message",
            f"It printed on its standard output: {shown(started.banner[0])}. Only messages belong there.",
            "Let it print its logs to standard error, or take out what prints before it.",
        )
    if started.handshake is None:
        said = (
            _said(fault, target)
            if fault is not None and fault.slug not in _LATE
            else f"it did not answer the handshake within {started.waited:.0f} s"
        )
        return (
            "starts and does not get through the handshake", _sentence(said),
            "Look at what it waits for: a question on its terminal, a network that does not answer, or it is no MCP server.",
        )  # fmt: skip
    said = (
        _said(fault, target)
        if fault is not None and fault.slug not in _LATE
        else f"it did not answer tools/list within {started.waited:.0f} s"
    )
    return "starts and does not list its tools", _sentence(said), "Look at what it waits for while it lists them."


def _ended(text: str, target: Target) -> tuple[str, str]:
    """Why, and what to do about it: where the cause is known, that comes before a look of one's own."""
    _, probable, cause = text.partition("probable cause: ")
    _, apart, action = cause.partition(". ")
    if not probable or not apart:
        return text, _by_hand(target)
    by_hand = _by_hand(target)
    return text[: -len(action)].rstrip(), f"{_sentence(action)} If that is not it: {by_hand[:1].lower()}{by_hand[1:]}"


def _todo_of(fault: Fault, target: Target) -> str:
    slug, program = fault.slug, target.program[0] if target.program else ""
    if slug == "command-not-found":
        return f"Install `{shown(program, 80)}`, or write its full path: `command -v {shlex.quote(program)}` prints it."
    if slug == "env-missing":
        return "Set it where the host, or Interlock, is started."
    if slug == "cwd-missing":
        return "Make the folder, or correct `cwd`."
    said = _said(fault, target)
    path = shown(program, 200)
    if "is not executable" in said:
        return f"`chmod +x {shlex.quote(path)}`, or name the interpreter first in `command`."
    if "another kind of machine" in said:
        return f"Install the build of `{path}` for this machine: `uname -sm` says which, `file {shlex.quote(path)}` what it is."
    if "has no `#!` line" in said:
        return (
            f"Give `{path}` a first line such as `#!/usr/bin/env python3`, or name the interpreter first in `command`."
        )
    if "end in CR LF" in said:
        return f"`sed -i 's/\\r$//' {shlex.quote(path)}`"
    if "interpreter in the first line" in said:
        return f"Install the interpreter that the first line of `{path}` names, or correct that line."
    if "is a directory" in said:
        return f"Name a program in `command`: `{path}` is a folder."
    return f"Correct `command`, which is `{path}`." if path else "Change what the text names."


def _by_hand(target: Target) -> str:
    words = shlex.join(target.program)
    held = [*target.secrets, *secret_texts({"args": list(target.program)})]
    return f"Run it by hand to see all that it says: `{shown(masked(words, held), 300)}`"


def _said(fault: Fault, target: Target) -> str:
    return _of_entry(shown(without_limits(fault.message), 600).removeprefix(f"{target.name}: "), target)


def _of_entry(text: str, target: Target) -> str:
    """Causes are told in the words of a manifest; a host has entries."""
    return text.replace("the manifest", "the entry") if target.config is None else text


def _printed(started: Started) -> str:
    """Its last words; they are the server's own, and said to be."""
    if started.reached == "tools" or not (started.stderr or started.banner):
        return ""
    if not started.stderr:
        return (
            f" It printed on standard output: {shown(' | '.join(started.banner[-6:]), 700)}"
            if started.exit is not None
            else ""
        )
    return f" It printed on standard error: {shown(' | '.join(started.stderr[-6:]), 700)}"


def _sentence(text: str) -> str:
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}" + ("" if text.endswith((".", "!", "?")) else ".")
