"""The content of the behaviour matrix: one tool for each thing that a gateway may lose, mix up or delay."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path

from interlock.lab.content import IMAGE, PIXEL_PNG, SILENCE_WAV, fixed, tool
from interlock.lab.jsonrpc import JsonObject, RpcError, encode
from interlock.lab.registry import (
    Call,
    Content,
    Handler,
    Prompt,
    Resource,
    Template,
    Tool,
    arguments_of,
    elicit_form,
    elicit_url,
    form_value,
    list_roots,
    sample,
    sampled_text,
    text_result,
)

URL_ELICITATION_REQUIRED = -32042
"""2025-11-25 only: the call needs a URL visited first; `data.elicitations` names it."""
VENDOR_ERROR = -31999
BIG_BYTES = 5 * 1024 * 1024
STEP_SECONDS = 0.05

_background: set[asyncio.Task[None]] = set()


@dataclass(slots=True)
class MatrixOptions:
    """How large the fixture is, and what it is called."""

    name: str = "matrix"
    tools: int = 0
    """How many numbered tools to add."""
    prompts: int = 0
    resources: int = 0
    page_size: int | None = None
    tool_names: list[str] = field(default_factory=list)
    """Names of further tools, each of which answers with its own name."""
    malformed: bool = False
    """Also list tools whose definitions would make hosts drop the server."""
    ttl_ms: int = 1000
    cache_scope: str = "public"
    log_level: str = "debug"
    journal: Path | None = None
    """A file that gets a line of JSON for each tool call that reaches the server, also where it then dies of it."""


@dataclass(slots=True)
class MatrixState:
    """What the tools remember for later calls."""

    cancelled_labels: list[str] = field(default_factory=list)
    finished_labels: list[str] = field(default_factory=list)
    calls: int = 0
    writes: int = 0


def matrix_content(options: MatrixOptions) -> Content:
    """A fresh matrix server."""
    content = Content(
        name=options.name,
        instructions=f"Instructions of {options.name}: call `echo` first.",
        page_size=options.page_size,
        ttl_ms=options.ttl_ms,
        cache_scope=options.cache_scope,
        complete=_complete,
        capabilities={"experimental": {"com.example/lab": {"level": 2}}, "xCap": {"z": 1}},
        extra_meta={"com.example/trace": "list"},
        log_level=options.log_level,
    )
    state = MatrixState()
    content.add_tools(*_call_tools(content, state), *_fidelity_tools(), *_ask_tools(), *_event_tools(content))
    content.add_tools(*(_numbered_tool(number) for number in range(options.tools)))
    content.add_tools(*(tool(name, f"The tool {name}.", fixed(text_result(name))) for name in options.tool_names))
    content.add_prompts(*_prompts(), *(_numbered_prompt(number) for number in range(options.prompts)))
    content.add_resources(*_resources(), *(_numbered_resource(number) for number in range(options.resources)))
    content.templates.append(_template())
    content.methods["vendor/echo"] = lambda params: {"params": params, "vendorResult": True}
    if options.malformed:
        content.raw_tools.extend(_malformed_tools())
    if options.journal is not None:
        for each in content.tools.values():
            each.run = _noted(options.journal, each)
    return content


def _noted(journal: Path, noted: Tool) -> Handler:
    """The tool's handler, writing down each call before it runs."""
    run = noted.run

    async def note_and_run(call: Call) -> JsonObject:
        with journal.open("ab") as file:
            file.write(encode({"pid": os.getpid(), "tool": noted.name, "arguments": arguments_of(call)}) + b"\n")
        return await run(call)

    return note_and_run


def _integer(call: Call, name: str, default: int) -> int:
    value = arguments_of(call).get(name, default)
    return value if isinstance(value, int) else default


def _text(call: Call, name: str, default: str = "") -> str:
    return str(arguments_of(call).get(name, default))


def _schema(**properties: str) -> JsonObject:
    """An input schema of optional properties, name to JSON Schema type."""
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}


