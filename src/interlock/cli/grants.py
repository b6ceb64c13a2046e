"""`interlock grants`: the grants of this machine, how they stand, and logins that are open. Never a token."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

from interlock.cli.common import home_from
from interlock.cli.exit_codes import OK
from interlock.cli.output import print_json

if TYPE_CHECKING:
    from rich.text import Text

    from interlock.doctor.kept import Kept


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "grants", help="list this machine's grants and open logins",
        description=__doc__ + " Times are judged on the server's clock. Nothing is asked of any server.",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from interlock.doctor import kept

    everything = kept.look(home_from(args))
    if args.json:
        print_json([as_dict(each) for each in everything])
    elif not everything:
        print("There is no grant on this machine. `interlock login SERVER` gets one.")
    else:
        _show(everything)
    return OK


def as_dict(each: Kept) -> dict[str, object]:
    """Times are seconds since the epoch; those of tokens on the server's clock."""
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
            "openedAt": note.created,
        },
        "trouble": each.trouble,
    }  # fmt: skip


def state(each: Kept, now: float) -> str:
    """One word for a column: live, expired, spent, refused, dead, damaged, or none (a login is open)."""
    grant = each.grant
    if grant is None:
        return "damaged" if each.trouble is not None else "none"
    if grant.state == "live" and grant.expires_at is not None and grant.expires_at <= now + grant.skew:
        return "expired"
    return grant.state


def _show(everything: list[Kept]) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from interlock.cli import output
    from interlock.doctor.times import span, until
    from interlock.upstream.oauth.address import shown
    from interlock.upstream.oauth.grant_log import mask

    console = output.console(width=200, soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in ("resource", "issuer", "state", "scopes", "access token ends", "refresh token ends", "clock"):
        table.add_column(column, overflow="fold")
    colours = {"live": "green", "expired": "yellow", "spent": "yellow", "refused": "yellow"}
    notes: list[str] = []
    now = time.time()
    for each in everything:
        raw = as_dict(each)
        grant, word = each.grant, state(each, now)
        name = shown(str(raw["resource"] or each.id))
        cells = ["", "", "", ""]
        if grant is not None:
            there = now + grant.skew
            if grant.refresh_token is None:
                renewal = "there is none"
            else:
                renewal = until(grant.refresh_expires_at, there) if grant.refresh_expires_at is not None else "unknown"
            cells = [
                " ".join(grant.scope),
                until(grant.expires_at, there) if grant.expires_at is not None else "unknown",
                renewal,
                f"{grant.skew:+.0f} s" if abs(grant.skew) >= 1 else "same",
            ]
            if grant.refusal is not None:
                said = mask(f"{grant.refusal.error} {grant.refusal.description}".strip())
                notes.append(
                    f"{name}: refused {grant.refusal.count} times, last {until(grant.refusal.last_at, there)}: {said}"
                )
        if each.trouble is not None:
            notes.append(f"{name}: {each.path} cannot be read: {each.trouble}")
        if each.note is not None:
            code = f" with the code {each.note.user_code}" if each.note.user_code else ""
            notes.append(f"{name}: a login is open since {span(now - each.note.created)}: {each.note.url}{code}")
        table.add_row(name, shown(str(raw["issuer"] or "")), Text(word, colours.get(word, "red")), *map(_plain, cells))
    console.print(table)
    for note in notes:
        console.print(_plain(note))
    if any(state(each, now) == "expired" for each in everything):
        console.print("expired: the next call renews it, where there is a refresh token.")


def _plain(text: str) -> Text:
    """Nothing of a server may be taken for markup, or move the cursor."""
    from rich.text import Text

    return Text("".join(letter if letter.isprintable() else "?" for letter in text))
