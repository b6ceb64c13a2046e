"""What an MCP endpoint asks of a token, and the challenge it answers with where there is none (RFC 6750, RFC 9728)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal


def bearer_of(headers: Mapping[str, str]) -> str | None:
    """The token of `Authorization: Bearer`."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


def challenge(
    form: Literal["full", "bare", "spaced", "double", "absent"],
    metadata_url: str | None,
    params: Sequence[tuple[str, str]],
) -> dict[str, str]:
    """The `WWW-Authenticate` header of a 401 or 403. `double` names two metadata documents, the first of which is gone."""
    if form == "absent":
        return {}
    said = list(params)
    if metadata_url is not None and form != "bare":
        if form == "double":
            said.append(("resource_metadata", f"{metadata_url}/gone"))
        said.append(("resource_metadata", metadata_url))
    equals = " = " if form == "spaced" else "="
    value = ", ".join(f"{name}{equals}{_quoted(text)}" for name, text in said)
    return {"www-authenticate": f"Bearer {value}".rstrip()}


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
