"""Whether the audit records can be read, and whether calls are missing in them."""

from __future__ import annotations

import asyncio
import time

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import count, shown
from interlock.doctor.times import moment
from interlock.model.stage import Stage
from interlock.store.interface import Gap, StoreError

CHECK = Check("audit", Stage.OBSERVE)
_WEEK = 7 * 86400


async def check(examination: Examination) -> list[Finding]:
    try:
        traces = await examination.traces()
        gaps = await asyncio.to_thread(_gaps, examination)
    except StoreError as error:
        return [
            CHECK.found(
                "problem", f"the audit records cannot be read: {shown(error.message, 400)}", examination.home,
                "Nothing can be said of past calls, and new ones may not be written down.", "See docs/audit.md.",
            )
        ]  # fmt: skip
    findings = [
        CHECK.found(
            "warning", f"{'an unknown number of calls' if gap.lost is None else count(gap.lost, 'call')} up to "
            f"{moment(gap.to_ns / 1e9)} are missing in the audit records: {shown(gap.reason)}",
            examination.home, "They were served and not written down.", "See docs/audit.md.",
        )
        for gap in gaps[:1]
    ]  # fmt: skip
    return findings or [CHECK.found("ok", f"{count(len(traces), 'recorded call')} to look at", examination.home)]


async def needed(examination: Examination) -> list[Finding]:
    """The same where the question is about past calls: without any, nothing is known."""
    found = await check(examination)
    if not await _recorded(examination) and all(each.severity == "ok" for each in found):
        return [
            CHECK.found(
                "unknown", "no call is recorded, so nothing can be said of where their time goes", examination.home,
                "Only calls through Interlock are.", "Let the host call through Interlock for a while, and ask again.",
            )
        ]  # fmt: skip
    return found


async def _recorded(examination: Examination) -> bool:
    try:
        return bool(await examination.traces())
    except StoreError:
        return False


def _gaps(examination: Examination) -> list[Gap]:
    from interlock.store.sqlite import SqliteStore

    store = SqliteStore.for_reading(examination.home)
    try:
        return store.recent_gaps(time.time_ns() - _WEEK * 1_000_000_000, 5)
    finally:
        store.close()
