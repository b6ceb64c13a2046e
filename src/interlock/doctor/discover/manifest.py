"""Whether the manifests can be read, and whether what they declare may run: errors, trust, switches."""

from __future__ import annotations

import shlex

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding, Severity
from interlock.doctor.shown import shown
from interlock.manifest.problems import Problem
from interlock.model.stage import Stage

CHECK = Check("manifest", Stage.DISCOVER)
_TOLD_BY_A_START = frozenset(("replaced", "no-program", "no-directory"))
"""What `start` says better: with the server's own environment, and where it looked."""
_SEVERITY: dict[str, Severity] = {"error": "problem", "warning": "warning", "note": "note"}


async def errors(examination: Examination) -> list[Finding]:
    """Only what is wrong in the files: an entry with an error may take a deny, or a whole file, with it."""
    return [_of(problem) for problem in examination.loaded.problems if problem.severity == "error"]


async def check(examination: Examination) -> list[Finding]:
    configs = examination.configs()
    # An entry that is wrong is no server, so whoever asks for one by a name that is not there may mean it.
    about = examination.server is None or not configs
    told = _TOLD_BY_A_START if examination.start else frozenset(("replaced",))
    findings = [_of(problem) for problem in examination.loaded.problems if about and problem.code not in told]
    trusts = {trust.file: trust for trust in examination.loaded.trusts}
    for config in configs:
        where = str(config.origin)
        if not config.enabled:
            findings.append(
                CHECK.found(
                    "note" if examination.server is None else "problem", f"`{config.key}` is switched off", where,
                    "No host sees anything of it.", "Take `enabled: false` out of its entry.", server=config.key,
                )
            )  # fmt: skip
        elif config.blocked is not None:
            trust = trusts.get(config.origin.file)
            untrusted = trust is not None and trust.how in ("never", "changed")
            findings.append(
                CHECK.found(
                    "problem", f"`{config.key}` may not run: {shown(config.blocked, 400)}", where, "No host sees anything of it.",
                    f"`interlock trust {shlex.quote(str(config.origin.file))}`" if untrusted else "Change what the text names.",
                    server=config.key,
                )
            )  # fmt: skip
    return findings


def _of(problem: Problem) -> Finding:
    where = f"{problem.file}:{problem.line}" if problem.line else str(problem.file)
    field = f"`{problem.field}`: " if problem.field else ""
    why = "An entry with an error is left out as a whole." if problem.severity == "error" else ""
    todo = f"Write: {problem.write}" if problem.write else ""
    return CHECK.found(_SEVERITY[problem.severity], f"{field}{shown(problem.what, 400)}", where, why, todo)