def _call_tools(content: Content, state: MatrixState) -> list[Tool]:
    async def echo(call: Call) -> JsonObject:
        state.calls += 1
        await asyncio.sleep(_integer(call, "delay_ms", 0) / 1000)
        value = _text(call, "value")
        return {"content": [{"type": "text", "text": value}], "structuredContent": {"value": value}}

    async def sleep(call: Call) -> JsonObject:
        label, duration = _text(call, "label", str(call.request_id)), _integer(call, "ms", 1000) / 1000
        clock = asyncio.get_running_loop().time
        end, step = clock() + duration, 0
        try:
            while (left := end - clock()) > 0:
                await call.progress(step, message=f"step {step}")
                step += 1
                await asyncio.sleep(min(STEP_SECONDS, left))
        except asyncio.CancelledError:
            state.cancelled_labels.append(label)
            raise
        state.finished_labels.append(label)
        return text_result(f"slept {label}")

    async def cancel_log(_: Call) -> JsonObject:
        seen: JsonObject = {
            "cancelledLabels": list(state.cancelled_labels),
            "finishedLabels": list(state.finished_labels),
            "cancelledIds": list(content.log.cancelled),
            "strayIds": list(content.log.stray),
        }
        return {"content": [{"type": "text", "text": str(seen)}], "structuredContent": seen}

    async def write(_: Call) -> JsonObject:
        state.writes += 1
        return text_result(str(state.writes))

    async def crash(call: Call) -> JsonObject:
        await asyncio.sleep(_integer(call, "delay_ms", 0) / 1000)
        os._exit(_integer(call, "code", 3))

    async def whoami(call: Call) -> JsonObject:
        seen: JsonObject = {
            "era": call.era,
            "pid": os.getpid(),
            "cwd": os.getcwd(),
            "calls": state.calls,
            "requestId": call.request_id,
            "params": call.params,
            "capabilities": call.capabilities,
            "clientInfo": call.client_info,
            "headers": dict(call.headers),
            # Names only: a fixture has no business with values that may be secrets.
            "environment": sorted(os.environ),
        }
        return {"content": [{"type": "text", "text": call.era}], "structuredContent": seen}

    async def fail(call: Call) -> JsonObject:
        return text_result(_text(call, "message", "failed"), is_error=True)

    output: JsonObject = {"type": "object", "properties": {"value": {"type": "string"}}, "required": ["value"]}
    return [
        tool(
            "echo",
            "Answers with its value, after a delay.",
            echo,
            _schema(value="string", delay_ms="integer"),
            outputSchema=output,
        ),
        tool("sleep", "Sleeps, with progress every 50 ms.", sleep, _schema(ms="integer", label="string")),
        tool("cancel_log", "Tells which calls were cancelled.", cancel_log),
        tool("write", "Counts its calls: a side effect that must not be repeated.", write),
        tool(
            "crash", "Ends the process in the middle of the call.", crash, _schema(delay_ms="integer", code="integer")
        ),
        tool("whoami", "Tells what the server saw of this call.", whoami),
        tool("fail", "Answers with an error result.", fail, _schema(message="string")),
    ]


