"""The random values of one authorization request: PKCE with S256 (RFC 7636) and `state`."""

from __future__ import annotations

import base64
import hashlib
import secrets


def new_verifier() -> str:
    """86 characters, 512 random bits (RFC 7636 section 4.1 allows 43 to 128 characters)."""
    return secrets.token_urlsafe(64)


def challenge_of(verifier: str) -> str:
    """The S256 challenge of a verifier (RFC 7636 section 4.2)."""
    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii")


def new_state() -> str:
    """43 characters, 256 random bits."""
    return secrets.token_urlsafe(32)
