"""Several hosts' entries of one server made one: a rule picks, and every difference is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from interlock.hosts import registry
from interlock.hosts.candidate import STRICT, Candidate, Note, Value, conflicts
from interlock.hosts.declaration import Spot
from interlock.hosts.entry import Approval
from interlock.hosts.masking import masked

_SCOPES = ("local", "project", "user", "system", "managed", "extension", "plugin")
_NOTHING = "(nothing)"


@dataclass(frozen=True, slots=True)
class Difference:
    """`values` are (host, where, what stands there); a secret is `****`. `taken` says what was picked and by which rule."""

    server: str
    field: str
    values: tuple[tuple[str, Spot, str], ...]
    taken: str


@dataclass(slots=True)
class Merged:
    """One server. `taken` is what becomes the manifest's entry; the first of `sources` gave most of it."""

    sources: list[Candidate]
    taken: Candidate
    differences: list[Difference] = field(default_factory=list)
    key: str = ""

    @property
    def notes(self) -> list[tuple[Candidate, Note]]:
        return [(source, note) for source in self.sources for note in source.notes]


def grouped(candidates: Sequence[Candidate], environ: Mapping[str, str]) -> list[list[Candidate]]:
    """Those that are one server together, the one that counts most first.

    Of one command with two values for the same variable in the same host, or under two names, there are two servers.
    """
    groups: list[list[Candidate]] = []
    for each in sorted(candidates, key=rank):
        for group in groups:
            if group[0].identity == each.identity and all(_alike(one, each, environ) for one in group):
                group.append(each)
                break
        else:
            groups.append([each])
    return groups


def rank(each: Candidate) -> tuple[int, int, int]:
    """Effective before others, the nearer scope, then the order of the hosts."""
    place = each.declaration
    host = registry.IDS.index(place.host) if place.host in registry.IDS else len(registry.IDS)
    runs = place.state == "effective" or place.decided_by.rule == "untrusted"
    return (0 if runs else 1, _SCOPES.index(place.scope), host)


def _alike(one: Candidate, other: Candidate, environ: Mapping[str, str]) -> bool:
    both = one.declaration.state == other.declaration.state == "effective"
    here = one.declaration.host == other.declaration.host and both
    if not conflicts(one, other, environ):
        # Two entries of one host that give the same program other variables are two on purpose.
        return not here or set(one.values) == set(other.values)
    return not here and one.name.lower() == other.name.lower()


def merged(group: Sequence[Candidate], environ: Mapping[str, str]) -> Merged:
    """The group as one, without a key yet."""
    work = _Merge(group, environ)
    return Merged(list(group), work.taken(), work.differences)