def _fidelity_tools() -> list[Tool]:
    async def big(call: Call) -> JsonObject:
        size = _integer(call, "bytes", BIG_BYTES)
        return text_result(("0123456789" * (size // 10 + 1))[:size])

    async def vendor_error(_: Call) -> JsonObject:
        raise RpcError(VENDOR_ERROR, "vendor", {"x": [1]}, extra={"xErr": {"deep": True}})

    async def vendor_notification(call: Call) -> JsonObject:
        await call.notify("notifications/vendor/tick", {"tick": 1, "requestHint": call.request_id})
        return text_result("sent")

    binary: JsonObject = {
        "content": [
            IMAGE,
            {"type": "audio", "data": SILENCE_WAV, "mimeType": "audio/wav"},
            {"type": "resource", "resource": {"uri": "lab://blob", "mimeType": "image/png", "blob": PIXEL_PNG}},
            {"type": "resource_link", "uri": "lab://text", "name": "text", "mimeType": "text/plain"},
        ]
    }
    unknown: JsonObject = {
        "zFirst": 1,
        "content": [
            {
                "type": "text",
                "text": "known",
                "xItem": 1,
                "annotations": {"priority": 1, "xA": 2, "audience": ["user"]},
            },
            {"type": "vendor-chart", "data": [1, 2.0], "nested": {"b": 1, "a": 2}},
        ],
        "structuredContent": {
            "big": 1152921504606846977,
            "f": 1.0,
            "b": {"z": 1, "a": None},
            "text": "\u00e9\u2028\U0001f600",
        },
        "_meta": {"com.example/trace": "abc"},
        "xTop": {"kept": True},
    }
    schema: JsonObject = {
        "type": "object",
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "xDef": 1}},
        "properties": {"node": {"$ref": "#/$defs/node"}},
    }
    members: JsonObject = {
        "title": "Fidelity",
        "annotations": {"title": "F", "readOnlyHint": True, "xAnn": 1},
        "icons": [{"src": f"data:image/png;base64,{PIXEL_PNG}", "mimeType": "image/png", "sizes": ["1x1"], "xIcon": 1}],
        "outputSchema": {"type": "object", "properties": {"big": {"type": "integer"}}},
        "_meta": {"com.example/tool": {"n": 1}},
        "xTool": [1, {"deep": 2.50}],
    }
    return [
        tool("fidelity", "Answers with members that no specification knows.", fixed(unknown), schema, **members),
        tool("big", "Answers with a large text.", big, _schema(bytes="integer")),
        tool("binary", "Answers with an image, a sound, a blob and a link.", fixed(binary)),
        tool("vendor_error", "Answers with a protocol error of its own.", vendor_error),
        tool("vendor_notification", "Sends a notification that no specification knows.", vendor_notification),
    ]


def _ask_tools() -> list[Tool]:
    async def ask_elicit(call: Call) -> JsonObject:
        message = _text(call, "message", "Which colour?")
        if _text(call, "mode", "form") == "url":
            identity = "elicitation-1" if call.era == "legacy" else None
            answer = (await call.ask({"visit": elicit_url(message, "https://example.com/authorize", identity)}))[
                "visit"
            ]
            if identity is not None:
                await call.notify("notifications/elicitation/complete", {"elicitationId": identity})
        else:
            fields: JsonObject = {"colour": {"type": "string"}}
            answer = (await call.ask({"form": elicit_form(message, fields, ["colour"])}))["form"]
        return {
            "content": [{"type": "text", "text": str(answer.get("action"))}],
            "structuredContent": {"answer": answer},
        }

    async def ask_sampling(call: Call) -> JsonObject:
        answer = (await call.ask({"sample": sample(_text(call, "prompt", "Say hello"))}))["sample"]
        return {"content": [{"type": "text", "text": sampled_text(answer)}], "structuredContent": {"answer": answer}}

    async def ask_roots(call: Call) -> JsonObject:
        answer = (await call.ask({"roots": list_roots()}))["roots"]
        return {"content": [{"type": "text", "text": "roots"}], "structuredContent": {"answer": answer}}

    async def ask_many(call: Call) -> JsonObject:
        fields: JsonObject = {"value": {"type": "string"}}
        questions = {f"q{n}": elicit_form(f"Question {n}", fields) for n in range(_integer(call, "count", 3))}
        answers = await call.ask(questions)
        return text_result(*(str(form_value(answers[key], "value")) for key in questions))

    async def ask_rounds(call: Call) -> JsonObject:
        fields: JsonObject = {"value": {"type": "string"}}
        values = []
        for number in range(_integer(call, "count", 3)):
            key = f"round{number}"
            await call.progress(number)
            answer = (await call.ask({key: elicit_form(f"Round {number}", fields)}, stateful=True))[key]
            values.append(str(form_value(answer, "value")))
        return text_result(",".join(values))

    async def url_required(call: Call) -> JsonObject:
        question = elicit_url("Please sign in.", "https://example.com/sign-in", "elicitation-2")
        if call.era == "legacy":
            data: JsonObject = {"elicitations": [question["params"]]}
            raise RpcError(URL_ELICITATION_REQUIRED, "A URL must be visited first", data)
        await call.ask({"visit": elicit_url("Please sign in.", "https://example.com/sign-in")})
        return text_result("signed in")

    return [
        tool("ask_elicit", "Asks the person, by form or URL.", ask_elicit, _schema(message="string", mode="string")),
        tool("ask_sampling", "Asks the client's model.", ask_sampling, _schema(prompt="string")),
        tool("ask_roots", "Asks for the client's roots.", ask_roots),
        tool("ask_many", "Asks several things at once.", ask_many, _schema(count="integer")),
        tool("ask_rounds", "Asks several things, one after the other.", ask_rounds, _schema(count="integer")),
        tool("url_required", "Needs a URL visited first.", url_required),
    ]


def _event_tools(content: Content) -> list[Tool]:
    def schedule(delay_ms: int, method: str, params: JsonObject) -> None:
        async def publish() -> None:
            await asyncio.sleep(delay_ms / 1000)
            content.broadcast(method, params)

        task = asyncio.ensure_future(publish())
        _background.add(task)
        task.add_done_callback(_background.discard)

    async def change_tools(call: Call) -> JsonObject:
        name = _text(call, "tool", "added_later")
        if content.tools.pop(name, None) is None:
            content.add_tools(tool(name, "Came later.", fixed(text_result(name))))
        schedule(_integer(call, "after_ms", 100), "notifications/tools/list_changed", {})
        return text_result("the list will be announced as changed after this call")

    async def change_prompts(call: Call) -> JsonObject:
        if content.prompts.pop("added_later", None) is None:
            content.add_prompts(Prompt({"name": "added_later"}, fixed({"messages": []})))
        schedule(_integer(call, "after_ms", 100), "notifications/prompts/list_changed", {})
        return text_result("announced")

    async def change_resources(call: Call) -> JsonObject:
        uri = "lab://added-later"
        if content.resources.pop(uri, None) is None:
            content.add_resources(Resource({"uri": uri, "name": "added-later"}, fixed(_text_contents(uri, "later"))))
        schedule(_integer(call, "after_ms", 100), "notifications/resources/list_changed", {})
        return text_result("announced")

    async def touch(call: Call) -> JsonObject:
        uri = _text(call, "uri", "lab://text")
        schedule(_integer(call, "after_ms", 100), "notifications/resources/updated", {"uri": uri})
        return text_result(uri)

    async def log(call: Call) -> JsonObject:
        await call.log(_text(call, "level", "info"), arguments_of(call).get("data", "logged"))
        return text_result("logged")

    return [
        tool(
            "change_tools",
            "Adds or removes a tool and tells after the call.",
            change_tools,
            _schema(after_ms="integer", tool="string"),
        ),
        tool(
            "change_prompts",
            "Adds or removes a prompt and tells after the call.",
            change_prompts,
            _schema(after_ms="integer"),
        ),
        tool(
            "change_resources",
            "Adds or removes a resource and tells after the call.",
            change_resources,
            _schema(after_ms="integer"),
        ),
        tool(
            "touch", "Tells after the call that a resource changed.", touch, _schema(uri="string", after_ms="integer")
        ),
        tool("log", "Logs at a level.", log, _schema(level="string")),
    ]


def _numbered_tool(number: int) -> Tool:
    name = f"tool_{number:03}"
    members: JsonObject = {
        "title": f"Tool {number}",
        "annotations": {"readOnlyHint": number % 2 == 0, "xRank": number},
        "outputSchema": {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]},
        "_meta": {"com.example/number": number},
        "xNumber": number,
    }
    result: JsonObject = {"content": [{"type": "text", "text": name}], "structuredContent": {"number": number}}
    return tool(name, f"Numbered tool {number}.", fixed(result), _schema(value="string"), **members)


