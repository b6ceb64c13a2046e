"""The scripted authorization server: its endpoints, each honest unless behaviour.py says otherwise."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from interlock.lab.auth.behaviour import Behaviour, Place
from interlock.lab.auth.clients import Clients
from interlock.lab.auth.consent import Consent
from interlock.lab.auth.families import Families, OAuthError
from interlock.lab.auth.metadata import server_metadata, server_metadata_paths
from interlock.lab.auth.misfortune import carry_out, date_header
from interlock.lab.auth.pages import form_of
from interlock.lab.auth.truth import Truth
from interlock.lab.http_server import Reply, Request
from interlock.lab.jsonrpc import JsonObject, RpcError, as_object, decode

DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
SECRET_FIELDS = {"refresh_token", "code", "code_verifier", "client_secret", "device_code", "token"}
LOST_KINDS = {"drop", "reset", "cut", "silent"}
NO_STORE = {"cache-control": "no-store"}


class AuthorizationServer:
    """One issuer; `handle` serves one request."""

    def __init__(self, behaviour: Behaviour, truth: Truth, clients: Clients, families: Families, issuer: str) -> None:
        self.issuer = issuer
        self.consent = Consent(behaviour, truth, clients, families, issuer)
        self._behaviour = behaviour
        self._truth = truth
        self._clients = clients
        self._families = families
        self._prefix = urlsplit(issuer).path.rstrip("/")

    async def handle(self, request: Request, reply: Reply) -> None:
        behaviour = self._behaviour
        reply.fields |= date_header(self._families.now() + behaviour.as_date, behaviour.date_header) | NO_STORE
        if behaviour.as_silent:
            reply.started = True
            await reply.closed.wait()
            return
        served = self._route(request)
        if served is None:
            await reply.send(404)
            return
        place, detail, run = served
        mishap = behaviour.take(place, detail)
        if mishap is None:
            await run(reply)
            return
        if mishap.kind in LOST_KINDS and mishap.takes_effect:
            self._truth.counts["answers_dropped"] += 1
        await carry_out(mishap, reply, run)

    def _route(self, request: Request) -> tuple[Place, str, Callable[[Reply], Awaitable[None]]] | None:
        path, method = request.path.removeprefix(self._prefix), request.method
        if method == "GET" and "/.well-known/" in request.path:
            return ("metadata", "", lambda reply: self._metadata(request, reply))
        if path == "/authorize" and method == "GET":
            return ("authorize", "", lambda reply: self.consent.authorize(request, reply))
        if path == "/decide" and method == "POST":
            return ("authorize", "decide", lambda reply: self.consent.decide(request, reply))
        if path == "/device" and method in ("GET", "POST"):
            return ("device", "page", lambda reply: self.consent.device_page(request, reply))
        if method != "POST":
            return None
        if path == "/token":
            kind = form_of(request).get("grant_type", "")
            return ("token", kind, lambda reply: self._answer(self._token, request, reply))
        if path == "/register":
            return ("register", "", lambda reply: self._register(request, reply))
        if path == "/device_authorization":
            return ("device", "begin", lambda reply: self._answer(self._begin_device, request, reply))
        if path == "/revoke":
            return ("revoke", "", lambda reply: self._answer(self._revoke, request, reply))
        return None

    async def _metadata(self, request: Request, reply: Reply) -> None:
        self._truth.counts["metadata_requests"] += 1
        if request.path in server_metadata_paths(self._behaviour, self.issuer):
            await reply.send_json(200, server_metadata(self._behaviour, self.issuer))
        else:
            await reply.send(404)

    async def _answer(self, serve: Callable[[Request], JsonObject], request: Request, reply: Reply) -> None:
        try:
            answer = serve(request)
        except OAuthError as error:
            # RFC 6749, section 5.2: a client that tried HTTP authentication gets a challenge.
            tried = error.status == 401 and "authorization" in request.headers
            await reply.send_json(error.status, error.body(), {"www-authenticate": "Basic"} if tried else {})
            return
        await reply.send_json(200, answer)

    async def _register(self, request: Request, reply: Reply) -> None:
        if not self._behaviour.registration:
            await reply.send(404)
            return
        try:
            answer = self._clients.register(as_object(decode(request.body), "registration"), self._families.now())
        except RpcError as error:
            await reply.send_json(400, {"error": "invalid_client_metadata", "error_description": error.message})
        except OAuthError as error:
            await reply.send_json(error.status, error.body())
        else:
            await reply.send_json(201, answer)

    def _token(self, request: Request) -> JsonObject:
        form, truth = form_of(request), self._truth
        kind = form.get("grant_type", "")
        truth.token_requests[kind] += 1
        truth.token_forms.append({name: _veiled(name, value) for name, value in form.items()})
        try:
            answer = self._granted(request, form, kind)
        except OAuthError:
            # A poll that is told to go on is no refusal.
            refused = {"refresh_token": "refreshes_refused", "authorization_code": "logins_refused"}
            truth.counts[refused.get(kind, "grants_refused")] += kind != DEVICE_GRANT
            raise
        return answer

    def _granted(self, request: Request, form: dict[str, str], kind: str) -> JsonObject:
        now = self._families.now()
        client = self._clients.authenticated(form, request.headers.get("authorization"), now)
        if kind == "authorization_code":
            return self.consent.redeem(client, form)
        if kind == "refresh_token":
            if self._behaviour.refuse_refresh is not None:
                raise OAuthError(self._behaviour.refuse_refresh, self._behaviour.refuse_description)
            scope = tuple(form["scope"].split()) if form.get("scope") else None
            return self._families.exchange(form.get("refresh_token", ""), client.client_id, scope, form.get("resource"))
        if kind == "client_credentials":
            if client.secret is None:
                raise OAuthError("unauthorized_client", "only for clients with a secret")
            self._truth.counts["client_credentials_ok"] += 1
            scope = tuple(form.get("scope", "").split())
            return self._families.open(client.client_id, scope, form.get("resource"), refreshable=False)
        if kind == DEVICE_GRANT:
            return self.consent.poll_device(client, form)
        raise OAuthError("unsupported_grant_type")

    def _begin_device(self, request: Request) -> JsonObject:
        form = form_of(request)
        client = self._clients.authenticated(form, request.headers.get("authorization"), self._families.now())
        return self.consent.begin_device(client, form)

    def _revoke(self, request: Request) -> JsonObject:
        form = form_of(request)
        self._clients.authenticated(form, request.headers.get("authorization"), self._families.now())
        self._truth.counts["revocations"] += 1
        self._families.revoke(form.get("token", ""))
        return {}


def _veiled(name: str, value: str) -> str:
    """A secret as a short hash, so that equal ones can be told."""
    return f"sha256:{hashlib.sha256(value.encode()).hexdigest()[:12]}" if name in SECRET_FIELDS else value
