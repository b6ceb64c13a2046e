"""Whether a literal in a manifest looks like a secret: by known format, by the name it stands under, by randomness.

Answers are reasons in words. They never hold the value.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from urllib.parse import parse_qsl, urlsplit

_FORMATS: tuple[tuple[str, str], ...] = (
    ("a private key", r"-----BEGIN [A-Z ]*PRIVATE KEY(?s:.*)"),
    ("a GitHub token", r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})"),
    ("a GitLab token", r"\bgl(?:pat|ptt|dt|rt|cbt|ft|soat)-[A-Za-z0-9_-]{16,}"),
    ("an API key of the `sk-` kind", r"\bsk-[A-Za-z0-9_-]{16,}"),
    ("a Stripe key", r"\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9]{16,}"),
    ("a Slack token", r"\bxox[a-z]-[A-Za-z0-9-]{10,}|\bxapp-[0-9]-[A-Za-z0-9-]{10,}"),
    ("a Slack webhook", r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{20,}"),
    ("an AWS access key", r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b"),
    ("a Google API key", r"\bAIza[0-9A-Za-z_-]{30,}"),
    ("a Google OAuth token", r"\bya29\.[0-9A-Za-z_-]{20,}"),
    ("an npm token", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("a PyPI token", r"\bpypi-[A-Za-z0-9_-]{30,}"),
    ("a Hugging Face token", r"\bhf_[A-Za-z0-9]{30,}"),
    ("a SendGrid key", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    ("a DigitalOcean token", r"\bdo[opr]_v1_[0-9a-f]{40,}"),
    ("a Shopify token", r"\bshp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("a Linear key", r"\blin_(?:api|oauth)_[A-Za-z0-9]{20,}"),
    ("a Notion token", r"\bntn_[A-Za-z0-9]{30,}|\bsecret_[A-Za-z0-9]{40,}"),
    ("a Postman key", r"\bPMAK-[0-9a-f]{20,}"),
    ("an Atlassian token", r"\bATATT3[A-Za-z0-9_=-]{20,}"),
    ("a Databricks token", r"\bdapi[0-9a-f]{32}\b"),
    ("a Vault token", r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}"),
    ("an age key", r"\bAGE-SECRET-KEY-1[0-9A-Z]{20,}"),
    ("a Telegram bot token", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}"),
    ("a signed token (JWT)", r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}"),
    ("an authorization value", r"(?i:\b(?:bearer|basic)) [A-Za-z0-9._~+/-]{12,}=*"),
    ("a URL with a password", r"[a-z][a-z0-9+.-]*://[^\s/:@]*:[^\s/@]+@"),
)
_FORMAT = re.compile("|".join(f"(?P<f{index}>{pattern})" for index, (_, pattern) in enumerate(_FORMATS)))

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset(
    (
        "token",
        "secret",
        "secrets",
        "password",
        "passwd",
        "passphrase",
        "pwd",
        "pass",
        "pat",
        "credential",
        "credentials",
        "authorization",
        "cookie",
        "jwt",
        "apikey",
        "bearer",
        "otp",
    )
)
_KEY_KINDS = frozenset(
    (
        "api",
        "access",
        "secret",
        "private",
        "signing",
        "encryption",
        "master",
        "account",
        "service",
        "client",
        "auth",
        "subscription",
        "license",
        "shared",
        "storage",
        "admin",
        "deploy",
        "bot",
        "app",
    )
)
_RANDOM = re.compile(r"[A-Za-z0-9+/_=-]{20,}\Z")
_HEX = re.compile(r"[0-9a-fA-F]+\Z")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\Z")
_DIGEST = re.compile(r"(?:sha(?:1|256|384|512)[:-])", re.IGNORECASE)
_HARMLESS = frozenset(("", "true", "false", "none", "null", "0", "1", "yes", "no", "on", "off"))
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}|\$[A-Z][A-Z0-9_]+\Z|\{\{[^}]*\}\}")


def known_format(text: str) -> str | None:
    """What kind of secret this text is or holds, where its format alone says so."""
    if len(text) < 12:
        return None
    found = _FORMAT.search(text)
    return _FORMATS[int((found.lastgroup or "f0")[1:])][0] if found else None


def without_known(text: str, mask: str) -> str:
    """The text with everything masked that is a secret by its format alone."""
    return _FORMAT.sub(mask, text) if len(text) >= 12 else text


def secret_name(name: str) -> bool:
    """Whether a variable, header, option or parameter of this name is for a secret: `API_TOKEN`, not `TOKEN_FILE`."""
    words = [word.lower() for word in _WORD.findall(name)]
    if not words:
        return False
    last = words[-1]
    while last.isdigit() and len(words) > 1:
        words.pop()
        last = words[-1]
    if last in _SECRET_WORDS:
        return not (last == "pass" and len(words) == 1)
    return last == "key" and len(words) > 1 and bool(_KEY_KINDS & set(words[:-1]))


def looks_random(text: str) -> bool:
    """Whether a text is too random for a word, path, version or address (which people write into configurations)."""
    if len(text) < 20 or not _RANDOM.match(text) or _UUID.match(text):
        return False
    if _HEX.match(text):
        return len(text) >= 32 and _entropy(text) > 3.0
    kinds = sum(any(test(letter) for letter in text) for test in (str.islower, str.isupper, str.isdigit))
    return kinds == 3 and _entropy(text) >= 3.8 and not _is_path_like(text)


def placeholder(text: str) -> bool:
    """Whether the text hopes for a variable to be filled in (`${NAME}`), which Interlock does not do."""
    return bool(_PLACEHOLDER.search(text))


def named_literal(name: str, text: str) -> str | None:
    """Why the literal `text` of the variable or header `name` is refused, or None."""
    if text.strip().lower() in _HARMLESS:
        return None
    kind = known_format(text)
    if kind:
        return f"it looks like {kind}"
    if secret_name(name):
        return "a name like this one holds a secret"
    if looks_random(text) and not _DIGEST.match(text):
        return "it looks like a random key"
    return None


def argument(before: str | None, text: str) -> str | None:
    """Why one command argument is refused. `before` is the argument in front of it."""
    kind = known_format(text)
    if kind:
        return f"it looks like {kind}"
    name, equals, value = text.partition("=")
    if equals and secret_name(name) and _concrete(value):
        return f"`{name if name.isprintable() and len(name) < 40 else 'this option'}` holds a secret"
    option = before if before is not None and before.startswith("-") and "=" not in before else None
    if option is not None and secret_name(option) and _concrete(text):
        return "the option before it holds a secret"
    if option is None and equals and name.startswith("-"):
        option, text = name, value
    return _behind(option, text) or _inside(text)


def _behind(option: str | None, text: str) -> str | None:
    """What an option's value is, where the option's name alone does not tell: a header, a variable, a user's login."""
    found = _NAMED.match(text) if option is not None else None
    if found is not None and option in _PAIRS and _concrete(found["value"]) and secret_name(found["name"]):
        return f"`{found['name']}` holds a secret"
    login = _LOGIN.fullmatch(text) if option in _LOGINS else None
    if login is not None and _concrete(login["password"]):
        return "a password follows the user's name"
    return None


