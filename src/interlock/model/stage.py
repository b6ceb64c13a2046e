"""The seven stages of a call, in order. They are the architecture, the folders and what a trace shows."""

from __future__ import annotations

from enum import StrEnum


class Stage(StrEnum):
    DISCOVER = "discover"
    DESCRIBE = "describe"
    SELECT = "select"
    AUTHORIZE = "authorize"
    EXECUTE = "execute"
    VALIDATE = "validate"
    OBSERVE = "observe"
