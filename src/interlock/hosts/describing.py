"""An adapter's facts in words, each with how it is known: what `interlock hosts show` prints and documentation is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

from interlock.hosts.adapter import Adapter, Blast, CallableNames, ChildEnv, Merge, Switch, Variables
from interlock.hosts.fact import EVIDENCE, Fact
from interlock.hosts.place import Place

T = TypeVar("T")

_MERGE: Mapping[Merge, str] = {
    "fields": "merged field by field, the higher scope's fields winning",
    "entry": "the higher scope's entry replaces the other whole",
    "loser-disabled": "the lower scope's entry is switched off",
    "both": "both are shown",
    "single": "there is only one file",
}
_TWICE: Mapping[Literal["last", "error"], str] = {"last": "the later counts", "error": "the file is refused"}
_BLAST: Mapping[Blast, str] = {"entry": "that entry alone", "file": "every entry of the file", "host": "the whole host"}
_OVERFLOW = {
    "hash": "cut, with a hash at the end", "middle": "cut in the middle", "cut": "cut off", "cut-number": "cut off, with a number "
    "where two meet", "dropped": "the tool is left out",
}  # fmt: skip
_CLASH = {
    "hash-both": "both get a hash", "first": "the first wins, the other is lost", "last": "the last wins, the other is lost",
    "number": "the later gets a number", "prefix": "both get the server's name before them", "later-skipped": "the later is left out",
    "one-lost": "one of them is lost",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Told:
    topic: str
    name: str
    value: str | None
    """None: not known."""
    evidence: str
    note: str = ""
    source: str = ""

    @property
    def how(self) -> tuple[str, ...]:
        """The evidence in words."""
        return tuple(EVIDENCE[letter] for letter in self.evidence)


def describe(adapter: Adapter) -> Iterator[Told]:
    for place in adapter.places:
        yield _place(place)
    takes = adapter.tolerance
    yield _yes("Files", "comments are taken", takes.comments)
    yield _yes("Files", "a comma after the last member is taken", takes.trailing_comma)
    yield _yes("Files", "a byte order mark is taken", takes.bom)
    yield _told("Files", "of a key that stands twice", takes.duplicate_keys, _TWICE)
    yield _told("Files", "a file that cannot be parsed takes down", takes.fault, _BLAST)
    yield _told("Files", "an entry that makes no sense takes down", takes.bad_entry, _BLAST)
    yield _told("Scopes", "one name in two scopes", adapter.merge, _MERGE)
    yield _text("Scopes", "what keeps a right entry from running", adapter.gates)
    yield from _switch(adapter)
    yield _made("Starting", "transports", adapter.transports, lambda value: ", ".join(sorted(value)))
    yield _made("Starting", "the environment of a server", adapter.child_env, _env)
    yield _made("Starting", "variables", adapter.variables, _variables)
    yield _yes("Starting", "a leading `~` is filled in", adapter.expands_home)
    yield _text("Starting", "time limits", adapter.timeouts)
    yield _text("Starting", "a change takes effect", adapter.reload)
    yield _text("Names", "keys that really start", adapter.server_names)
    if adapter.reserved:
        yield Told("Names", "reserved", ", ".join(sorted(adapter.reserved)), adapter.server_names.evidence)
    yield _made("Names", "what the model is given", adapter.names, _names)
    yield _text("Tools", "lists of tools", adapter.tool_lists)
    yield _text("Tools", "approvals", adapter.approvals)
    yield _text("Tools", "length of a result", adapter.output_cap)
    yield _yes("Writing", "it writes its file from memory, so it must be closed first", adapter.closed)
    for name, fact in adapter.more.items():
        yield _text("More", name, fact)
    for oracle in adapter.oracles:
        what = "starts the servers" if oracle.live else "reads files only"
        yield Told("Asking it", f"`{' '.join(oracle.command)}`", f"{oracle.gives}; {what}", oracle.evidence)


def _place(place: Place) -> Told:
    name = f"{place.scope}: {place.shown}"
    fact = place.known
    value = None if fact.value is None else ("read" if fact.value else "not read")
    note = fact.note or (f"instead: {place.instead}" if place.instead and fact.value is False else "")
    if place.exclusive:
        note = f"where it exists, nothing else counts. {note}".strip()
    return Told("Places", name, value, fact.evidence, note, fact.source)


def _switch(adapter: Adapter) -> Iterator[Told]:
    def words(switch: Switch) -> str:
        off = "false" if switch.field == "enabled" else "true"
        return f"`{switch.field}: {off}`" + ("" if switch.default_on else "; without the field it is off")

    fact = adapter.switch
    if fact.value is None and adapter.no_switch:
        yield Told(
            "Scopes",
            "an entry is switched off by",
            f"no field{'' if adapter.no_switch_evidence else ' that is known'}: {adapter.no_switch.removeprefix('Or ')}",
            adapter.no_switch_evidence or fact.evidence,
            "" if adapter.no_switch_evidence else fact.note,
            fact.source,
        )
    else:
        yield _made("Scopes", "an entry is switched off by", fact, words)


def _env(given: ChildEnv) -> str:
    if given.kind == "all":
        return "all of the host's own variables"
    names = ", ".join(given.names)
    return (
        f"all but those named like {names}" if given.kind == "redacted" else f"only {names}, and what the entry names"
    )


def _variables(knows: Variables) -> str:
    if not knows.forms:
        return "none are filled in"
    where = f" in {', '.join(sorted(knows.fields))}" if knows.fields else ""
    missing = {"literal": "stays as it is", "empty": "becomes empty", None: ""}[knows.missing]
    return f"{' '.join(knows.forms)}{where}" + (f"; one that is not set {missing}" if missing else "")


def _names(rule: CallableNames) -> str:
    if rule.announced:
        form = f"{rule.form}, where the server's part is what it calls itself"
    elif rule.bare:
        form = f"the tool's own name; {rule.form} where two meet"
    else:
        form = rule.form
    parts = [form, f"keeps [{rule.keep}], else `{rule.replacement}`"]
    if rule.lower is not None:
        parts.append("lower case" if rule.lower == "all" else "the server's part in lower case")
    if rule.limit is not None:
        parts.append(f"at most {rule.limit} characters")
    if rule.overflow is not None:
        parts.append(f"longer: {_OVERFLOW[rule.overflow]}")
    if rule.clash is not None:
        parts.append(f"two alike: {_CLASH[rule.clash]}")
    return "; ".join(parts)


def _yes(topic: str, name: str, fact: Fact[bool]) -> Told:
    return _told(topic, name, fact, {True: "yes", False: "no"})


def _told(topic: str, name: str, fact: Fact[T], words: Mapping[T, str]) -> Told:
    value = fact.value
    said = None if value is None else words.get(value, str(value))
    return Told(topic, name, said, fact.evidence, fact.note, fact.source)


def _text(topic: str, name: str, fact: Fact[str]) -> Told:
    return Told(topic, name, fact.value, fact.evidence, fact.note, fact.source)


def _made(topic: str, name: str, fact: Fact[T], words: Callable[[T], str]) -> Told:
    said = None if fact.value is None else words(fact.value)
    return Told(topic, name, said, fact.evidence, fact.note, fact.source)
