"""Whether two entries are the same server: the same command words, or the same URL, however each host writes them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from urllib.parse import urlsplit

from interlock.hosts.adapter import Form
from interlock.hosts.platforms import unwrapped
from interlock.hosts.references import found, normal

_RUNNERS = frozenset(
    ("npx", "node", "uvx", "uv", "python", "python3", "docker", "podman", "bunx", "bun", "deno", "pnpm")
)
"""Programs that are the same wherever they lie."""
_QUIET = frozenset(("-y", "--yes", "-q", "--quiet"))
_HOME = frozenset(("HOME", "userHome", "USERPROFILE"))

Identity = tuple[str, ...]


def of_command(words: Sequence[str], home: str, forms: Collection[Form] = ()) -> Identity:
    words = unwrapped(words)
    if not words:
        return ("stdio",)
    program = _path(words[0], home, forms)
    name = program.rpartition("/")[2].lower()
    for ending in (".exe", ".cmd", ".bat"):
        name = name.removesuffix(ending)
    rest = [_path(word, home, forms) for word in words[1:]]
    if name in _RUNNERS:
        program = name
    if name == "npx":
        rest = _without_flags(rest)
    if name in ("npx", "uvx", "bunx") and rest:
        rest[0] = rest[0].removesuffix("@latest")
    return ("stdio", program, *rest)


def of_url(url: str, forms: Collection[Form] = ()) -> Identity:
    text = normal(url, forms)
    try:
        parts = urlsplit(text)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme.lower())
        host = (parts.hostname or "").lower()
    except ValueError:
        return ("url", text)
    return ("url", parts.scheme.lower(), host, str(port), parts.path.rstrip("/"), parts.query)


def _without_flags(words: list[str]) -> list[str]:
    """Those before the package only: behind it they are the server's own."""
    for index, word in enumerate(words):
        if not word.startswith("-"):
            return [each for each in words[:index] if each not in _QUIET] + words[index:]
    return words


def _path(word: str, home: str, forms: Collection[Form]) -> str:
    """With the home directory filled in and `/` for `\\`, so that every spelling of one path is one text."""
    text = at_home(word, {"HOME": home}, forms)
    if text == "~" or text.startswith(("~/", "~\\")):
        text = home + text[1:]
    text = normal(text, forms)
    if text[:1] in ("/", "\\", ".") or text[1:3] in (":\\", ":/"):
        text = text.replace("\\", "/")
    return text


def at_home(text: str, values: Mapping[str, str], forms: Collection[Form] = ()) -> str:
    """With references to the home directory, by any of its names, filled in."""
    made, done = "", 0
    for each in found(text, forms):
        if each.kind == "env" and each.name in _HOME:
            made += text[done : each.start] + values["HOME"]
            done = each.end
    return made + text[done:]
