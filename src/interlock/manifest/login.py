"""How one remote server learns who calls: the grant, token and session binding of its transport, read and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast
from urllib.parse import urlsplit

from interlock.manifest import secrets
from interlock.manifest.config import HeaderValue, OAuth, Replay, TokenSource
from interlock.manifest.nodes import Items, Table
from interlock.manifest.problems import Report
from interlock.manifest.showing import joined
from interlock.manifest.values import NO_LITERAL, header_values, secret_file
from interlock.manifest.view import View
from interlock.wire.address import BadAddress, permitted

Flow = Literal["browser", "device", "client-credentials"]


@dataclass(frozen=True, slots=True)
class Login:
    """At most one of `oauth` and `token` is set."""

    oauth: OAuth | None = None
    token: TokenSource | None = None
    session_headers: tuple[HeaderValue, ...] = ()
    replay: tuple[Replay, ...] = ()


def login_of(view: View, path: str, headers: Sequence[HeaderValue], folder: Path, report: Report) -> Login:
    """What one transport says of its caller. `headers` are those of every request; `folder` is the manifest's own."""
    auth = view.text("auth") or "none"
    session = view.inner("session")
    session_path = f"{path}.session"
    bound = tuple(header_values(session.inner("headers"), f"{session_path}.headers", folder, report))
    _check_headers(view, path, auth, headers, bound, report)
    return Login(
        oauth=_oauth(view, path, report) if auth == "oauth" else None,
        token=_token(view.inner("token"), f"{path}.token", folder, report) if auth == "token" else None,
        session_headers=bound,
        replay=tuple(_replay(session, f"{session_path}.replay", report)),
    )


def _check_headers(
    view: View, path: str, auth: str, headers: Sequence[HeaderValue], bound: Sequence[HeaderValue], report: Report
) -> None:
    always = view.inner("headers")
    session = view.inner("session").inner("headers")
    for table, place, values in ((always, f"{path}.headers", headers), (session, f"{path}.session.headers", bound)):
        for value in values:
            if value.name.lower() == "authorization" and auth != "none":
                report.add(
                    "contradiction",
                    f"`auth: {auth}` makes the header `Authorization`, so it cannot stand here too.",
                    write="one of the two: `auth`, or this header",
                    field=joined(place, value.name),
                    at=table.at(value.name),
                )
    everywhere = {value.name.lower() for value in headers}
    for value in bound:
        if value.name.lower() in everywhere:
            report.add(
                "duplicate-field",
                f"`{value.name}` is sent with every request already.",
                write="one of the two",
                field=joined(f"{path}.session.headers", value.name),
                at=session.at(value.name),
            )


def _oauth(view: View, path: str, report: Report) -> OAuth:
    settings = view.inner("oauth")
    where = f"{path}.oauth"
    flow = cast(Flow, settings.text("flow") or "browser")
    port = settings.number("callbackPort")
    resource = settings.text("resource")
    if flow != "browser":
        for name in ("callbackPort", "allowMissingPkce"):
            if settings.has(name):
                report.add(
                    "contradiction",
                    f"`{name}` is about a browser that returns here, and with `flow: {flow}` none does.",
                    write=f"the entry without `{name}`",
                    field=f"{where}.{name}",
                    at=settings.at(name),
                )
    _check_client(settings, where, report)
    _check_issuer(settings, f"{where}.issuer", report)
    _check_resource(resource, view.text("endpoint"), f"{where}.resource", settings.at("resource"), report)
    if settings.flag("allowMissingPkce"):
        report.add(
            "missing-pkce",
            "This login does not conform to the specification where the authorization server does not check PKCE.",
            field=f"{where}.allowMissingPkce",
            at=settings.at("allowMissingPkce"),
            severity="warning",
        )
    return OAuth(
        flow=flow,
        scopes=tuple(dict.fromkeys(scope for scope, _at in view.texts("scopes") or ())),
        resource=resource,
        client_id=settings.text("clientId"),
        client_id_env=settings.text("clientIdEnv"),
        client_secret_env=settings.text("clientSecretEnv"),
        client_metadata_url=settings.text("clientMetadataUrl"),
        issuer=settings.text("issuer"),
        callback_port=int(port) if port is not None else None,
        allow_missing_pkce=bool(settings.flag("allowMissingPkce")),
    )


