"""Exposed names: what a host is shown for `server/tool`, made by that host's naming profile.

The name is a function of the canonical name and the profile alone, so it never depends on what else is running.
Whatever would be lost on the way (an illegal character, a cut, an ambiguous separator, or something that the host
itself would fold together afterwards) is made up for by a short hash of the canonical name.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from interlock.model.names import CanonicalName

Evidence = Literal["observed", "source", "documented", "third-party", "unknown"]
"""How the facts behind a profile are known; the weakest of them counts. See docs/names.md."""

ENTRY = "interlock"
"""The name under which hosts list Interlock in their own configuration; hosts put it into every tool's name."""

HASH_LENGTH = 10
"""Hex digits of SHA-256. 40 bits: two of ten thousand shortened names meet with a chance of about 1 in 20,000."""

_HASHED = re.compile(rf"_[0-9a-f]{{{HASH_LENGTH}}}\Z")
_WORD = "A-Za-z0-9_"
_WORD_DASH = "A-Za-z0-9_-"
_MIN_KEY = 12


@dataclass(frozen=True, slots=True)
class NamingProfile:
    """What one host does to names, and so what may be given to it without being changed again."""

    host: str
    host_prefix: str
    """What the host writes before our name, `ENTRY` included. Its length counts against `total`."""
    total: int
    """Longest whole name, in characters, that the host and the model behind it are known to take."""
    alphabet: str
    """Inside of a regular expression's character class: the characters that stay as they are and stay distinct."""
    evidence: Evidence
    separator: str = "__"
    letter_first: bool = False
    """True where nothing is known to stand before our name, so that it must begin with a letter by itself."""
    taken_prefix: str = ""
    """A beginning that the host adds to some names only: a name of ours that already has it could meet another."""

    @property
    def limit(self) -> int:
        """Longest name of ours, in characters."""
        return self.total - len(self.host_prefix)


# The total is 64 where the host allows more (Claude Code and Codex take 128): how long a name the model's API accepts
# depends on the model and the provider, and 64 is the least of the published limits. A name that is too long costs the
# whole session on some hosts; a shortened one costs a hash.
_PROFILES: dict[str, NamingProfile] = {
    profile.host: profile
    for profile in (
        # Keeps [A-Za-z0-9_-]; of two names that meet, one is lost without a word.
        NamingProfile("claude_code", f"mcp__{ENTRY}__", 64, _WORD_DASH, "observed"),
        # `-` becomes `_` as well; names that meet get a hash that depends on what else is there.
        NamingProfile("codex", f"mcp__{ENTRY}__", 64, _WORD, "observed"),
        # Keeps dots; cuts at 63 in the middle; the later of two names that meet wins.
        NamingProfile("gemini_cli", f"mcp_{ENTRY}_", 63, "A-Za-z0-9_.-", "observed"),
        # Keeps dots, but the chat-completions APIs that it speaks to are not known to take them.
        NamingProfile("qwen", f"mcp__{ENTRY}__", 63, _WORD_DASH, "observed"),
        # Every character but letters and digits may become `-`: so `_` stands for it, and `-` itself is not used.
        NamingProfile("copilot_cli", f"{ENTRY}-", 64, _WORD, "observed"),
        NamingProfile("opencode", f"{ENTRY}_", 64, _WORD_DASH, "observed"),
        NamingProfile("pi", f"{ENTRY}_", 64, _WORD_DASH, "observed"),
        # 64 in all, of which the prefix may take 18: it comes from what the server calls itself, with a number where
        # two servers meet. `mcp_interlock_` is 14 long, so 60 leaves room for the other 4.
        NamingProfile("vscode", f"mcp_{ENTRY}_", 60, _WORD_DASH, "source"),
        # No prefix unless two servers share a name: then `<entry>_` is put before it, within 64.
        NamingProfile("zed", f"{ENTRY}_", 64, _WORD_DASH, "source", letter_first=True, taken_prefix=ENTRY),
        NamingProfile("goose", f"{ENTRY}__", 64, _WORD_DASH, "source"),
        NamingProfile("cline", f"{ENTRY}__", 64, _WORD, "source"),
        # Puts `_` before a name that begins with a digit, and shortens runs of `-`.
        NamingProfile("roo_code", f"mcp--{ENTRY}--", 64, _WORD, "source", letter_first=True),
        # The prefix is left out where the name already begins with it.
        NamingProfile("continue", f"{ENTRY}_", 64, _WORD_DASH, "source", taken_prefix=ENTRY),
        # 60 characters in all is a user's report; the rest of its rule is unknown.
        NamingProfile("cursor", f"mcp_{ENTRY}_", 60, _WORD, "third-party", letter_first=True, taken_prefix=ENTRY),
    )
}