def _numbered_prompt(number: int) -> Prompt:
    message: JsonObject = {"role": "user", "content": {"type": "text", "text": f"Prompt {number}"}}
    definition: JsonObject = {"name": f"prompt_{number:03}", "description": f"Prompt {number}.", "xNumber": number}
    return Prompt(definition, fixed({"messages": [message]}))


def _numbered_resource(number: int) -> Resource:
    uri = f"lab://numbered/{number}"
    definition: JsonObject = {"uri": uri, "name": f"numbered-{number}", "mimeType": "text/plain", "xNumber": number}
    return Resource(definition, fixed(_text_contents(uri, f"Resource {number}")))


def _text_contents(uri: str, text: str) -> JsonObject:
    return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}


def _prompts() -> list[Prompt]:
    async def greet(call: Call) -> JsonObject:
        name = _text(call, "name", "you")
        message: JsonObject = {"role": "user", "content": {"type": "text", "text": f"Greet {name}", "xItem": 1}}
        return {"description": "A greeting.", "messages": [message], "xTop": 1}

    async def asking(call: Call) -> JsonObject:
        answer = (await call.ask({"topic": elicit_form("Which topic?", {"topic": {"type": "string"}})}))["topic"]
        return {"messages": [{"role": "user", "content": {"type": "text", "text": str(form_value(answer, "topic"))}}]}

    greeting: JsonObject = {
        "name": "greet",
        "title": "Greet",
        "description": "Greets someone.",
        "arguments": [{"name": "name", "description": "Whom.", "required": False, "xArg": 1}],
        "_meta": {"com.example/prompt": True},
        "xPrompt": 1,
    }
    return [
        Prompt(greeting, greet),
        Prompt({"name": "ask_prompt", "description": "Asks for its topic."}, asking),
    ]


