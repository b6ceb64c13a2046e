"""The scripted user: opens an authorize URL, signs in and approves where pages ask, and lands on the callback.

Works with the lab's pages (`interlock.lab.auth`) and with the development pages of oidc-provider.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2

MOST_STEPS = 20
STEP_SECONDS = 15.0
REDIRECTS = {301, 302, 303, 307, 308}


@dataclass(slots=True)
class Form:
    """One form of a page: where it goes, and what it holds before a person touches it."""

    action: str = ""
    method: str = "get"
    fields: dict[str, str] = field(default_factory=dict)
    buttons: list[tuple[str, str]] = field(default_factory=list)
    """Name and value of named submit buttons."""


class _Forms(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(given.get("action", ""), given.get("method", "get").lower()))
        elif self.forms and given.get("name"):
            if tag == "button" or given.get("type") == "submit":
                self.forms[-1].buttons.append((given["name"], given.get("value", "")))
            elif tag == "input":
                self.forms[-1].fields[given["name"]] = given.get("value", "")


@dataclass(slots=True)
class Seen:
    """What the user saw."""

    steps: list[tuple[str, str, int]] = field(default_factory=list)
    """Method, URL without its query, and status of each page on the way, the callback not among them."""
    callback: str | None = None
    """The whole redirect URL, as a user would copy it out of the address bar; None where none came."""
    status: int | None = None
    """What the callback answered; None where it was not opened, or nobody listened there."""
    page: str = ""
    """The text of the last page."""
    refused: str | None = None
    """Why the callback could not be reached."""

    @property
    def landed(self) -> bool:
        """Whether the callback took it."""
        return self.status is not None and self.status < 400

    def answer(self, name: str) -> str | None:
        """A parameter of the redirect: `code`, `error`, `state` or `iss`."""
        values = parse_qs(urlsplit(self.callback or "").query).get(name)
        return values[0] if values else None


async def click(
    url: str, *, delay: float = 0.0, deny: bool = False, login: str = "user", open_callback: bool = True
) -> Seen:
    """Open an authorize URL `delay` seconds from now and go through with it.

    `deny` refuses at the first page that lets one. With `open_callback=False` the redirect is only read, as by a user on
    another machine who copies the address.
    """
    await asyncio.sleep(delay)
    seen = Seen()
    redirect_uri = (parse_qs(urlsplit(url).query).get("redirect_uri") or [""])[0]
    # A browser of its own for each click: cookies of one login must not shorten the next.
    async with httpx2.AsyncClient(follow_redirects=False, trust_env=False, timeout=STEP_SECONDS) as browser:
        request: tuple[str, str, dict[str, str] | None] = ("GET", url, None)
        for _ in range(MOST_STEPS):
            method, target, form = request
            answer = await browser.request(method, target, data=form)
            seen.steps.append((method, target.partition("?")[0], answer.status_code))
            seen.page = answer.text
            following = _next(answer, target, deny=deny, login=login)
            if following is None:
                return seen
            if redirect_uri and following[0] == "GET" and _is_callback(following[1], redirect_uri):
                seen.callback = following[1]
                if open_callback:
                    await _land(browser, seen)
                return seen
            request = following
    raise AssertionError(f"no end in sight after {MOST_STEPS} pages: {seen.steps}")


async def approve_device(verification_url: str, user_code: str | None = None, *, deny: bool = False) -> Seen:
    """What a person does with a device code (RFC 8628, section 3.3); `user_code` is typed where a page asks for it."""
    seen = Seen()
    async with httpx2.AsyncClient(follow_redirects=False, trust_env=False, timeout=STEP_SECONDS) as browser:
        request: tuple[str, str, dict[str, str] | None] = ("GET", verification_url, None)
        for _ in range(MOST_STEPS):
            method, target, form = request
            answer = await browser.request(method, target, data=form)
            seen.steps.append((method, target.partition("?")[0], answer.status_code))
            seen.page = answer.text
            following = _next(answer, target, deny=deny, login="user", user_code=user_code)
            if following is None:
                return seen
            request = following
    raise AssertionError(f"no end in sight after {MOST_STEPS} pages: {seen.steps}")


def forms_of(page: str) -> list[Form]:
    """The forms of an HTML page."""
    parser = _Forms()
    parser.feed(page)
    return parser.forms


def _next(
    answer: httpx2.Response, at: str, *, deny: bool, login: str, user_code: str | None = None
) -> tuple[str, str, dict[str, str] | None] | None:
    """The request that follows a page: its redirect, or its form filled in; None at the end."""
    if answer.status_code in REDIRECTS and "location" in answer.headers:
        return "GET", urljoin(at, answer.headers["location"]), None
    forms = forms_of(answer.text)
    if not forms or answer.status_code >= 400:
        return None
    form = forms[0]
    filled = dict(form.fields)
    if "login" in filled:
        filled |= {"login": login, "password": "any"}
    if "user_code" in filled and not filled["user_code"]:
        if user_code is None:
            return None
        filled["user_code"] = user_code
    choices = [value for name, value in form.buttons if name == "decision"]
    if choices:
        filled["decision"] = "deny" if deny else "approve"
    elif deny and filled.get("prompt") == "consent":
        return "GET", urljoin(at, _abort_link(answer.text)), None
    elif deny and "confirm" in filled:
        filled = {name: value for name, value in filled.items() if name != "confirm"} | {"abort": "yes"}
    target = urljoin(at, form.action or at)
    return (form.method.upper(), target, filled) if form.method == "post" else ("GET", target, None)


def _abort_link(page: str) -> str:
    """The link that oidc-provider's development pages offer to a person who does not want to go on."""
    links: list[str] = []

    class Links(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            target = dict(attrs).get("href") if tag == "a" else None
            if target is not None and target.endswith("/abort"):
                links.append(target)

    Links().feed(page)
    return links[0]


def _is_callback(url: str, redirect_uri: str) -> bool:
    return url == redirect_uri or url.startswith((f"{redirect_uri}?", f"{redirect_uri}&"))


async def _land(browser: httpx2.AsyncClient, seen: Seen) -> None:
    assert seen.callback is not None
    try:
        answer = await browser.get(seen.callback)
    except httpx2.TransportError as error:
        seen.refused = f"{type(error).__name__}: {error}"
        return
    seen.status, seen.page = answer.status_code, answer.text
