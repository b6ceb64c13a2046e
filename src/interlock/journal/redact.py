"""Masks secrets in free text: error messages, servers' stderr, anything stored or shown that Interlock did not write.

It knows the common shapes: private key blocks, `Authorization` and cookie values, tokens with a known beginning, JWTs,
URLs with a password, and the values of names such as `token`, `api_key` or `password` in any of the usual notations. It
cannot know a secret that looks like a word and stands alone: what must never leak is not put into text to begin with.

Time is linear in the text, whatever the text is: every pattern begins where no other match of it can begin, and gives
nothing back that it took (possessive `++`), or looks back over a bounded stretch only.
"""

from __future__ import annotations

import re

MASK = "[redacted]"
LIMIT = 64 * 1024
"""Characters looked at by default. Longer text is cut there: what was not looked at is not shown."""
_CUT = " [cut]"
_PASSES = 8

# Tokens that their beginning gives away; it may follow an escaped line break or a percent-encoded character.
_KNOWN = re.compile(
    r"""(?:(?<![A-Za-z0-9])|(?<=\\[nrt])|(?<=%[0-9A-Fa-f]{2}))(?:
        eyJ[\w-]{8,}+(?:\.[\w-]*+){1,4}+                       # JWT, JWE
      | (?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|ANPA)[A-Z0-9]{12,}+  # AWS
      | gh[opsur]_[A-Za-z0-9]{16,}+                            # GitHub
      | github_pat_\w{16,}+
      | gl[a-z]{2,6}-[\w.-]{16,}+                              # GitLab
      | sk-[\w-]{16,}+                                         # OpenAI, Anthropic and others
      | xox[a-z]-[A-Za-z0-9-]{8,}+                             # Slack
      | xapp-[A-Za-z0-9-]{8,}+
      | (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{8,}+            # Stripe
      | whsec_[\w+/=]{16,}+
      | AIza[\w-]{30,}+                                        # Google
      | ya29\.[\w-]{8,}+
      | GOCSPX-[\w-]{8,}+
      | npm_[A-Za-z0-9]{20,}+                                  # package registries, model hubs
      | pypi-[\w-]{16,}+
      | hf_[A-Za-z0-9]{16,}+
      | SG\.[\w-]{8,}+\.[\w-]{8,}+                             # SendGrid
      | dop_v1_[a-f0-9]{16,}+                                  # DigitalOcean
      | dapi[a-f0-9]{32}                                       # Databricks
      | hvs\.[\w-]{16,}+                                       # Vault
      | shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{16,}+                   # Shopify
      | sbp_[a-f0-9]{16,}+                                     # Supabase
      | lin_(?:api|oauth)_[A-Za-z0-9]{16,}+                    # Linear
      | (?:ntn|figd|sntrys|sntryu)_[\w-]{16,}+                 # Notion, Figma, Sentry
      | AGE-SECRET-KEY-1[A-Z0-9]{16,}+
      | hooks\.slack\.com/services/[\w/-]{8,}+
    )""",
    re.VERBOSE,
)

# `Bearer abc`: the word stays, what follows goes, unless it is one of the scheme's parameters (RFC 6750, section 3) or
# a word that people write there. `basic` is an ordinary word too, so what follows it must look like base64.
_SCHEME = re.compile(
    r"""(?<![A-Za-z0-9_])(?P<scheme>bearer|basic)(?P<space>[ \t]++)
        (?!(?:realm|scope|error|error_description|error_uri|resource_metadata|authorization_uri|charset|nonce)\s{0,4}=)
        (?!(?:auth|authentication|authorization|scheme|challenge|credentials?|tokens?|methods?|headers?|required|errors?)
           (?![\w.~+/=-]))
        (?P<value>[\w.~+/=-]{6,}+)""",
    re.VERBOSE | re.IGNORECASE,
)
_LIKE_BASE64 = re.compile(r"[A-Z0-9+/=]")

# scheme://user:password@host. The first form allows a slash in the password, which RFC 3986 does not and people do; a
# port and a path with an @ (`http://host:8080/@scope/name`) is not one.
_USERINFO = (
    re.compile(r"(?<=://)[^\s/@:\"'<>]{1,256}+:(?!\d{1,5}(?:[/?#]|$))[^\s@\"'<>]{1,512}+(?=@)"),
    re.compile(r"(?<=://)(?!git@)[^\s/\"'<>]*(?=@)"),
)

_PRIVATE_BEGIN = re.compile(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,48}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_PRIVATE_END = re.compile(r"-{4,5} ?END [A-Z0-9 ]{0,48}PRIVATE KEY(?: BLOCK)? ?-{4,5}")

