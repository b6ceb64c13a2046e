"""What a fixture server offers, without a word about eras or transports: tools, prompts, resources and their handlers.

A handler is written once. It may log, report progress and put questions to the client; the legacy engine sends each
question as a request of its own while the call stays open, the modern one answers `input_required` and runs the
handler again when the client retries with the answers. So a handler must be repeatable up to its last question.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from interlock.lab.jsonrpc import JsonObject, RequestId

Era = Literal["legacy", "modern"]
ListKind = Literal["tools", "prompts", "resources"]
Questions = Mapping[str, JsonObject]
"""Key to request object (`method`, `params`), as in `InputRequests` of 2026-07-28."""


class Call(Protocol):
    """One running `tools/call`, `prompts/get` or `resources/read`, as its handler sees it."""

    @property
    def era(self) -> Era: ...

    @property
    def request_id(self) -> RequestId: ...

    @property
    def params(self) -> JsonObject:
        """The request's params, `_meta` included, as they came."""
        ...

    @property
    def capabilities(self) -> JsonObject:
        """What the client declared: at `initialize`, or with this request."""
        ...

    @property
    def client_info(self) -> object:
        """How the client names itself, or None."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """HTTP headers of the request, names in lower case; empty on stdio."""
        ...

    async def log(self, level: str, data: object) -> None:
        """Send `notifications/message` if the client wants this level."""
        ...

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Send `notifications/progress` if the client gave a token."""
        ...

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send any notification on the call's own stream."""
        ...

    async def ask(self, questions: Questions, *, stateful: bool = False) -> dict[str, JsonObject]:
        """Put all questions to the client at once and return the answers by key.

        `stateful` makes the modern era carry a sealed `requestState` even where none is needed.
        """
        ...

    async def drop_stream(self) -> None:
        """Close the HTTP stream that carries this call, which goes on; the client resumes it. Legacy HTTP only."""
        ...


Handler = Callable[[Call], Awaitable[JsonObject]]


@dataclass(slots=True)
class Tool:
    """A tool: its definition, sent as it stands, and what it does."""

    definition: JsonObject
    run: Handler

    @property
    def name(self) -> str:
        return str(self.definition["name"])


@dataclass(slots=True)
class Prompt:
    definition: JsonObject
    run: Handler

    @property
    def name(self) -> str:
        return str(self.definition["name"])


@dataclass(slots=True)
class Resource:
    """A resource; `listed=False` keeps it readable but out of `resources/list`."""

    definition: JsonObject
    read: Handler
    listed: bool = True

    @property
    def uri(self) -> str:
        return str(self.definition["uri"])


@dataclass(slots=True)
class Template:
    """A resource template and the handler of every URI that `matches` accepts."""

    definition: JsonObject
    matches: Callable[[str], bool]
    read: Handler


Completer = Callable[[JsonObject], JsonObject]
"""Takes the params of `completion/complete`, returns the `completion` object."""
Method = Callable[[JsonObject], JsonObject]
"""A request method that no specification knows: params to result."""
Listener = Callable[[str, JsonObject], None]
"""Takes method and params of a notification that concerns no call: a list change or a resource update."""


@dataclass(slots=True)
class CallLog:
    """What the server saw of requests and cancellations, in order, as ids; tests read it through a tool."""

    started: list[RequestId] = field(default_factory=list)
    finished: list[RequestId] = field(default_factory=list)
    cancelled: list[RequestId] = field(default_factory=list)
    stray: list[object] = field(default_factory=list)
    """Ids of cancellations that named no open request."""


