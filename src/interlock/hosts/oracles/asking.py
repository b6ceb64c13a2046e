"""Asks one host what it makes of its servers, and compares that with what Interlock made of the same files.

Asking starts the host's own program, and most of these start the servers. Interlock writes nothing; some hosts write while
they are asked, which each file here says, and `Asked.wrote` lists the configuration files that changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from interlock.hosts.declaration import Declaration
from interlock.hosts.oracles import claude_code, codex, copilot_cli, cursor, gemini_family, goose, opencode
from interlock.hosts.oracles.asked import ABSENT, Asked, Disagreement, OracleSays
from interlock.hosts.oracles.known import reason
from interlock.hosts.oracles.running import CannotRun, NotInstalled, known_secrets, shown
from interlock.hosts.reading import Reading, read_bytes
from interlock.hosts.text.document import Damaged

Ask = Callable[[Reading, float, Iterable[str]], Asked]
ORACLES: dict[str, Ask] = {
    "codex": codex.ask,
    "claude-code": claude_code.ask,
    "gemini-cli": gemini_family.ask_gemini,
    "qwen-code": gemini_family.ask_qwen,
    "opencode": opencode.ask,
    "copilot-cli": copilot_cli.ask,
    "goose": goose.ask,
    "cursor": cursor.ask,
}
_FITS: dict[str, frozenset[str]] = {
    "effective": frozenset(("enabled", "connected", "failed", "needs-login", "untold")),
    "disabled": frozenset(("disabled", "absent")),
    "blocked": frozenset(("blocked", "pending", "disabled", "absent")),
    "broken": frozenset(("invalid", "failed", "absent")),
    "never-read": frozenset(("absent",)),
    "shadowed": frozenset(("absent",)),
}


def ask(reading: Reading, seconds: float = 60.0) -> Asked:
    """Never raises for what the host does; `trouble` says why there is no answer."""
    host = reading.adapter.id
    oracle = ORACLES.get(host)
    if oracle is None:
        return Asked(host=host, trouble="this host has no command that tells", partial=True)
    before = _prints(reading)
    try:
        asked = oracle(reading, seconds, known_secrets(reading))
    except CannotRun as error:
        return Asked(
            host=host, trouble=str(error), partial=True, installed=not isinstance(error, NotInstalled)
        )  # fmt: skip
    except (RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        # What a program prints may be anything; the other hosts are asked all the same.
        asked = Asked(host=host, trouble=f"its answer cannot be read ({type(error).__name__})", partial=True)
    if asked.trouble is not None and not asked.refuses:
        asked.partial = True
    asked.wrote = [path for path, print in _prints(reading).items() if before[path] != print]
    return asked


def _prints(reading: Reading) -> dict[str, str]:
    paths = [each.path for each in reading.seen] + list(reading._others)
    prints = {}
    for path in dict.fromkeys(paths):
        try:
            content = read_bytes(reading.machine, path)
        except (OSError, Damaged):
            content = None
        prints[path] = "" if content is None else hashlib.sha256(content).hexdigest()
    return prints


def compare(reading: Reading, asked: Asked) -> list[Disagreement]:
    """Where the two differ. Without an answer there is nothing to compare."""
    if asked.trouble is not None and not asked.refuses and not asked.servers:
        return []
    host = reading.adapter.id
    ours = _winners(reading)
    found = []
    for server in [*ours, *(name for name in asked.servers if name not in ours)]:
        mine, theirs = ours.get(server), asked.servers.get(server, ABSENT)
        if asked.refuses:
            theirs = OracleSays(state="absent", detail=asked.trouble or "")
        elif theirs is ABSENT and asked.partial:
            continue
        state = mine.state if mine is not None else "not found"
        if theirs.state not in _FITS.get(state, frozenset(("absent",))):
            why = reason(host, server, mine, theirs, asked)
            found.append(
                Disagreement(server=server, what="state", ours=_ours(mine), theirs=_theirs(theirs), reason=why)
            )
        elif mine is not None and state == "effective" and theirs.runs and "$" not in theirs.runs:
            words = _words(mine, asked, reading)
            if words and words != theirs.runs:
                found.append(Disagreement(server=server, what="runs", ours=words, theirs=theirs.runs))
    return found


def _winners(reading: Reading) -> dict[str, Declaration]:
    """Of each name the one that runs, else the one that says most of why nothing does."""
    order = ("effective", "disabled", "blocked", "broken", "shadowed", "never-read")
    best: dict[str, Declaration] = {}
    for each in reading.declarations:
        if each.server is None:
            continue
        before = best.get(each.server)
        if before is None or order.index(each.state) < order.index(before.state):
            best[each.server] = each
    return best


def _ours(declaration: Declaration | None) -> str:
    if declaration is None:
        return "not found"
    return f"{declaration.state} ({declaration.decided_by.rule}), {declaration.spot}"


def _theirs(says: OracleSays) -> str:
    return f"{says.state}: {says.detail}" if says.detail else says.state


def _words(declaration: Declaration, asked: Asked, reading: Reading) -> str:
    """What we think it runs, put as the host puts it; empty where variables may stand in it."""
    entry = declaration.runs
    if entry is None:
        return ""
    text = entry.url or " ".join(entry.command)
    if any(sign in text for sign in ("$", "{", "%")):
        return ""
    return shown(text, known_secrets(reading))
