"""What most adapters need alike: reading fields of a raw entry with the right complaint, and writing references."""

from __future__ import annotations

import re
from collections.abc import Mapping

from interlock.hosts.adapter import Form
from interlock.hosts.reading import BadEntry
from interlock.hosts.writing import Json, Loss
from interlock.manifest.config import EnvValue, HeaderValue, HttpTransport, StdioTransport

# Reading


def text(raw: Mapping[str, object], name: str) -> str | None:
    """Raises BadEntry where it is there and is no text."""
    value = raw.get(name)
    if value is None or isinstance(value, str):
        return value
    raise BadEntry(f"`{name}` is not a text", name)


def texts(raw: Mapping[str, object], name: str) -> tuple[str, ...]:
    """A list of texts; a number in it is taken as text. Raises BadEntry."""
    value = raw.get(name)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise BadEntry(f"`{name}` is not a list", name)
    if not all(isinstance(each, (str, int, float)) for each in value):
        raise BadEntry(f"`{name}` holds something that is no text", name)
    return tuple(str(each) for each in value)


def table(raw: Mapping[str, object], name: str) -> dict[str, str]:
    """A table of texts; numbers and flags are taken as text, null members are left out. Raises BadEntry."""
    value = raw.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadEntry(f"`{name}` is not a table", name)
    found: dict[str, str] = {}
    for key, each in value.items():
        if isinstance(each, bool):
            found[str(key)] = "true" if each else "false"
        elif isinstance(each, (str, int, float)):
            found[str(key)] = str(each)
        elif each is not None:
            raise BadEntry(f"`{name}.{key}` is not a text", f"{name}.{key}")
    return found


def address(raw: Mapping[str, object], name: str = "url") -> str | None:
    """A text that begins as a URL does. For hosts that check it before they fill in variables. Raises BadEntry."""
    value = text(raw, name)
    if value is not None and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:(?!//(?:\Z|[^/?#]*[\s{}<>^|`]))", value):
        raise BadEntry(f"`{name}` is no address", name, "Write it whole, from `https://` on.")
    return value


def only_texts(raw: Mapping[str, object], name: str, todo: str) -> tuple[str, ...] | None:
    """As `texts`, for hosts that take nothing else in a list; None where it is not there. Raises BadEntry."""
    value = raw.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadEntry(f"`{name}` is not a list of texts", name, todo)
    return tuple(value)


def table_of_texts(raw: Mapping[str, object], name: str, todo: str) -> dict[str, str]:
    """As `table`, for hosts that take nothing else in a table. Raises BadEntry."""
    value = raw.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadEntry(f"`{name}` is not a table", name, todo)
    for key, each in value.items():
        if not isinstance(each, str):
            raise BadEntry(f"`{name}.{key}` is not a text", f"{name}.{key}", f"Put it into quotes. {todo}")
    return dict(value)


def flag(raw: Mapping[str, object], name: str, default: bool) -> bool:
    """Raises BadEntry."""
    value = raw.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise BadEntry(f"`{name}` is neither true nor false", name)
    return value


def seconds(raw: Mapping[str, object], name: str, unit: float = 1.0) -> float | None:
    """`unit` is how many seconds one of it is (0.001 for milliseconds). Raises BadEntry."""
    value = raw.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise BadEntry(f"`{name}` is not a number", name)
    return value * unit


# Writing


def reference(form: Form, name: str) -> str:
    """A variable in the host's own spelling."""
    return form.replace("V:-d", name).replace("V", name)


def env_texts(values: tuple[EnvValue, ...], form: Form | None) -> tuple[dict[str, str], list[Loss]]:
    """`env` of a child: literals, and references in this form. None: the host has none, so each reference is a loss."""
    return _written(values, form, "transports.stdio.env")


def header_texts(values: tuple[HeaderValue, ...], form: Form | None) -> tuple[dict[str, str], list[Loss]]:
    """As env_texts, for HTTP headers."""
    return _written(values, form, "transports.http.headers")


def _written(
    values: tuple[EnvValue, ...] | tuple[HeaderValue, ...], form: Form | None, path: str
) -> tuple[dict[str, str], list[Loss]]:
    found: dict[str, str] = {}
    losses: list[Loss] = []
    for value in values:
        prefix = value.prefix if isinstance(value, HeaderValue) else ""
        if value.file is not None:
            losses.append(Loss(f"{path}.{value.name}", "this host reads no value from a file", weakens=True))
        elif value.source is None:
            found[value.name] = value.literal or ""
        elif form is None:
            losses.append(Loss(f"{path}.{value.name}", "this host fills in no variables", weakens=True))
        else:
            found[value.name] = prefix + reference(form, value.source)
    return found, losses


def endpoint(transport: HttpTransport, form: Form | None) -> tuple[str | None, list[Loss]]:
    """The URL, or a reference to the variable that holds it."""
    if transport.endpoint is not None:
        return transport.endpoint, []
    if form is None or transport.endpoint_env is None:
        return None, [Loss("transports.http.endpointEnv", "this host fills in no variable in a URL", weakens=True)]
    return reference(form, transport.endpoint_env), []


def words(transport: StdioTransport) -> tuple[str, list[Json]]:
    """Program and arguments."""
    return transport.command[0], list(transport.command[1:])
