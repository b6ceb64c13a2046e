"""Sealed `requestState`: state that travels through the client and cannot be changed or moved to another request."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from typing import cast

from interlock.lab.jsonrpc import INVALID_PARAMS, JsonObject, RpcError, as_object

# A fixture's key is fixed, so that state survives a restart as it would with a key from a secret store.
_KEY = b"interlock lab fixture: not a secret, protects nothing"
LIFETIME_SECONDS = 600


def seal(state: JsonObject, binding: str) -> str:
    """`state` as an opaque token for one request, named by `binding` (method and target)."""
    payload = json.dumps({"state": state, "for": binding, "until": time.time() + LIFETIME_SECONDS}).encode()
    mac = hmac.digest(_KEY, payload, hashlib.sha256)
    return f"{_text(payload)}.{_text(mac)}"


def unseal(token: str, binding: str) -> JsonObject:
    """The state in `token`; RpcError -32602 where it was changed, has lapsed, or belongs to another request."""
    body, _, mac = token.partition(".")
    try:
        payload = _bytes(body)
        genuine = hmac.compare_digest(_bytes(mac), hmac.digest(_KEY, payload, hashlib.sha256))
    except (binascii.Error, ValueError):
        genuine = False
    if not genuine:
        raise RpcError(INVALID_PARAMS, "requestState failed its integrity check", status=400)
    content = cast("JsonObject", json.loads(payload))
    if content["for"] != binding or not isinstance(content["until"], float) or content["until"] < time.time():
        raise RpcError(INVALID_PARAMS, "requestState does not belong to this request, or has lapsed", status=400)
    return as_object(content["state"], "state")


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode()


def _bytes(text: str) -> bytes:
    return base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