@dataclass(slots=True)
class _Merge:
    group: Sequence[Candidate]
    environ: Mapping[str, str]
    differences: list[Difference] = field(default_factory=list)

    def taken(self) -> Candidate:
        first = self.group[0]
        if len(self.group) == 1:
            return first
        self._differ("key", lambda each: each.name, f"{first.name}: of {_who(first)}")
        self._differ(
            "command", lambda each: _words(each), f"{_words(first)}: of {_who(first)}", when=first.kind == "stdio"
        )
        self._differ("transport", lambda each: each.kind, f"{first.kind}: of {_who(first)}")
        self._differ("url", _url, f"{_url(first)}: of {_who(first)}", when=first.kind != "stdio")
        return replace(
            first,
            wrapped=any(each.wrapped for each in self.group),
            endpoint=first.endpoint,
            values=self._values(),
            cwd=self._first("cwd", lambda each: each.cwd),
            enabled=self._enabled(),
            allow=self._allow(),
            deny=self._deny(),
            approvals=self._approvals(),
            startup=self._longest("startup timeout", lambda each: each.startup),
            call=self._longest("call timeout", lambda each: each.call),
            oauth=self._oauth(),
        )

    def _differ(self, name: str, get: Callable[[Candidate], str | None], taken: str, *, when: bool = True) -> None:
        shown = [masked(get(each) or _NOTHING) for each in self.group]
        if when and len(set(shown)) > 1:
            values = tuple(
                (each.declaration.host, each.declaration.spot, text)
                for each, text in zip(self.group, shown, strict=True)
            )
            self.differences.append(Difference("", name, values, masked(taken)))

    def _values(self) -> dict[str, Value]:
        """All names of all hosts; of one name a reference that is set before a secret that stands in a file."""
        table = "env" if self.group[0].kind == "stdio" else "headers"
        made: dict[str, Value] = {}
        for name in dict.fromkeys(name for each in self.group for name in each.values):
            given = [(each, each.values[name]) for each in self.group if name in each.values]
            holder, value = given[0]
            rule = f"of {_who(holder)}"
            if value.secret is not None:
                other = next(((each, one) for each, one in given if self._is_set(one)), None)
                if other is not None:
                    holder, value = other
                    rule = f"of {_who(holder)}, because a reference goes before a secret that stands in a file"
            made[name] = value
            if len(given) < len(self.group) or any(not one.same(value, self.environ) for _each, one in given):
                different = any(one.secret is not None and not one.same(value, self.environ) for _each, one in given)
                values = tuple(
                    (each.declaration.host, self._spot(each, name), self._shown(each, name, value, different))
                    for each in self.group
                )
                if len(given) < len(self.group) and not any(not one.same(value, self.environ) for _e, one in given):
                    rule = "the names of all hosts together"
                self.differences.append(Difference("", f"{table}.{name}", values, f"{value.shown()}: {rule}"))
        return made

    def _is_set(self, value: Value) -> bool:
        return value.file is not None or (value.source is not None and value.source in self.environ)

    def _spot(self, each: Candidate, name: str) -> Spot:
        value = each.values.get(name)
        return (value.spot if value is not None else None) or each.declaration.spot

    def _shown(self, each: Candidate, name: str, taken: Value, different: bool) -> str:
        value = each.values.get(name)
        if value is None:
            return _NOTHING
        if value.secret is not None and taken.secret is not None and different and not value.same(taken, self.environ):
            return f"{value.shown()} (another one)"
        return value.shown()

    def _first(self, name: str, get: Callable[[Candidate], str | None]) -> str | None:
        holder = next((each for each in self.group if get(each) is not None), None)
        value = get(holder) if holder is not None else None
        self._differ(name, get, f"{value}: of {_who(holder)}" if holder is not None else "")
        return value

    def _enabled(self) -> bool:
        enabled = any(each.enabled for each in self.group)
        self._differ("enabled", lambda each: str(each.enabled).lower(), "true: it runs in one of them")
        return enabled

    def _allow(self) -> tuple[str, ...] | None:
        lists = [each.allow for each in self.group if each.allow is not None]
        taken = None if not lists else tuple(tool for tool in lists[0] if all(tool in each for each in lists))
        self._differ(
            "capability.tools.allow", lambda each: None if each.allow is None else _list(each.allow),
            f"{_list(taken or ())}: what all lists allow",
        )  # fmt: skip
        return taken

    def _deny(self) -> tuple[str, ...]:
        taken = tuple(dict.fromkeys(tool for each in self.group for tool in each.deny))
        self._differ(
            "capability.tools.deny", lambda each: _list(sorted(each.deny)) if each.deny else None,
            f"{_list(taken)}: what any of them denies",
        )  # fmt: skip
        return taken

    def _approvals(self) -> dict[str, Approval]:
        """The strictest word of all hosts; one that says nothing of a tool is heard with what it says of all tools."""
        made: dict[str, Approval] = {}
        for tool in dict.fromkeys(tool for each in self.group for tool in each.approvals):
            said = [each.approvals.get(tool, each.approvals.get("*")) for each in self.group]
            made[tool] = max((word for word in said if word is not None), key=STRICT.index)
            name = "policy.defaultApproval" if tool == "*" else f"tools.{tool}.approval"
            self._differ(name, self._approval_of(tool), f"{made[tool]}: the strictest")
        return made

    def _approval_of(self, tool: str) -> Callable[[Candidate], str | None]:
        return lambda each: each.approvals.get(tool, each.approvals.get("*"))

    def _longest(self, name: str, get: Callable[[Candidate], float | None]) -> float | None:
        said = [value for each in self.group if (value := get(each)) is not None]
        taken = max(said) if said else None
        self._differ(name, lambda each: _seconds(get(each)), f"{_seconds(taken)}: the longest")
        return taken

    def _oauth(self) -> dict[str, str]:
        made: dict[str, str] = {}
        for name in dict.fromkeys(name for each in self.group for name in each.oauth):
            value = self._first(f"oauth.{name}", self._oauth_of(name))
            if value is not None:
                made[name] = value
        return made

    def _oauth_of(self, name: str) -> Callable[[Candidate], str | None]:
        return lambda each: each.oauth.get(name)


def _who(each: Candidate) -> str:
    return registry.label(each.declaration.host)


def _words(each: Candidate) -> str:
    return " ".join(each.words)


def _url(each: Candidate) -> str:
    return each.url or (each.endpoint.shown() if each.endpoint is not None else "")


def _list(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


def _seconds(value: float | None) -> str | None:
    return None if value is None else f"{value:g} s"


def keyed(servers: Sequence[Merged], taken: Sequence[str], limit: int = 64) -> None:
    """Give each its key. Of two that want the same one, the first has it, and the other gets its host's name or a number.

    A host's name says which of the two it is only where no other host has it too, and where no mistake makes the two differ.
    """
    used = {key.lower() for key in taken}
    for each in servers:
        wanted = valid_key(each.taken.name, limit)
        hosts = {source.declaration.host for source in each.sources}
        natural = len(hosts) == 1 and not any(source.mended for source in each.sources)
        for key in _suffixed(wanted, next(iter(hosts)) if natural else "", limit):
            if key.lower() not in used:
                each.key = key
                used.add(key.lower())
                break
        each.differences = [replace(difference, server=each.key) for difference in each.differences]


def _suffixed(wanted: str, host: str, limit: int) -> Iterator[str]:
    yield wanted
    if host:
        yield f"{wanted[: limit - len(host) - 1]}-{host}"
    number = 2
    while True:
        yield f"{wanted[: limit - 5]}-{number}"
        number += 1


def valid_key(name: str, limit: int = 64) -> str:
    """The name as a key of a manifest: without `/`, invisible characters and outer spaces."""
    made = "".join("-" if letter == "/" or not letter.isprintable() else letter for letter in name).strip()
    return made[:limit].strip() or "server"
