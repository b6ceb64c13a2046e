"""JSON-RPC error codes: those of the protocol, and Interlock's own catalogue, one entry an error that it makes itself.

Interlock's own codes lie outside -32768..-32000 (MCP 2026-07-28, basic/index, Error Codes) and are the same in both eras.
"""

from __future__ import annotations

from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
LEGACY_RESOURCE_NOT_FOUND: Final = -32002
LEGACY_URL_ELICITATION_REQUIRED: Final = -32042
HEADER_MISMATCH: Final = -32020
MISSING_CLIENT_CAPABILITY: Final = -32021
UNSUPPORTED_VERSION: Final = -32022

MODERN_ERRORS: Final = frozenset({HEADER_MISMATCH, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_VERSION})
"""Codes that only a modern server sends: they settle a server's era."""

CATALOG: Final[dict[str, tuple[int, str]]] = {
    # slug: (code, title). Each slug has its entry in docs/errors.md. Codes are never reused.
    "protocol": (INVALID_REQUEST, "the message breaks the protocol"),
    "unknown-name": (INVALID_PARAMS, "no such tool, prompt or resource here"),
    "invalid-cursor": (INVALID_PARAMS, "the cursor is not one of ours"),
    "invalid-state": (INVALID_PARAMS, "requestState was changed, expired, or belongs to another request"),
    "unknown-method": (METHOD_NOT_FOUND, "no server here takes this method"),
    "needs-approval": (41001, "a person has to approve this call first"),
    "declined": (41003, "a person declined this call"),
    "server-disabled": (41002, "the server is switched off or may not run"),
    "command-not-found": (41101, "the server's command was not found"),
    "cwd-missing": (41102, "the server's working directory does not exist"),
    "env-missing": (41103, "an environment variable that the server needs is not set"),
    "spawn-failed": (41104, "the server could not be started"),
    "server-exited": (41105, "the server's process ended"),
    "crash-loop": (41106, "the server keeps crashing and is left alone for a while"),
    "startup-timeout": (41107, "the server did not become ready in time"),
    "handshake-failed": (41108, "the server refused the protocol handshake"),
    "unreachable": (41201, "the server could not be reached"),
    "tls-failed": (41202, "the TLS connection could not be made"),
    "unauthorized": (41203, "the server wants a credential"),
    "forbidden": (41204, "the server refused this credential"),
    "rate-limited": (41205, "the server asks to wait"),
    "http-status": (41206, "the server answered with an HTTP error"),
    "connection-lost": (41207, "the connection ended before the answer came"),
    "bad-answer": (41208, "the server's answer is not valid MCP"),
    "too-large": (41209, "the message is larger than the limit"),
    "login-needed": (41211, "a person has to sign in first"),
    "login-unfinished": (41212, "a sign-in was offered and not finished"),
    "grant-refused": (41213, "the authorization server refused to renew the grant, for now"),
    "auth-unreachable": (41214, "the authorization server could not be asked"),
    "auth-misconfigured": (41215, "authorization cannot work as it is set up"),
    "token-rejected": (41216, "the server rejected the token"),
    "insufficient-scope": (41217, "the grant lacks a scope that this call needs"),
    "port-taken": (41218, "another program holds the sign-in port"),
    "binding-lost": (41219, "the session was rebuilt and does not know its caller"),
    "timeout": (41301, "no answer came before the deadline"),
    "cancelled": (41302, "the call was cancelled"),
    "too-many-parked": (41303, "too many calls wait for an answer from a person"),
    "park-expired": (41304, "the question was not answered in time"),
    "too-many-rounds": (41305, "the server kept asking for input"),
    "question-refused": (41306, "the client did not answer the server's question"),
    "draining": (41401, "Interlock is shutting down"),
    "internal": (41500, "a fault in Interlock itself"),
}


def code_of(slug: str) -> int:
    """The JSON-RPC code of one of Interlock's own errors."""
    return CATALOG[slug][0]
