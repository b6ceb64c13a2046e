"""Route traces to database rows and back: a few columns to look up by, and the rest as one JSON object.

JSON with field names, because a later release adds fields: an older record then has their defaults, and no migration is
needed. What a field holds by default is left out. Marks are arrays, being most of a record's bytes.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import fields, replace

from interlock.model.trace import Mark, RouteTrace
from interlock.store.interface import CallRow

UNREADABLE = "unreadable"
"""Method of a trace whose record could not be understood; its id, time, server and status are right all the same."""

_INT64_MAX = 2**63 - 1


class _Record(msgspec.Struct, omit_defaults=True):
    """RouteTrace without the columns of CallRow."""

    method: str
    principal: str
    client: str
    host: str | None = None
    name: str | None = None
    verdict: str | None = None
    slug: str | None = None
    era_down: str = ""
    era_up: str = ""
    bytes_in: int = 0
    bytes_out: int = 0
    micros: int = 0
    marks: list[Mark] = []


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Record).decode


def to_row(trace: RouteTrace) -> CallRow:
    """The trace as a row. It is not changed and not kept. Raises ValueError for what no row can hold."""
    try:
        try:
            return _row(trace)
        except UnicodeEncodeError:
            # A lone surrogate: JSON can carry one (`"\\ud800"`), UTF-8 cannot.
            return _row(_without_surrogates(trace))
    except (msgspec.MsgspecError, AttributeError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"the route of call {trace.id!r} cannot be stored: {error}") from error


def _row(trace: RouteTrace) -> CallRow:
    if not -_INT64_MAX <= trace.at_ns <= _INT64_MAX:
        raise OverflowError("its time is out of range")
    for mark in trace.marks:
        if mark.__class__ is not Mark:
            raise TypeError("a mark is no mark")
    server = trace.server
    if not (trace.id.isascii() and trace.status.isascii() and (server is None or server.isascii())):
        f"{trace.id}{trace.status}{server}".encode()
    record = _encode(
        _Record(
            trace.method,
            trace.principal,
            trace.client,
            trace.host,
            trace.name,
            trace.verdict,
            trace.slug,
            trace.era_down,
            trace.era_up,
            trace.bytes_in,
            trace.bytes_out,
            trace.micros,
            trace.marks,
        )
    )
    return CallRow(trace.id, trace.at_ns, trace.server, trace.status, record)


def _without_surrogates(trace: RouteTrace) -> RouteTrace:
    def repaired(holder: Mark | RouteTrace) -> dict[str, str]:
        texts = ((field.name, getattr(holder, field.name)) for field in fields(holder))
        return {name: text.encode("utf-8", "replace").decode() for name, text in texts if type(text) is str}

    marks = [replace(mark, **repaired(mark)) for mark in trace.marks]
    return replace(trace, marks=marks, **repaired(trace))


def from_row(row: CallRow) -> RouteTrace:
    """The trace that a row was made of. A record that is not understood gives one of method `UNREADABLE`."""
    try:
        record = _decode(row.record)
    except (msgspec.MsgspecError, ValueError):
        return RouteTrace(row.id, row.at_ns, UNREADABLE, "", "", None, server=row.server, status=row.status)
    return RouteTrace(
        id=row.id,
        at_ns=row.at_ns,
        method=record.method,
        principal=record.principal,
        client=record.client,
        host=record.host,
        server=row.server,
        name=record.name,
        status=row.status,
        verdict=record.verdict,
        slug=record.slug,
        era_down=record.era_down,
        era_up=record.era_up,
        bytes_in=record.bytes_in,
        bytes_out=record.bytes_out,
        micros=record.micros,
        marks=record.marks,
    )
