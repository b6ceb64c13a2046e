"""Grants as the authorization server keeps them: families of tokens, rotation, and what the reuse of a spent token does.

RFC 9700, section 4.14: a refresh token is used once; a spent one that comes back means that two parties hold the family,
so the family ends.
"""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import dataclass, field

from interlock.lab.auth.behaviour import Behaviour
from interlock.lab.auth.jwt import Signer
from interlock.lab.auth.truth import Truth
from interlock.lab.auth.verifier import Holder
from interlock.lab.jsonrpc import JsonObject


class OAuthError(Exception):
    """An error to be answered as in RFC 6749, section 5.2."""

    def __init__(self, error: str, description: str = "", status: int = 400) -> None:
        super().__init__(error)
        self.error = error
        self.description = description
        self.status = status

    def body(self) -> JsonObject:
        body: JsonObject = {"error": self.error}
        if self.description:
            body["error_description"] = self.description
        return body


@dataclass(slots=True)
class Family:
    """Everything that came of one consent."""

    client_id: str
    scope: tuple[str, ...]
    resource: str | None
    refreshable: bool
    revoked: bool = False
    last_spent: str | None = None


@dataclass(slots=True)
class AccessToken:
    family: Family
    audience: str | None
    scope: tuple[str, ...]
    not_before: float
    expires_at: float
    revoked: bool = False


@dataclass(slots=True)
class RefreshToken:
    family: Family
    not_before: float
    expires_at: float | None
    spent_at: float | None = None
    answer: JsonObject = field(default_factory=dict)
    """What it was exchanged for."""


