"""Where people come in: /authorize with its answer to the redirect URI, and the device flow's /device (RFC 8628)."""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass
from urllib.parse import urlencode

from interlock.lab.auth.behaviour import Behaviour
from interlock.lab.auth.clients import Client, Clients
from interlock.lab.auth.families import Families, OAuthError
from interlock.lab.auth.pages import form_of, page, query_of
from interlock.lab.auth.truth import Truth
from interlock.lab.http_server import Reply, Request
from interlock.lab.jsonrpc import JsonObject

CODE_SECONDS = 60.0


@dataclass(slots=True)
class Code:
    """An authorization code that was given out."""

    client_id: str
    redirect_uri: str
    challenge: str | None
    scope: tuple[str, ...]
    resource: str | None
    expires_at: float


@dataclass(slots=True)
class Device:
    """A device code that somebody polls for."""

    client_id: str
    user_code: str
    scope: tuple[str, ...]
    resource: str | None
    expires_at: float
    approved: bool | None = None


class Consent:
    """Codes and device codes: given out here, redeemed at the token endpoint."""

    def __init__(self, behaviour: Behaviour, truth: Truth, clients: Clients, families: Families, issuer: str) -> None:
        self._behaviour = behaviour
        self._truth = truth
        self._clients = clients
        self._families = families
        self._issuer = issuer
        self._codes: dict[str, Code] = {}
        self._asked: dict[str, dict[str, str]] = {}
        self._devices: dict[str, Device] = {}

    async def authorize(self, request: Request, reply: Reply) -> None:
        """GET /authorize: the request of a client, in a person's browser."""
        query = query_of(request)
        self._truth.counts["authorize_requests"] += 1
        self._truth.authorize_queries.append(query)
        client = self._clients.named(query.get("client_id", ""))
        # Whoever is unknown, or wants the answer elsewhere, is not redirected (RFC 6749, section 4.1.2.1).
        if client is None:
            await reply.send(400, page("Unknown client", "This client is not registered here."), "text/html")
        elif not client.allows(query.get("redirect_uri", "")):
            await reply.send(400, page("Wrong redirect URI", "It is not one of this client's."), "text/html")
        elif self._behaviour.authorize == "manual":
            ticket = secrets.token_urlsafe(12)
            self._asked[ticket] = query
            text = f"{client.client_id} asks for: {query.get('scope', 'nothing in particular')}"
            await reply.send(200, page("Approve access?", text, {"ticket": ticket}, "/decide"), "text/html")
        else:
            await self._redirect(query, self._behaviour.authorize_error, reply)

    async def decide(self, request: Request, reply: Reply) -> None:
        """POST /decide: what the person chose on the page."""
        form = form_of(request)
        query = self._asked.pop(form.get("ticket", ""), None)
        if query is None:
            await reply.send(400, page("Too late", "This page was used already."), "text/html")
            return
        await self._redirect(query, None if form.get("decision") == "approve" else "access_denied", reply)

    async def _redirect(self, query: dict[str, str], error: str | None, reply: Reply) -> None:
        answer: dict[str, str] = {}
        if error is None and (query.get("response_type") != "code" or not _challenged(query)):
            error = "invalid_request"
        if error is None:
            answer["code"] = secrets.token_urlsafe(24)
            self._codes[answer["code"]] = Code(
                client_id=query["client_id"],
                redirect_uri=query["redirect_uri"],
                challenge=query.get("code_challenge"),
                scope=tuple(query.get("scope", "").split()),
                resource=query.get("resource"),
                expires_at=self._families.now() + CODE_SECONDS,
            )
        else:
            answer["error"] = error
        if "state" in query:
            answer["state"] = query["state"]
        if self._behaviour.iss_sent != "absent":
            wrong = self._behaviour.iss_sent == "wrong"
            answer["iss"] = f"{self._issuer}/other" if wrong else self._issuer
        joint = "&" if "?" in query["redirect_uri"] else "?"
        await reply.send(302, headers={"location": query["redirect_uri"] + joint + urlencode(answer)})

    def redeem(self, client: Client, form: dict[str, str]) -> JsonObject:
        """An authorization code for tokens (RFC 6749, section 4.1.3; RFC 7636). Raises OAuthError."""
        code = self._codes.pop(form.get("code", ""), None)
        if code is None or code.client_id != client.client_id or self._families.now() >= code.expires_at:
            raise OAuthError("invalid_grant", "unknown, used or expired code")
        if form.get("redirect_uri") != code.redirect_uri:
            raise OAuthError("invalid_grant", "another redirect URI")
        if code.challenge is not None and challenge_of(form.get("code_verifier", "")) != code.challenge:
            raise OAuthError("invalid_grant", "wrong code verifier")
        if "resource" in form and code.resource is not None and form["resource"] != code.resource:
            raise OAuthError("invalid_target", "another resource than was authorized")
        self._truth.counts["logins_finished"] += 1
        return self._families.open(client.client_id, code.scope, form.get("resource", code.resource))

    def begin_device(self, client: Client, form: dict[str, str]) -> JsonObject:
        """POST /device_authorization (RFC 8628, section 3.1)."""
        self._truth.counts["device_requests"] += 1
        device_code, user_code = secrets.token_urlsafe(24), secrets.token_hex(4).upper()
        lifetime = self._behaviour.device_lifetime
        self._devices[device_code] = Device(
            client.client_id,
            user_code,
            tuple(form.get("scope", "").split()),
            form.get("resource"),
            self._families.now() + lifetime,
        )
        answer: JsonObject = {
            "device_code": device_code,
            "user_code": user_code,
            "verification_uri": f"{self._issuer}/device",
            "verification_uri_complete": f"{self._issuer}/device?user_code={user_code}",
            "expires_in": round(lifetime),
        }
        if self._behaviour.device_interval is not None:
            answer["interval"] = self._behaviour.device_interval
        return answer

    def poll_device(self, client: Client, form: dict[str, str]) -> JsonObject:
        """A poll of the token endpoint (RFC 8628, section 3.4). Raises OAuthError while nothing is decided."""
        device = self._devices.get(form.get("device_code", ""))
        if device is None or device.client_id != client.client_id:
            raise OAuthError("invalid_grant", "unknown device code")
        if self._families.now() >= device.expires_at:
            raise OAuthError("expired_token")
        setting = self._behaviour.device
        if setting == "slow-down":
            raise OAuthError("slow_down")
        approved = {"approve": True, "deny": False}.get(setting, device.approved)
        if approved is None:
            raise OAuthError("authorization_pending")
        del self._devices[form["device_code"]]
        if not approved:
            raise OAuthError("access_denied")
        self._truth.counts["logins_finished"] += 1
        return self._families.open(client.client_id, device.scope, form.get("resource", device.resource))

    async def device_page(self, request: Request, reply: Reply) -> None:
        """GET and POST /device: where a person approves a device by its code."""
        fields = query_of(request) | form_of(request)
        device = next((each for each in self._devices.values() if each.user_code == fields.get("user_code")), None)
        if device is None:
            await reply.send(404, page("Unknown code", "No device waits with this code."), "text/html")
        elif request.method == "POST":
            device.approved = fields.get("decision") == "approve"
            await reply.send(200, page("Done", "You may close this page."), "text/html")
        else:
            hidden = {"user_code": device.user_code}
            await reply.send(200, page("Approve the device?", device.client_id, hidden, "/device"), "text/html")

    def decide_devices(self, approved: bool) -> None:
        """Approve or deny every device that waits."""
        for device in self._devices.values():
            device.approved = approved


def challenge_of(verifier: str) -> str:
    """The S256 challenge of a code verifier (RFC 7636, section 4.2)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def _challenged(query: dict[str, str]) -> bool:
    return "code_challenge" in query and query.get("code_challenge_method") == "S256"