def _inside(text: str) -> str | None:
    """A secret within a longer argument: an address, a connection string, a piece of JSON, a whole command line."""
    if "://" in text and (reason := _address(text)):
        return reason
    for found in (*_MEMBER.finditer(text), *_QUOTED_HEADER.finditer(text)):
        if secret_name(found["name"]) and _concrete(found["value"]):
            return f"`{found['name']}` in it holds a secret"
    words = text.split()
    if len(words) > 1:
        return next(filter(None, map(argument, [None, *words], [word.strip("\"'") for word in words])), None)
    return None


_PAIRS = frozenset(("-H", "--header", "--headers", "-e", "--env", "--set-env", "-E"))
_NAMED = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)\s*[:=]\s*(?P<value>\S.*)", re.DOTALL)
_LOGINS = frozenset(("-u", "--user", "--auth", "--basic-auth", "--proxy-user", "--creds", "--credentials", "--login"))
_LOGIN = re.compile(r"[^\s:/\\]+:(?!\d+\Z)(?=[^\s/\\:]*[A-Z0-9!#$%&*+^~])(?P<password>[^\s/\\:]{4,})")
"""`docker run --user node:node` is a user and a group, which are small letters."""
_MEMBER = re.compile(
    r"""(?:(?<=[;,{?&\s"'])|\A(?=-))(?P<name>[A-Za-z_-][A-Za-z0-9_ .-]{0,40})(?:["']\s*:\s*["']|=|(?<=[a-z]):(?!//))
        (?P<value>[^\s"';,&}]+)""",
    re.VERBOSE,
)
"""`;Password=x`, `"token": "x"`, `--token:x`."""
_QUOTED_HEADER = re.compile(r"""["'](?P<name>[A-Za-z][A-Za-z0-9-]{0,60}):\s*(?P<value>[^\s"'][^"']*)""")
"""In a shell's line: `curl -H 'X-Api-Key: x'`."""


def _address(text: str) -> str | None:
    """As `url`, but a commit or a digest in an address's path is no secret."""
    reason = url(text)
    if reason is None or not reason.startswith("a part of its path"):
        return reason
    pieces = re.split(r"[/?#]", text)
    return reason if any(looks_random(piece) and not _HEX.match(piece) for piece in pieces) else None


def url(text: str) -> str | None:
    """Why a literal URL is refused, or None."""
    kind = known_format(text)
    if kind:
        return f"it holds {kind}"
    try:
        parts = urlsplit(text)
        queries = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return None
    if parts.username or parts.password:
        return "it holds a user name or password"
    for name, value in queries:
        if (secret_name(name) or name.lower() in ("key", "sig", "signature", "code")) and _concrete(value):
            return "a parameter of it holds a secret"
        if looks_random(value):
            return "a parameter of it looks like a random key"
    if any(looks_random(piece) for piece in parts.path.split("/")):
        return "a part of its path looks like a random key"
    return None


def _concrete(value: str) -> bool:
    """A value of its own, and not a switch, a file, another option, or a variable for the program to fill in."""
    return (
        value.lower() not in _HARMLESS
        and not value.startswith(("-", "/", "./", "~", "$", "@", "%"))
        and not placeholder(value)
    )


def _is_path_like(text: str) -> bool:
    """Words joined by separators: `Some-Long-Name-2024`, `Team/Project1/src`."""
    pieces = [piece for piece in re.split(r"[/_=+-]", text) if piece]
    return len(pieces) > 1 and all(re.fullmatch(r"[A-Z]?[a-z]+[0-9]*|[A-Z]+[0-9]*|[0-9]+", piece) for piece in pieces)


def _entropy(text: str) -> float:
    """Bits a character."""
    size = len(text)
    return -sum(count / size * math.log2(count / size) for count in Counter(text).values())