class Families:
    """All tokens of one authorization server. Times on the servers' clock (`now`)."""

    def __init__(self, behaviour: Behaviour, truth: Truth, issuer: str, resource: str) -> None:
        self._behaviour = behaviour
        self._truth = truth
        self._issuer = issuer
        self._resource = resource
        self._signer = Signer()
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    def now(self) -> float:
        return time.time() + self._behaviour.clock

    def open(
        self, client_id: str, scope: tuple[str, ...], resource: str | None, *, refreshable: bool = True
    ) -> JsonObject:
        """A new family; the answer of the token endpoint."""
        return self._issue(Family(client_id, scope, resource, refreshable))

    def exchange(self, token: str, client_id: str, scope: tuple[str, ...] | None, resource: str | None) -> JsonObject:
        """Refresh (RFC 6749, section 6). Raises OAuthError."""
        behaviour, counts = self._behaviour, self._truth.counts
        known = self.refresh.get(token)
        if known is None or known.family.client_id != client_id:
            raise OAuthError("invalid_grant", "unknown refresh token")
        now, family = self.now(), known.family
        if family.revoked:
            counts["dead_family"] += 1
            raise OAuthError("invalid_grant", "grant revoked")
        if known.spent_at is not None:
            if token == family.last_spent and now - known.spent_at <= behaviour.leeway:
                counts["refreshes_repeated"] += 1
                return known.answer
            counts["reuse_detected"] += 1
            if behaviour.family_kill:
                self.kill(family, "families_revoked")
            raise OAuthError("invalid_grant", "refresh token was used before")
        if now < known.not_before:
            counts["early_refreshes"] += 1
            raise OAuthError(behaviour.early_error, "refresh token is not valid yet")
        if known.expires_at is not None and now >= known.expires_at:
            raise OAuthError("invalid_grant", "refresh token has expired")
        if scope is not None and not set(scope) <= set(family.scope):
            raise OAuthError("invalid_scope", "more than was granted")
        if resource is not None and family.resource is not None and resource != family.resource:
            raise OAuthError("invalid_target", "not the resource that was granted")
        if behaviour.rotation:
            known.spent_at, family.last_spent = now, token
        counts["refreshes_ok"] += 1
        known.answer = self._issue(family, scope, None if behaviour.rotation else token)
        return known.answer

    def kill(self, family: Family, counted_as: str) -> None:
        """End a family and all its tokens."""
        if not family.revoked:
            family.revoked = True
            self._truth.counts[counted_as] += 1
        for token in self.access.values():
            if token.family is family:
                token.revoked = True

    def revoke(self, token: str) -> None:
        """RFC 7009: a refresh token takes its family along, an access token goes alone."""
        if token in self.refresh:
            self.kill(self.refresh[token].family, "families_ended")
        elif token in self.access:
            self.access[token].revoked = True

    def revoke_access(self) -> None:
        """Every access token so far is worth nothing from now on, though its `exp` lies ahead; families stay."""
        for token in self.access.values():
            token.revoked = True

    def kill_all(self) -> None:
        """End every family."""
        for known in self.refresh.values():
            self.kill(known.family, "families_ended")
        self.revoke_access()

    def refusal(self, token: str) -> str | None:
        """Why the resource server does not take an access token; None: it does."""
        known = self.access.get(token)
        if known is None:
            return "unknown token"
        if known.revoked or self._behaviour.refuse_access:
            self._truth.counts["early_401"] += self.now() < known.expires_at
            return "token was revoked"
        if self.now() >= known.expires_at:
            return "token has expired"
        if self.now() < known.not_before:
            return "token is not valid yet"
        if known.audience is not None and known.audience != self.audience():
            return "token is for another audience"
        return None

    def holder(self, token: str) -> Holder | None:
        """Who bears an access token of ours."""
        known = self.access.get(token)
        return None if known is None else Holder(known.family.client_id, known.scope, known.audience)

    def audience(self) -> str:
        """What the resource server expects as `aud`."""
        return self._behaviour.resource or self._resource

    def _issue(
        self, family: Family, scope: tuple[str, ...] | None = None, same_refresh: str | None = None
    ) -> JsonObject:
        behaviour, now = self._behaviour, self.now()
        granted = family.scope if scope is None else scope
        audience = family.resource if behaviour.audience_from_request else self.audience()
        if behaviour.wrong_audience is not None:
            audience = behaviour.wrong_audience
        readable = behaviour.access_format == "jwt"
        begins, ends = _times(now, behaviour.access_nbf, behaviour.access_lifetime, readable)
        access = AccessToken(family, audience, granted, begins, math.inf if ends is None else ends)
        claims: JsonObject = {"sub": "user", "client_id": family.client_id, "scope": " ".join(granted)}
        if audience is not None:
            claims["aud"] = audience
        if behaviour.access_nbf is not None:
            claims["nbf"] = access.not_before
        token = self._token(readable, "at+jwt", claims | {"exp": access.expires_at}, now)
        self.access[token] = access
        answer: JsonObject = {"access_token": token, "token_type": behaviour.token_type}
        if behaviour.expires_in != "absent":
            lifetime = round(
                behaviour.access_lifetime if behaviour.expires_in_lie is None else behaviour.expires_in_lie
            )
            answer["expires_in"] = str(lifetime) if behaviour.expires_in == "string" else lifetime
        if behaviour.scope_in_answer:
            answer["scope"] = " ".join(granted)
        if family.refreshable and behaviour.issue_refresh:
            answer["refresh_token"] = same_refresh or self._refresh_token(family, now)
        return answer

    def _refresh_token(self, family: Family, now: float) -> str:
        behaviour = self._behaviour
        readable = behaviour.refresh_format == "jwt"
        known = RefreshToken(family, *_times(now, behaviour.refresh_nbf, behaviour.refresh_lifetime, readable))
        claims: JsonObject = {"client_id": family.client_id}
        if known.expires_at is not None:
            claims["exp"] = known.expires_at
        if behaviour.refresh_nbf is not None:
            claims["nbf"] = known.not_before
        token = self._token(readable, "rt+jwt", claims, now)
        self.refresh[token] = known
        return token

    def _token(self, readable: bool, kind: str, claims: JsonObject, now: float) -> str:
        unique = secrets.token_urlsafe(24)
        if not readable:
            return unique
        return self._signer.sign({"iss": self._issuer, "iat": int(now), "jti": unique} | claims, kind)


def _times(now: float, nbf: float | None, lifetime: float | None, readable: bool) -> tuple[float, float | None]:
    """When a token begins and ends; in whole seconds where a claim says so, so that claim and judgement agree."""
    begins, ends = now + (nbf or 0), None if lifetime is None else now + lifetime
    return (math.floor(begins), None if ends is None else math.ceil(ends)) if readable else (begins, ends)