def _check_client(settings: View, where: str, report: Report) -> None:
    for name in ("clientIdEnv", "clientSecretEnv"):
        _check_variable(settings.text(name), settings.at(name), f"{where}.{name}", report)
    client_id = settings.text("clientId")
    if client_id is not None and secrets.placeholder(client_id):
        report.add(
            "placeholder",
            "Variables are not filled in here.",
            write="clientIdEnv: NAME",
            field=f"{where}.clientId",
            at=settings.at("clientId"),
        )
    document = settings.text("clientMetadataUrl")
    if document is None:
        return
    try:
        parts = urlsplit(document)
        right = bool(parts.hostname) and parts.port != 0 and not {".", ".."} & set(parts.path.split("/"))
    except ValueError:
        right = False
    if not right:
        report.add(
            "wrong-form",
            "This is not a URL with a host, a valid port and a plain path.",
            write="clientMetadataUrl: https://example.com/interlock/client.json",
            field=f"{where}.clientMetadataUrl",
            at=settings.at("clientMetadataUrl"),
        )


def _check_issuer(settings: View, where: str, report: Report) -> None:
    issuer, at = settings.text("issuer"), settings.at("issuer")
    if issuer is None:
        return
    try:
        permitted(issuer)
    except BadAddress as error:
        report.add(
            "wrong-form",
            f"No authorization server is asked at this address: {error}.",
            write="issuer: https://login.example.com",
            field=where,
            at=at,
        )


def _check_resource(
    resource: str | None, endpoint: str | None, where: str, at: tuple[int, int], report: Report
) -> None:
    if resource is None:
        return
    reason = secrets.url(resource)
    if reason:
        report.add("literal-secret", f"This is refused because {reason}: {NO_LITERAL}.", field=where, at=at)
    elif endpoint is not None and resource.startswith(("http://", "https://")) and _host(resource) != _host(endpoint):
        # The token is then good for that other place, and this endpoint gets to see it.
        what = "This names another machine than the endpoint: the endpoint gets a token that is good there."
        report.add("other-resource", what, field=where, at=at, severity="warning")


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _token(source: View, path: str, folder: Path, report: Report) -> TokenSource:
    env, file = source.text("fromEnv"), source.text("fromFile")
    _check_variable(env, source.at("fromEnv"), f"{path}.fromEnv", report)
    if file is None:
        return TokenSource(env=env)
    place = secret_file(source, f"{path}.fromFile", "token: {fromEnv: NAME}", folder, report)
    return TokenSource(env=env, file=place)


def _check_variable(name: str | None, at: tuple[int, int], path: str, report: Report) -> None:
    """A secret pasted where the name of a variable belongs."""
    if name is not None and secrets.looks_random(name):
        what = f"This looks like a random key and not like a variable's name: {NO_LITERAL}."
        report.add("literal-secret", what, write=f"{path.rpartition('.')[2]}: NAME", field=path, at=at)


def _replay(session: View, path: str, report: Report) -> Iterator[Replay]:
    node = session.node("replay")
    seen: set[str] = set()
    for index, item in enumerate(node.items if isinstance(node, Items) else ()):
        call = View(item if isinstance(item, Table) else None)
        tool = call.text("tool")
        if tool is None:
            continue
        if tool in seen:
            what = "This tool is repeated already."
            report.add(
                "duplicate-field", what, write="one of the two", field=f"{path}[{index}].tool", at=call.at("tool")
            )
        seen.add(tool)
        yield Replay(tool, tuple(name for name, _at in call.texts("remember") or ()))
