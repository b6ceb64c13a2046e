"""Tokens that can be read: JSON Web Tokens signed with a key made at start (RFC 7519, HS256 of RFC 7518)."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets

from interlock.lab.jsonrpc import JsonObject


class Signer:
    """Signs with its own random key, which nobody else needs: the servers look tokens up."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def sign(self, claims: JsonObject, kind: str) -> str:
        """`kind` is the header's `typ`, as `at+jwt` (RFC 9068)."""
        signed = f"{_part({'alg': 'HS256', 'typ': kind})}.{_part(claims)}"
        return f"{signed}.{_base64(hmac.digest(self._key, signed.encode(), hashlib.sha256))}"


def _part(value: JsonObject) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