@dataclass(slots=True)
class Content:
    """One fixture server. Listings keep insertion order; `page_size` None means one page."""

    name: str
    version: str = "1.0.0"
    instructions: str | None = None
    tools: dict[str, Tool] = field(default_factory=dict)
    prompts: dict[str, Prompt] = field(default_factory=dict)
    resources: dict[str, Resource] = field(default_factory=dict)
    templates: list[Template] = field(default_factory=list)
    complete: Completer | None = None
    methods: dict[str, Method] = field(default_factory=dict)
    raw_tools: list[JsonObject] = field(default_factory=list)
    """Definitions listed after the tools as they stand, however malformed; they cannot be called."""
    page_size: int | None = None
    ttl_ms: int = 1000
    cache_scope: str = "public"
    capabilities: JsonObject = field(default_factory=dict)
    """Added to the capabilities that both engines declare anyway."""
    log_level: str = "debug"
    """From which level a legacy session logs before its client has set one."""
    extra_meta: JsonObject = field(default_factory=dict)
    """`_meta` put on every list result, next to what the protocol asks for."""
    log: CallLog = field(default_factory=CallLog)
    listeners: list[Listener] = field(default_factory=list)

    def add_tools(self, *tools: Tool) -> None:
        self.tools.update((tool.name, tool) for tool in tools)

    def add_prompts(self, *prompts: Prompt) -> None:
        self.prompts.update((prompt.name, prompt) for prompt in prompts)

    def add_resources(self, *resources: Resource) -> None:
        self.resources.update((resource.uri, resource) for resource in resources)

    def list_changed(self, kind: ListKind) -> None:
        """Tell every client that asked to know."""
        self.broadcast(f"notifications/{kind}/list_changed", {})

    def resource_updated(self, uri: str) -> None:
        """Tell the subscribers of `uri`."""
        self.broadcast("notifications/resources/updated", {"uri": uri})

    def reader_of(self, uri: str) -> Handler | None:
        """Who reads `uri`: an exact resource first, then the first template that matches."""
        resource = self.resources.get(uri)
        if resource is not None:
            return resource.read
        return next((template.read for template in self.templates if template.matches(uri)), None)

    def implementation(self) -> JsonObject:
        return {"name": self.name, "version": self.version}

    def broadcast(self, method: str, params: JsonObject) -> None:
        """Hand a notification that concerns no call to every connected client; each filters for itself."""
        for listener in list(self.listeners):
            listener(method, params)


def arguments_of(call: Call) -> JsonObject:
    """The call's `arguments`, or an empty object."""
    value = call.params.get("arguments")
    return value if isinstance(value, dict) else {}


def text_result(*texts: str, is_error: bool = False) -> JsonObject:
    """A tool result of text items."""
    result: JsonObject = {"content": [{"type": "text", "text": text} for text in texts]}
    if is_error:
        result["isError"] = True
    return result


def elicit_form(message: str, properties: JsonObject, required: list[str] | None = None) -> JsonObject:
    """An `elicitation/create` question in form mode."""
    schema: JsonObject = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    return {
        "method": "elicitation/create",
        "params": {"mode": "form", "message": message, "requestedSchema": schema},
    }


def elicit_url(message: str, url: str, elicitation_id: str | None = None) -> JsonObject:
    """An `elicitation/create` question in URL mode; 2025-11-25 requires an id, 2026-07-28 knows none."""
    params: JsonObject = {"mode": "url", "message": message, "url": url}
    if elicitation_id is not None:
        params["elicitationId"] = elicitation_id
    return {"method": "elicitation/create", "params": params}


def sample(prompt: str, max_tokens: int = 100) -> JsonObject:
    """A `sampling/createMessage` question with one user message."""
    return {
        "method": "sampling/createMessage",
        "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
            "maxTokens": max_tokens,
        },
    }


def list_roots() -> JsonObject:
    """A `roots/list` question."""
    return {"method": "roots/list", "params": {}}


def sampled_text(answer: JsonObject) -> str:
    """The text of a sampling answer, whose `content` is one item or, since 2025-11-25, a list."""
    content = answer.get("content")
    items = content if isinstance(content, list) else [content]
    return " ".join(str(item["text"]) for item in items if isinstance(item, dict) and "text" in item)


def form_value(answer: JsonObject, name: str) -> object:
    """One field of an accepted form, or None where it was declined or left out."""
    content = answer.get("content")
    return content.get(name) if isinstance(content, dict) else None