# NAME and what separates it from its value. The name may be quoted, also with escaped quotes (JSON within JSON), stand
# in a tag or in brackets (`user[password]=`), be percent-encoded with its separator, or be a command line's option.
_NAME = re.compile(
    r"""(?<![\w.-])(?P<name>[\w.-]++)
        (?P<separator>
            \]?\\{0,8}["'`]?[ \t]{0,8}(?:=>|:=|[:=]=?)[ \t]{0,8}
          | (?:%22|%27)?%3[AaDd](?:%20|%22|%27|\+){0,4}
          | \\{0,8}["'][ \t]{0,8},[ \t]{0,8}(?=[bBuU]?\\{0,8}["'])
          | [ \t]{1,8}(?=[^\s=:-])
          | >(?=[^\s<])
        )""",
    re.VERBOSE,
)
_SECRET_NAME = re.compile(
    r"""secret|passw|passphrase|pwd|token(?!s|iz)|credential|authori[sz]ation|cookie(?!s)|bearer|signature|jwt
      | (?:api|access|private|signing|encryption|account|shared|master|auth|license|session|service)[-_.]?key
      | session[-_.]?id
      | (?:^|[-_.])(?:pass|sig|otp)$
      | [-_.](?:key|auth)$""",
    re.VERBOSE,
)
_QUERY_NAME = re.compile(r"(?:code|key|sid|session|ticket|auth|assertion|state|nonce)$")
_HARMLESS_NAME = re.compile(
    r"""(?:count|types?|ur[il]|endpoint|limit|budget|names?|file|path|dir|ttl|expiry|expires|expires_?in|expiration
          |length|len|size|methods?|polic(?:y|ies)|mode|scheme|env|ref|source|header|hint|usage|format|version|required
          |bytes|supported)$
      | (?:progress|page|continuation|cancel|cancellation|sync)[-_.]?token$
      | (?:public|primary|foreign|cache|server|sort|partition|idempotency|host|config|object|unique|index|routing)
        [-_.]key$""",
    re.VERBOSE,
)

_CREDENTIALS_TO_LINE_END = re.compile(r"(?:digest|aws4|hmac|signature|hawk|mac)[\w-]*[ \t][^\r\n]*+", re.IGNORECASE)
_CREDENTIALS = re.compile(r"[A-Za-z][\w-]{1,30}[ \t]++[^\s\"'<>,;]++")
_COOKIES = re.compile(r"[^\r\n\"']++")
_QUOTE = re.compile(r"[bBrRuUfF$@]{0,2}(?P<quote>\\{0,8}[\"'`])")
_TUPLE = re.compile(r"\([bBuU]?\\{0,8}[\"']$")
_BRACKET = re.compile(r"[\[\]{}]")
_PLAIN = re.compile(r"(?:[^\s\"'&<>`,;]|[,;](?=[^\s\"'&<>`,;]))++")
# What prose says of a secret (`token: expired`); no secret.
_HARMLESS_VALUE = re.compile(
    r"""(?:an?|and|cannot|could|denied|empty|expired|failed|false|for|from|has|in|invalid|is|malformed|missing|must|needed
          |needs|nil|no|none|not|null|of|or|refused|rejected|required|revoked|the|to|true|unauthorized|unavailable
          |undefined|unknown|unset|unsupported|was|with|wrong|yes)[.,;:!?)]*+
      | \$\{[A-Za-z_]\w*\}""",
    re.VERBOSE | re.IGNORECASE,
)

_SUSPICIOUS = re.compile(
    r"""[=:>%]|----|(?<![\w.-])-|["'],|bearer|basic|eyJ|A[KSBCRIGN][IOCDP]A|gh[opsur]_|github_pat_|gl[a-z]{2,6}-|sk-|xox[a-z]-
      |xapp-|[srp]k_(?:live|test)_|whsec_|AIza|ya29\.|GOCSPX-|npm_|pypi-|hf_|SG\.|dop_v1_|dapi|hvs\.|shp[acps][ats]_|sbp_
      |lin_|ntn_|figd_|sntry|AGE-SECRET|hooks\.slack""",
    re.VERBOSE | re.IGNORECASE,
)


def suspicious(text: str) -> bool:
    """A cheap look: False means that `redact` would leave the text as it is, unless it is longer than the limit."""
    return _SUSPICIOUS.search(text) is not None


def redact(text: str, limit: int = LIMIT) -> str:
    """The text with what looks like a secret replaced by `[redacted]`, cut to `limit` characters.

    Idempotent: what comes out goes through unchanged. Errs towards masking too much.
    """
    for _ in range(_PASSES):
        text = _cut(text, limit)
        if not suspicious(text):
            return text
        before = text
        text = _mask_private_keys(text)
        for pattern in _USERINFO:
            text = pattern.sub(MASK, text)
        text = _mask_named(text)
        text = _SCHEME.sub(_mask_scheme, text)
        text = _KNOWN.sub(MASK, text)
        if text == before:
            return text
    # Masking that does not come to rest is text made to confuse it.
    return MASK


