"""What an MCP endpoint asks of a token, and the challenge it answers with where there is none (RFC 6750, RFC 9728)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal


def bearer_of(headers: Mapping[str, str]) -> str | None:
    """The token of `Authorization: Bearer`."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" and token.strip() else None


Form = Literal["full", "bare", "spaced", "double", "mixed", "lines", "absent"]
OLD_GATE = 'Basic realm="the old gate, Bearer of keys"'
"""A challenge of another scheme, with a comma and a scheme's name where a careless parser trips (RFC 9110, section 11.6.1)."""


def challenge(form: Form, metadata_url: str | None, params: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The `WWW-Authenticate` header of a 401 or 403. `double` names two metadata documents, the first of which is gone."""
    if form == "absent":
        return {}
    said = list(params)
    if metadata_url is not None and form != "bare":
        if form == "double":
            said.append(("resource_metadata", f"{metadata_url}/gone"))
        said.append(("resource_metadata", metadata_url))
    equals = " = " if form == "spaced" else "="
    bearer = f"Bearer {', '.join(f'{name}{equals}{_quoted(text)}' for name, text in said)}".rstrip()
    if form == "mixed":
        return {"www-authenticate": f"{OLD_GATE}, {bearer}"}
    # Names differ in case alone, so that a mapping can hold two lines of one header.
    return (
        {"WWW-Authenticate": OLD_GATE, "www-authenticate": bearer} if form == "lines" else {"www-authenticate": bearer}
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