CONSERVATIVE = NamingProfile(
    # The longest prefix and the least total of any host above, only characters that no host changes.
    "unknown",
    f"mcp__{ENTRY}__",
    60,
    _WORD,
    "unknown",
    letter_first=True,
    taken_prefix=ENTRY,
)
"""Used where the host is not known, or nothing is known about its names. Valid on every host above."""

_UNKNOWN_HOSTS = ("antigravity", "claude_desktop", "jetbrains", "windsurf_devin")
_ALIASES = {
    "claude": "claude_code",
    "copilot": "copilot_cli",
    "gemini": "gemini_cli",
    "qwen_code": "qwen",
    "roo": "roo_code",
    "vs_code": "vscode",
    "windsurf": "windsurf_devin",
    "devin": "windsurf_devin",
}


def profile_for(host: str | None) -> NamingProfile:
    """The profile of a host, by its id in any case and with `-`, `_` or a space; a conservative one for all others."""
    if host is None:
        return CONSERVATIVE
    key = re.sub(r"[\s-]+", "_", host.strip().lower())
    key = _ALIASES.get(key, key)
    if key in _UNKNOWN_HOSTS:
        return replace(CONSERVATIVE, host=key)
    return _PROFILES.get(key, CONSERVATIVE)


def known_hosts() -> tuple[str, ...]:
    """Ids of all hosts that `profile_for` knows by name, sorted; also those whose names are still unknown."""
    return tuple(sorted((*_PROFILES, *_UNKNOWN_HOSTS)))


def exposed_name(name: CanonicalName, profile: NamingProfile) -> str:
    """`key__tool` where that says everything, otherwise a cleaned and cut `key__tool_HASH`.

    The plain and the hashed names never meet: a plain name that looks hashed is hashed too. Two hashed names meet only
    where their hashes do.
    """
    plain = f"{name.server}{profile.separator}{name.item}"
    if _keeps_everything(name, plain, profile):
        return plain
    digest = hashlib.sha256(str(name).encode("utf-8", "surrogatepass")).hexdigest()[:HASH_LENGTH]
    key = _clean(name.server, profile) or "server"
    if profile.letter_first and not key[0].isalpha():
        key = f"s{key}"
    item = _clean(name.item, profile) or "item"
    room = profile.limit - len(profile.separator) - 1 - HASH_LENGTH
    key = key[: max(_MIN_KEY, room - len(item))].rstrip("_")
    item = item[: room - len(key)].rstrip("_")
    return f"{key}{profile.separator}{item}_{digest}"


exposed_prompt_name = exposed_name
"""Prompts become commands under the same rules of the same hosts."""


def name_table(
    names: Iterable[CanonicalName], profile: NamingProfile
) -> tuple[Mapping[str, CanonicalName], tuple[CanonicalName, ...]]:
    """Exposed name to canonical name, and the names that found theirs taken.

    The second part is empty but for a collision of hashes. The names are taken in canonical order, so that the outcome
    does not depend on which server answered first; repeated names count once.
    """
    table: dict[str, CanonicalName] = {}
    lost: list[CanonicalName] = []
    for name in sorted(set(names)):
        if table.setdefault(exposed_name(name, profile), name) != name:
            lost.append(name)
    return table, tuple(lost)


def _keeps_everything(name: CanonicalName, plain: str, profile: NamingProfile) -> bool:
    """True where the first separator splits `plain` back into the two parts, and the host changes nothing of it."""
    return (
        len(plain) <= profile.limit
        and bool(name.server)
        and bool(name.item)
        and re.fullmatch(f"[{profile.alphabet}]+", plain) is not None
        # With `a_` + `__` + `b` or `a__b` + `__` + `c` the first separator would stand elsewhere.
        and profile.separator not in name.server
        and not name.server.endswith(profile.separator[0])
        and _HASHED.search(plain) is None
        and not (profile.letter_first and not plain[0].isalpha())
        and not (profile.taken_prefix and plain.startswith(profile.taken_prefix))
    )


def _clean(text: str, profile: NamingProfile) -> str:
    """`text` in the profile's alphabet: other characters become `_`, runs of `_` one, none at either end."""
    return re.sub("_+", "_", re.sub(f"[^{profile.alphabet}]", "_", text)).strip("_")