def redact_name(name: str, limit: int) -> str:
    """The same for the name of a tool or method, where `secrets:list` is a name and not a secret called `secrets`.

    Only tokens with a known beginning are masked.
    """
    return _cut(_KNOWN.sub(MASK, name), limit)


def _cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = text[: max(0, limit - len(_CUT))]
    # Half a secret may be too short to be recognised, so the last word goes where one can be told.
    last_word = re.search(r"(?<=\s)\S*+\Z", head[-512:])
    if last_word:
        head = head[: len(head) - len(last_word[0])].rstrip()
    return (head + _CUT)[:limit]


def _mask_private_keys(text: str) -> str:
    parts: list[str] = []
    place = 0
    orphan = _PRIVATE_END.search(text)
    begin = _PRIVATE_BEGIN.search(text)
    if orphan and (begin is None or orphan.start() < begin.start()):
        # The beginning was cut off, as it may be in the last lines of a server's stderr.
        parts.append(MASK)
        place = orphan.end()
        begin = _PRIVATE_BEGIN.search(text, place)
    while begin:
        end = _PRIVATE_END.search(text, begin.end())
        parts += (text[place : begin.start()], MASK)
        place = end.end() if end else len(text)
        begin = _PRIVATE_BEGIN.search(text, place)
    parts.append(text[place:])
    return "".join(parts)


def _mask_scheme(found: re.Match[str]) -> str:
    if found["scheme"].lower() == "basic" and not _LIKE_BASE64.search(found["value"]):
        return found[0]
    return found["scheme"] + found["space"] + MASK


def _mask_named(text: str) -> str:
    parts: list[str] = []
    place = 0
    for found in _NAME.finditer(text):
        # A name within a value that is masked already is not looked at.
        if found.start() < place or not _names_a_secret(found, text):
            continue
        start, end = _value(text, found.end(), found["name"].lower())
        if end > start and not _harmless(text[start:end]):
            parts += (text[place:start], MASK)
            place = end
    parts.append(text[place:])
    return "".join(parts)


def _names_a_secret(found: re.Match[str], text: str) -> bool:
    name = found["name"]
    before = text[found.start() - 1] if found.start() else ""
    option = name.startswith("-")
    separator = found["separator"]
    if separator.isspace() and not option:
        return False
    if separator == ">" and before != "<":
        return False
    # A pair of strings is a header in a tuple or an option in a list, or just a list of words.
    if "," in separator and not option and not _TUPLE.search(text[max(0, found.start() - 12) : found.start()]):
        return False
    lowered = name.lower().strip("-._")
    if _SECRET_NAME.search(lowered if not name.startswith("_") else "_" + lowered):
        return not _HARMLESS_NAME.search(lowered)
    return before in ("?", "&", "#", ";") and _QUERY_NAME.match(lowered) is not None


def _value(text: str, place: int, name: str) -> tuple[int, int]:
    """Where the value that begins at `place` stands, without its quotes."""
    opening = _QUOTE.match(text, place)
    if opening:
        return opening.end(), _closing(text, opening.end(), opening["quote"])
    if text.startswith(("[", "{"), place):
        end = _matching_bracket(text, place)
        rest = _PLAIN.match(text, end)
        # What follows the bracket at once is the value's too, but not the brackets around it.
        return place, end + len(rest[0].rstrip(")]}")) if rest else end
    found: re.Match[str] | None = None
    if "authori" in name:
        found = _CREDENTIALS_TO_LINE_END.match(text, place) or _CREDENTIALS.match(text, place)
        if found and _harmless(found[0].split(None, 1)[0]):
            found = None
    elif "cookie" in name:
        found = _COOKIES.match(text, place)
    found = found or _PLAIN.match(text, place)
    return (place, found.end()) if found else (place, place)


def _closing(text: str, place: int, quote: str) -> int:
    """Where the same quote comes again, escaped as deeply as before (inner ones are more so), or the text's end."""
    depth = len(quote) - 1
    mark = quote[-1]
    while True:
        at = text.find(mark, place)
        if at < 0:
            return len(text)
        slashes = 0
        while slashes <= depth and at - slashes - 1 >= 0 and text[at - slashes - 1] == "\\":
            slashes += 1
        if slashes == depth:
            return at - depth
        place = at + 1


def _matching_bracket(text: str, place: int) -> int:
    depth = 0
    for found in _BRACKET.finditer(text, place):
        depth += 1 if found[0] in "[{" else -1
        if depth == 0:
            return found.end()
    return len(text)


def _harmless(value: str) -> bool:
    return _HARMLESS_VALUE.fullmatch(value) is not None
