"""Disagreements between a host's own answer and Interlock's inventory that are right as they are, each with its reason.

By host, situation and server. One that is not seen any more fails the suite too.
"""

from __future__ import annotations

KNOWN: dict[tuple[str, str, str], str] = {}