def _resources() -> list[Resource]:
    async def asking(call: Call) -> JsonObject:
        answer = (await call.ask({"part": elicit_form("Which part?", {"part": {"type": "string"}})}))["part"]
        return _text_contents("lab://asking", str(form_value(answer, "part")))

    blob: JsonObject = {"contents": [{"uri": "lab://blob", "mimeType": "image/png", "blob": PIXEL_PNG, "xPart": 1}]}
    text: JsonObject = {"uri": "lab://text", "name": "text", "mimeType": "text/plain", "size": 4, "xResource": 1}
    return [
        Resource(text, fixed(_text_contents("lab://text", "text"))),
        Resource({"uri": "lab://blob", "name": "blob", "mimeType": "image/png"}, fixed(blob)),
        Resource({"uri": "lab://asking", "name": "asking", "mimeType": "text/plain"}, asking),
    ]


def _template() -> Template:
    async def read(call: Call) -> JsonObject:
        return _text_contents(str(call.params["uri"]), str(call.params["uri"]).removeprefix("lab://item/"))

    definition: JsonObject = {"uriTemplate": "lab://item/{id}", "name": "item", "xTemplate": 1}
    return Template(definition, lambda uri: uri.startswith("lab://item/"), read)


def _complete(params: JsonObject) -> JsonObject:
    argument, reference, context = params["argument"], params["ref"], params.get("context")
    typed = str(argument.get("value", "")) if isinstance(argument, dict) else ""
    kind = str(reference.get("type")) if isinstance(reference, dict) else ""
    words = [f"{typed}-{ending}" for ending in ("alpha", "beta")]
    if isinstance(context, dict) and isinstance(context.get("arguments"), dict):
        words.append(f"{typed}-with-context")
    return {"values": words, "total": len(words), "hasMore": False, "xKind": kind}


def _malformed_tools() -> list[JsonObject]:
    return [
        {"name": "no_schema", "description": "Has no input schema."},
        {"name": "array_schema", "inputSchema": {"type": "array", "items": {}}},
        {"name": "text_schema", "inputSchema": "object"},
        {"name": "echo", "description": "A second echo.", "inputSchema": {"type": "object"}},
        {"description": "Has no name.", "inputSchema": {"type": "object"}},
        {"name": "", "inputSchema": {"type": "object"}},
        {"name": "bad_output", "inputSchema": {"type": "object"}, "outputSchema": {"type": "string"}},
        {"name": "number_properties", "inputSchema": {"type": "object", "properties": 3}},
    ]
