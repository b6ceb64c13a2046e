"""A route trace made fit to be stored or shown: what clients and servers wrote in it is redacted and cut.

Most texts are the pipeline's own few sentences and come again and again, so a text that was found clean is remembered
and the next look at it is one set lookup.
"""

from __future__ import annotations

from msgspec.structs import replace

from interlock.model.trace import Mark, RouteTrace

TEXT_LIMIT = 1000
"""Characters kept of a text. Names and methods come from clients and servers and may be as long as a message."""

_REMEMBERED = 4096
_REMEMBERED_LENGTH = 200


class Cleaner:
    """`clean` gives back the trace itself where there is nothing to mask, else a copy. Not for several threads at once.

    Principal, host, server, rule and decisions are Interlock's own words or the person's configuration, and stay.
    """

    def __init__(self) -> None:
        # Apart, because what passes as a name need not pass as a text.
        self._known_texts: set[str | None] = {None}
        self._known_names: set[str | None] = {None}

    def clean(self, trace: RouteTrace) -> RouteTrace:
        texts: list[str | None] = [mark.reason for mark in trace.marks]
        texts += (trace.client, trace.slug)
        names = self._known_names
        if trace.name in names and trace.method in names and self._known_texts.issuperset(texts):
            return trace
        for known in (self._known_texts, names):
            if len(known) >= _REMEMBERED:
                # A flood of new ones: begin again, rather than keep track of which was used last.
                known.intersection_update({None})
        marks = [self._mark(mark) for mark in trace.marks]
        name = None if trace.name is None else self._name(trace.name)
        method = self._name(trace.method)
        client = self._text(trace.client)
        slug = None if trace.slug is None else self._text(trace.slug)
        if (name, method, client, slug, marks) == (trace.name, trace.method, trace.client, trace.slug, trace.marks):
            return trace
        return replace(trace, name=name, method=method, client=client, slug=slug, marks=marks)

    def _mark(self, mark: Mark) -> Mark:
        reason = self._text(mark.reason)
        return mark if reason == mark.reason else replace(mark, reason=reason)

    def _text(self, text: str) -> str:
        if text in self._known_texts:
            return text
        # Imported where it is first needed: its patterns take milliseconds to compile, and start-up is short.
        from interlock.journal.redact import redact, suspicious

        clean = len(text) <= TEXT_LIMIT and not suspicious(text)
        cleaned = text if clean else redact(text, TEXT_LIMIT)
        if cleaned == text and len(text) <= _REMEMBERED_LENGTH:
            self._known_texts.add(text)
        return cleaned

    def _name(self, name: str) -> str:
        if name in self._known_names:
            return name
        from interlock.journal.redact import redact_name

        cleaned = redact_name(name, TEXT_LIMIT)
        if cleaned == name and len(name) <= _REMEMBERED_LENGTH:
            self._known_names.add(name)
        return cleaned
