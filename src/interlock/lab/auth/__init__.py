"""A scripted authorization server and a protected MCP server, which lie on command: late, early, silent, with a wrong clock.

`python -m interlock.lab.auth` runs them; `AuthLab` is the same inside a test.
"""

from interlock.lab.auth.behaviour import Behaviour, Mishap
from interlock.lab.auth.lab import AuthLab
from interlock.lab.auth.remote import RemoteLab

__all__ = ["AuthLab", "Behaviour", "Mishap", "RemoteLab"]
