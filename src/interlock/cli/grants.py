"""`interlock grants`: the grants of this machine, how they stand, and sign-ins that are open. Never a token."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlock.cli.common import home_from
from interlock.cli.exit_codes import OK
from interlock.cli.output import print_json
from interlock.cli.starting import run_loop

if TYPE_CHECKING:
    from rich.text import Text

    from interlock.doctor.kept import Kept


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "grants", help="list this machine's grants and open sign-ins",
        description=__doc__ + " Times are judged on the server's clock. Nothing is asked of any server.",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.doctor import kept

    home = home_from(args)
    everything = kept.look(home)
    heard = run_loop(_listeners(everything))
    named = {each.id: kept.named_issuer(home, each.server_url) for each in everything if each.server_url}
    if args.json:
        print_json([as_dict(each, heard.get(each.id), named.get(each.id)) for each in everything])
    elif not everything:
        print("There is no grant on this machine. `interlock login SERVER` gets one.")
    else:
        _show(everything, heard, named)
    return OK


async def _listeners(everything: list[Kept]) -> dict[str, bool]:
    """For each sign-in at a browser that is open: whether somebody listens for its end. Asks ports of this machine alone."""
    import asyncio

    from interlock.upstream.oauth.identity import Identity, ask

    notes = {each.id: each.note for each in everything if each.note is not None and each.note.kind == "browser"}
    keys = {id: note.key for id, note in notes.items()}
    answers = await asyncio.gather(*(ask(note.port, keys.get) for note in notes.values()))
    return {
        id: isinstance(answer, Identity) and answer.flow == note.flow_id and answer.open
        for (id, note), answer in zip(notes.items(), answers, strict=True)
    }


def as_dict(each: Kept, heard: bool | None, named: str | None) -> dict[str, object]:
    """`heard`: somebody listens for the end of the open sign-in. `named`: the issuer that the server named last.

    Times are seconds since the epoch; those of tokens on the server's clock."""
    from interlock.upstream.oauth.grant_log import mask

    grant, note = each.grant, each.note
    refusal = grant.refusal if grant is not None else None
    found = note.found if note is not None else None
    now = time.time()
    return {
        "id": each.id,
        "file": str(each.path),
        "server": each.server_url,
        "resource": grant.resource if grant is not None else found.resource if found is not None else None,
        "issuer": grant.issuer if grant is not None else found.issuer if found is not None else None,
        "client": grant.registration.client_id if grant is not None else None,
        "state": state(each, now),
        "scopes": list(grant.scope) if grant is not None else None,
        "generation": grant.generation if grant is not None else None,
        "expiresAt": grant.expires_at if grant is not None else None,
        "renewable": grant.refresh_token is not None if grant is not None else None,
        "refreshExpiresAt": grant.refresh_expires_at if grant is not None else None,
        "skewSeconds": round(grant.skew, 1) if grant is not None else None,
        "lastRefusal": None if refusal is None else {
            "error": mask(refusal.error), "description": mask(refusal.description), "count": refusal.count,
            "lastAt": refusal.last_at,
        },
        "login": None if note is None else {
            "url": note.url, "kind": note.kind, "userCode": note.user_code, "port": note.port or None, "process": note.pid,
            "openedAt": note.created, "listening": heard,
        },
        "movedTo": named if grant is not None and named is not None and named != grant.issuer else None,
        "trouble": each.trouble,
    }  # fmt: skip


def state(each: Kept, now: float) -> str:
    """One word for a column: live, expired, spent, refused, dead, damaged, or none (a sign-in is open)."""
    grant = each.grant
    if grant is None:
        return "damaged" if each.trouble is not None else "none"
    if grant.state == "live" and grant.expires_at is not None and grant.expires_at <= now + grant.skew:
        return "expired"
    return grant.state


_COLOURS = {"live": "green", "expired": "yellow", "spent": "yellow", "refused": "yellow"}


def _show(everything: list[Kept], heard: dict[str, bool], named: dict[str, str | None]) -> None:
    """A paragraph for each: addresses stay whole on any terminal, so that they can be copied."""
    from rich.text import Text

    from interlock.cli import output

    console = output.console(soft_wrap=True)
    now = time.time()
    for place, each in enumerate(everything):
        if place:
            console.print()
        word = state(each, now)
        title = _plain(_name(each)), "  ", Text(word, _COLOURS.get(word, "red"))
        console.print(Text.assemble(*title), soft_wrap=True)
        for label, text in _lines(each, now, heard.get(each.id), named.get(each.id)):
            console.print(Text.assemble("  ", (f"{label:<9}", "dim"), _plain(text)), soft_wrap=True)


def _name(each: Kept) -> str:
    from interlock.wire.address import shown

    found = each.note.found if each.note is not None else None
    resource = each.grant.resource if each.grant is not None else found.resource if found is not None else each.id
    return shown(resource)


def _lines(each: Kept, now: float, heard: bool | None, named: str | None) -> Iterator[tuple[str, str]]:
    """What there is to say of one: a label and a text."""
    from interlock.cli.remote import command
    from interlock.doctor.times import span, until
    from interlock.upstream.oauth.grant_log import mask
    from interlock.wire.address import shown

    grant, note = each.grant, each.note
    again = command("login", each.server_url or "SERVER")
    if grant is not None:
        there = now + grant.skew
        yield "issuer", shown(grant.issuer)
        if named is not None and named != grant.issuer:
            yield (
                "",
                f"the server names another one now, {shown(named)}: this grant is of no use there; {again} gets another",
            )
        if grant.registration.source != "dynamic":
            yield "client", grant.registration.client_id
        yield "scopes", " ".join(grant.scope) or "those that the server gives without being asked"
        yield (
            "access",
            f"token ends {until(grant.expires_at, there)}" if grant.expires_at is not None else "end unknown",
        )
        if grant.refresh_token is None:
            yield "refresh", "there is no token for it"
        elif grant.refresh_expires_at is not None:
            yield "refresh", f"token ends {until(grant.refresh_expires_at, there)}"
        else:
            yield "refresh", "end unknown"
        if abs(grant.skew) >= 1:
            yield "clock", f"the server's is {grant.skew:+.0f} s from this machine's"
        if state(each, now) == "expired":
            yield "", "the next call renews it" if grant.refresh_token is not None else f"{again} gets another"
        if grant.refusal is not None:
            said = mask(f"{grant.refusal.error} {grant.refusal.description}".strip())
            yield "refused", f"{grant.refusal.count} times, last {until(grant.refusal.last_at, there)}: {said}"
    elif note is not None:
        yield "issuer", shown(note.found.issuer)
    if each.trouble is not None:
        yield "trouble", f"{each.path} cannot be read: {each.trouble}"
    if note is None:
        return
    yield "sign-in", f"open since {span(now - note.created)}" + (f", code {note.user_code}" if note.user_code else "")
    yield "", note.url
    if heard is False:
        yield "", f"nobody listens for it now: {again} opens the same address again"


def _plain(text: str) -> Text:
    """Nothing of a server may be taken for markup, or move the cursor."""
    from rich.text import Text

    return Text("".join(letter if letter.isprintable() else "?" for letter in text))
