"""How the scripted servers behave: every setting of the authorization server, the resource server and their lies.

All of it can be changed while they run, in process or through the control endpoint (control.py). Times are seconds.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Literal

Place = Literal["token", "register", "authorize", "device", "revoke", "metadata", "resource-metadata", "mcp", "call"]
"""Where something goes wrong. `mcp` is any request to the MCP endpoint, `call` a `tools/call` that holds a good token."""
Kind = Literal["status", "delay", "silent", "drop", "reset", "cut", "garbage"]
"""`drop` closes the connection, `reset` does so with a TCP reset, `cut` begins the answer and stops in the middle,
`garbage` answers 200 with a page of HTML, `silent` never answers."""
APPLIES = frozenset({"drop", "reset", "cut", "delay"})


@dataclass(slots=True)
class Mishap:
    """One thing that goes wrong at one place; the first that fits is taken."""

    at: Place
    kind: Kind
    only: tuple[str, ...] = ()
    """Grant types at `token`, tool names at `call`, methods at `mcp`; empty: all."""
    times: int | None = None
    """How often it still happens; None: until it is taken away."""
    chance: float = 1.0
    """How likely it is to happen to a request that fits (from the seeded dice of `Behaviour`)."""
    applied: bool | None = None
    """Whether the request takes effect first; None: yes for drop, reset, cut and delay, no for the others."""
    status: int = 503
    retry_after: float | None = None
    seconds: float = 1.0
    """Of `delay`."""
    error: str | None = None
    """At `token`: an OAuth error code in the body of `status`."""

    @property
    def takes_effect(self) -> bool:
        return self.kind in APPLIES if self.applied is None else self.applied


@dataclass(slots=True)
class Behaviour:
    """The settings, first those of honest servers."""

    # Clocks.
    clock: float = 0.0
    """By how much the servers' clock is ahead of this machine's: `Date`, `iat`, `exp`, `nbf` and every judgement."""
    as_date: float = 0.0
    """Added to the authorization server's `Date` header alone."""
    rs_date: float = 0.0
    """Added to the resource server's `Date` header alone."""
    date_header: Literal["imf", "absent", "rfc850", "asctime", "garbage"] = "imf"
    """How `Date` is written (RFC 9110, section 5.6.7)."""

    # Tokens.
    access_format: Literal["opaque", "jwt"] = "jwt"
    access_lifetime: float = 3600.0
    access_nbf: float | None = None
    """Seconds after issue before which an access token is not accepted."""
    expires_in: Literal["number", "string", "absent"] = "number"
    expires_in_lie: float | None = None
    """What `expires_in` says in place of the truth."""
    refresh_format: Literal["opaque", "jwt"] = "opaque"
    refresh_lifetime: float | None = None
    refresh_nbf: float | None = None
    """Seconds after issue before which a refresh token is refused as `early_error`."""
    early_error: str = "invalid_grant"
    issue_refresh: bool = True
    token_type: str = "Bearer"
    scope_in_answer: bool = True
    wrong_audience: str | None = None
    """The `aud` of access tokens in place of the resource; the resource server then refuses them."""
    audience_from_request: bool = True
    """False: `aud` is the resource server's URL even where the client sent no `resource`."""

    # Rotation.
    rotation: bool = True
    family_kill: bool = True
    """A spent refresh token revokes the family, access tokens included."""
    leeway: float = 0.0
    """So long after it was spent, the last spent token is answered again with the same pair."""

    # Refusals on command.
    refuse_refresh: str | None = None
    """An OAuth error code for every refresh; the tokens stay as they are."""
    refuse_description: str = "refused on command"
    refuse_access: bool = False
    """Every access token is refused as invalid, whatever it is."""
    refuse_personal: bool = False
    authorize_error: str | None = None
    """What /authorize answers in `auto`, as `access_denied`."""
    as_silent: bool = False
    rs_silent: bool = False
    mishaps: list[Mishap] = field(default_factory=list)

    # Authorization server.
    authorize: Literal["auto", "manual"] = "auto"
    """`auto` redirects at once, `manual` shows a page whose form the user posts."""
    pkce: Literal["S256", "plain", "absent"] = "S256"
    """What is advertised; a challenge that came is always checked."""
    iss_advertised: bool = True
    iss_sent: Literal["right", "wrong", "absent"] = "right"
    metadata: tuple[Literal["oauth", "oidc-inserted", "oidc-appended"], ...] = ("oauth",)
    """At which well-known paths the metadata answers; empty: nowhere."""
    metadata_issuer: str | None = None
    """What the document says its issuer is."""
    registration: bool = True
    refuse_redirect: Literal["none", "localhost", "all"] = "none"
    strict_application_type: bool = False
    """Refuse loopback redirect URIs of clients that do not say `native`, as OpenID Connect registration has it."""
    client_auth: Literal["none", "client_secret_post", "client_secret_basic"] = "none"
    """How clients that register themselves must authenticate."""
    secret_lifetime: float | None = None
    client_metadata_documents: bool = False
    as_scopes: tuple[str, ...] | None = None
    device: Literal["wait", "approve", "deny", "slow-down"] = "wait"
    """What a poll for a device code gets; `wait` until somebody approves at /device."""
    device_lifetime: float = 600.0
    device_interval: int | None = 1

    # Resource server.
    challenge: Literal["full", "bare", "spaced", "double", "mixed", "lines", "absent"] = "full"
    """`bare` names no metadata; `spaced`, `double` (two metadata documents), `mixed` (Basic and Bearer in one value) and
    `lines` (in two header lines) are odd but lawful; `absent`: a 401 without any challenge."""
    resource_metadata: Literal["path", "root", "absent"] = "path"
    resource: str | None = None
    """What the metadata says the resource is; None: the URL of the MCP endpoint."""
    authorization_servers: tuple[str, ...] | None = None
    scopes_supported: tuple[str, ...] | None = ("mcp",)
    challenge_scope: str | None = None
    tool_scopes: dict[str, str] = field(default_factory=dict)
    """Tool to the scopes that it needs; a token without them gets 403 insufficient_scope."""
    forbid: bool = False
    """403 without a challenge."""
    get_status: int | None = None
    """What GET on the MCP endpoint answers, with or without a token; None: what the era does."""
    get_before_auth: bool = False
    """GET is answered with `get_status` before the token is looked at."""
    seed: int = 0
    dice: random.Random = field(default_factory=lambda: random.Random(0))

    def take(self, place: Place, detail: str) -> Mishap | None:
        """The mishap for a request to `place`, counted down; None where nothing goes wrong."""
        for mishap in self.mishaps:
            if mishap.at != place or (mishap.only and detail not in mishap.only) or mishap.times == 0:
                continue
            if mishap.chance < 1 and self.dice.random() >= mishap.chance:
                continue
            if mishap.times is not None:
                mishap.times -= 1
            return mishap
        return None
