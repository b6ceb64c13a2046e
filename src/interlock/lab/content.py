"""The content that the official conformance suite looks for, under its tool, prompt and resource names.

The suite's own requirements fix the names, a few texts and the schemas; everything is written once for both eras.
"""

from __future__ import annotations

import asyncio
import json

from interlock.lab.jsonrpc import MISSING_CAPABILITY, JsonObject, RpcError
from interlock.lab.registry import (
    Call,
    Content,
    Handler,
    Prompt,
    Questions,
    Resource,
    Template,
    Tool,
    arguments_of,
    elicit_form,
    form_value,
    list_roots,
    sample,
    sampled_text,
    text_result,
)

PIXEL_PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGOwqdgCAAJcAWlLf+oUAAAAAElFTkSuQmCC"
"""One pixel, as a PNG."""
SILENCE_WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAgD4AAAB9AAACABAAZGF0YQIAAAAAAA=="
"""One sample of silence, as a WAV."""
STEP_SECONDS = 0.02

NAME: JsonObject = {"name": {"type": "string"}}
IMAGE: JsonObject = {"type": "image", "data": PIXEL_PNG, "mimeType": "image/png"}


def conformance_content(name: str) -> Content:
    """A fresh server of the suite's fixtures, called `name`."""
    content = Content(name=name, instructions="Fixture server for the MCP conformance suite.", complete=complete)
    content.add_tools(
        *_plain_tools(),
        *_stream_tools(),
        *_asking_tools(),
        *_round_trip_tools(),
        *_schema_tools(),
        *_change_tools(content),
    )
    content.add_prompts(*_prompts())
    content.add_resources(*_resources())
    content.templates.append(_template())
    return content


def complete(params: JsonObject) -> JsonObject:
    """Suggest words that begin with what was typed."""
    argument = params["argument"]
    typed = str(argument.get("value", "")) if isinstance(argument, dict) else ""
    values = [word for word in ("paris", "park", "party", "test", "testing") if word.startswith(typed)]
    return {"values": values, "total": len(values), "hasMore": False}


def tool(name: str, description: str, run: Handler, schema: JsonObject | None = None, **members: object) -> Tool:
    """A tool whose input schema defaults to an object without properties."""
    definition: JsonObject = {"name": name, "description": description}
    definition["inputSchema"] = schema or {"type": "object", "properties": {}}
    return Tool(definition | members, run)


def fixed(result: JsonObject) -> Handler:
    """A handler that always gives the same result."""

    async def run(_: Call) -> JsonObject:
        return result

    return run


def _plain_tools() -> list[Tool]:
    embedded: JsonObject = {
        "type": "resource",
        "resource": {"uri": "test://embedded-resource", "mimeType": "text/plain", "text": "An embedded text."},
    }
    mixed: JsonObject = {
        "type": "resource",
        "resource": {"uri": "test://mixed-content-resource", "mimeType": "application/json", "text": '{"value": 123}'},
    }
    audio: JsonObject = {"type": "audio", "data": SILENCE_WAV, "mimeType": "audio/wav"}
    header: JsonObject = {
        "type": "object",
        "properties": {"region": {"type": "string", "description": "Where to run.", "x-mcp-header": "Region"}},
    }

    async def region(call: Call) -> JsonObject:
        return text_result(f"region={arguments_of(call).get('region', 'none')}")

    return [
        tool(
            "test_simple_text", "Returns one text.", fixed(text_result("This is a simple text response for testing."))
        ),
        tool("test_image_content", "Returns one image.", fixed({"content": [IMAGE]})),
        tool("test_audio_content", "Returns one sound.", fixed({"content": [audio]})),
        tool("test_embedded_resource", "Returns an embedded resource.", fixed({"content": [embedded]})),
        tool(
            "test_multiple_content_types",
            "Returns a text, an image and a resource.",
            fixed({"content": [{"type": "text", "text": "Three kinds of content:"}, IMAGE, mixed]}),
        ),
        tool(
            "test_error_handling",
            "Always fails.",
            fixed(text_result("This tool intentionally returns an error for testing", is_error=True)),
        ),
        tool("test_x_mcp_header", "Has a parameter that is mirrored into a header.", region, header),
    ]


def _stream_tools() -> list[Tool]:
    async def logging(call: Call) -> JsonObject:
        for step in ("started", "working", "done"):
            await call.log("info", f"Tool execution {step}")
            await asyncio.sleep(STEP_SECONDS)
        return text_result("Logged three times.")

    async def log_once(call: Call) -> JsonObject:
        await call.log("info", "test_logging_tool ran")
        return text_result("Logged once.")

    async def progress(call: Call) -> JsonObject:
        for done in (0, 50, 100):
            await call.progress(done, 100, f"{done} of 100")
            await asyncio.sleep(STEP_SECONDS)
        return text_result("Progress was reported three times.")

    async def reconnection(call: Call) -> JsonObject:
        await call.log("info", "before the stream closes")
        await call.drop_stream()
        await asyncio.sleep(10 * STEP_SECONDS)
        await call.log("info", "after the client came back")
        return text_result("The stream was closed in the middle of this call.")

    return [
        tool("test_tool_with_logging", "Logs while it runs.", logging),
        tool("test_logging_tool", "Logs once.", log_once),
        tool("test_tool_with_progress", "Reports progress while it runs.", progress),
        tool("test_reconnection", "Closes its stream and goes on.", reconnection),
    ]


def _asking_tools() -> list[Tool]:
    prompt_schema: JsonObject = {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]}
    message_schema: JsonObject = {
        "type": "object",
        "properties": {"message": {"type": "string"}},
        "required": ["message"],
    }

    async def sampling(call: Call) -> JsonObject:
        question = sample(str(arguments_of(call).get("prompt", "")))
        answer = (await call.ask({"completion": question}))["completion"]
        return text_result(f"LLM response: {sampled_text(answer)}")

    async def elicitation(call: Call) -> JsonObject:
        fields: JsonObject = {"response": {"type": "string", "description": "Your answer."}}
        question = elicit_form(str(arguments_of(call).get("message", "")), fields, ["response"])
        return _elicited((await call.ask({"response": question}))["response"])

    async def defaults(call: Call) -> JsonObject:
        question = elicit_form("Please check these details.", DEFAULT_FIELDS)
        return _elicited((await call.ask({"details": question}))["details"])

    async def enums(call: Call) -> JsonObject:
        question = elicit_form("Please choose.", ENUM_FIELDS, list(ENUM_FIELDS))
        return _elicited((await call.ask({"choices": question}))["choices"])

    async def streaming(call: Call) -> JsonObject:
        fields: JsonObject = {"word": {"type": "string"}}
        return _elicited((await call.ask({"word": elicit_form("Please give a word.", fields)}))["word"])

    async def missing(call: Call) -> JsonObject:
        if "sampling" not in call.capabilities:
            data: JsonObject = {"requiredCapabilities": {"sampling": {}}}
            raise RpcError(MISSING_CAPABILITY, "This tool needs the sampling capability", data, status=400)
        return text_result("The client declared sampling.")

    return [
        tool("test_sampling", "Asks the client's model.", sampling, prompt_schema),
        tool("test_elicitation", "Asks the person.", elicitation, message_schema),
        tool("test_elicitation_sep1034_defaults", "Asks with a default for each type.", defaults),
        tool("test_elicitation_sep1330_enums", "Asks with each kind of enumeration.", enums),
        tool("test_streaming_elicitation", "Asks the person for a word.", streaming),
        tool("test_missing_capability", "Refuses clients without sampling.", missing),
    ]


DEFAULT_FIELDS: JsonObject = {
    "name": {"type": "string", "description": "Name", "default": "John Doe"},
    "age": {"type": "integer", "description": "Age", "default": 30},
    "score": {"type": "number", "description": "Score", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "description": "Verified", "default": True},
}
ENUM_FIELDS: JsonObject = {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
        "type": "string",
        "oneOf": [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}],
    },
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option one", "Option two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {
        "type": "array",
        "items": {"anyOf": [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]},
    },
}


def _round_trip_tools() -> list[Tool]:
    ask_name = elicit_form("What is your name?", NAME, ["name"])
    confirm = elicit_form("Please confirm", {"ok": {"type": "boolean"}}, ["ok"])

    async def elicitation(call: Call) -> JsonObject:
        answer = (await call.ask({"user_name": ask_name}))["user_name"]
        return text_result(f"Hello, {form_value(answer, 'name')}!")

    async def sampling(call: Call) -> JsonObject:
        answer = (await call.ask({"capital_question": sample("What is the capital of France?")}))["capital_question"]
        return text_result(f"The model said: {sampled_text(answer)}")

    async def roots(call: Call) -> JsonObject:
        answer = (await call.ask({"client_roots": list_roots()}))["client_roots"]
        listed = answer.get("roots")
        uris = [str(root.get("uri")) for root in listed if isinstance(root, dict)] if isinstance(listed, list) else []
        return text_result(f"{len(uris)} roots: {', '.join(uris)}")

    async def state(call: Call) -> JsonObject:
        await call.ask({"confirm": confirm}, stateful=True)
        return text_result("state-ok")

    async def multiple(call: Call) -> JsonObject:
        questions = {"user_name": ask_name, "greeting": sample("Write a greeting", 50), "client_roots": list_roots()}
        answers = await call.ask(questions, stateful=True)
        return text_result(f"{sampled_text(answers['greeting'])} {form_value(answers['user_name'], 'name')}")

    async def rounds(call: Call) -> JsonObject:
        first = (await call.ask({"step1": ask_name}, stateful=True))["step1"]
        colour = elicit_form("What is your favourite colour?", {"color": {"type": "string"}}, ["color"])
        second = (await call.ask({"step2": colour}))["step2"]
        return text_result(f"{form_value(first, 'name')} likes {form_value(second, 'color')}.")

    async def capabilities(call: Call) -> JsonObject:
        questions: Questions = {
            **({"sample": sample("Say hello", 50)} if "sampling" in call.capabilities else {}),
            **({"ask": ask_name} if "elicitation" in call.capabilities else {}),
        }
        if not questions:
            return text_result("Nothing can be asked of this client.")
        await call.ask(questions, stateful=True)
        return text_result("All that this client can be asked was answered.")

    prefix = "test_input_required_result_"
    return [
        tool(f"{prefix}elicitation", "Asks for a name.", elicitation),
        tool(f"{prefix}sampling", "Asks the model for a capital.", sampling),
        tool(f"{prefix}list_roots", "Asks for the roots.", roots),
        tool(f"{prefix}request_state", "Asks, with state.", state),
        tool(f"{prefix}multiple_inputs", "Asks three things at once.", multiple),
        tool(f"{prefix}multi_round", "Asks twice, one after the other.", rounds),
        tool(f"{prefix}tampered_state", "Asks, and refuses state that was changed.", state),
        tool(f"{prefix}capabilities", "Asks only what the client can answer.", capabilities),
    ]


def _schema_tools() -> list[Tool]:
    schema: JsonObject = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }

    async def echo(call: Call) -> JsonObject:
        return text_result(json.dumps(arguments_of(call)))

    return [tool("json_schema_2020_12_tool", "Its schema uses most of JSON Schema 2020-12.", echo, schema)]


def _change_tools(content: Content) -> list[Tool]:
    async def tools(_: Call) -> JsonObject:
        content.list_changed("tools")
        return text_result("The tool list was announced as changed.")

    async def prompts(_: Call) -> JsonObject:
        content.list_changed("prompts")
        return text_result("The prompt list was announced as changed.")

    return [
        tool("test_trigger_tool_change", "Announces a change of the tool list.", tools),
        tool("test_trigger_prompt_change", "Announces a change of the prompt list.", prompts),
    ]


def _prompts() -> list[Prompt]:
    def messages(*contents: JsonObject) -> JsonObject:
        return {"messages": [{"role": "user", "content": content} for content in contents]}

    def text(value: str) -> JsonObject:
        return {"type": "text", "text": value}

    async def with_arguments(call: Call) -> JsonObject:
        given = arguments_of(call)
        return messages(text(f"Prompt with arguments: arg1='{given.get('arg1')}', arg2='{given.get('arg2')}'"))

    async def with_resource(call: Call) -> JsonObject:
        uri = str(arguments_of(call).get("resourceUri"))
        resource: JsonObject = {"uri": uri, "mimeType": "text/plain", "text": "Embedded resource content for testing."}
        return messages({"type": "resource", "resource": resource}, text("Please use the resource above."))

    async def with_question(call: Call) -> JsonObject:
        question = elicit_form("Which context should the prompt use?", {"context": {"type": "string"}}, ["context"])
        answer = (await call.ask({"user_context": question}))["user_context"]
        return messages(text(f"Use this context: {form_value(answer, 'context')}"))

    def argument(name: str) -> JsonObject:
        return {"name": name, "description": f"The argument {name}.", "required": True}

    simple = messages(text("This is a simple prompt for testing."))
    image = messages(IMAGE, text("Please describe the image above."))
    return [
        Prompt({"name": "test_simple_prompt", "description": "No arguments."}, fixed(simple)),
        Prompt(
            {
                "name": "test_prompt_with_arguments",
                "description": "Two arguments.",
                "arguments": [argument("arg1"), argument("arg2")],
            },
            with_arguments,
        ),
        Prompt(
            {
                "name": "test_prompt_with_embedded_resource",
                "description": "Embeds a resource.",
                "arguments": [argument("resourceUri")],
            },
            with_resource,
        ),
        Prompt({"name": "test_prompt_with_image", "description": "Holds an image."}, fixed(image)),
        Prompt({"name": "test_input_required_result_prompt", "description": "Asks for its context."}, with_question),
    ]


def _resources() -> list[Resource]:
    def text(uri: str, value: str) -> JsonObject:
        return {"contents": [{"uri": uri, "mimeType": "text/plain", "text": value}]}

    static, binary, watched = "test://static-text", "test://static-binary", "test://watched-resource"
    blob: JsonObject = {"contents": [{"uri": binary, "mimeType": "image/png", "blob": PIXEL_PNG}]}
    return [
        Resource(
            {"uri": static, "name": "static-text", "description": "A text.", "mimeType": "text/plain"},
            fixed(text(static, "This is the content of the static text resource.")),
        ),
        Resource(
            {"uri": binary, "name": "static-binary", "description": "An image.", "mimeType": "image/png"}, fixed(blob)
        ),
        Resource(
            {"uri": watched, "name": "watched-resource", "description": "Can be watched.", "mimeType": "text/plain"},
            fixed(text(watched, "Watched resource content")),
        ),
    ]


def _template() -> Template:
    start, end = "test://template/", "/data"

    async def read(call: Call) -> JsonObject:
        uri = str(call.params["uri"])
        key = uri[len(start) : -len(end)]
        value = json.dumps({"id": key, "templateTest": True, "data": f"Data for ID: {key}"})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": value}]}

    def matches(uri: str) -> bool:
        return uri.startswith(start) and uri.endswith(end) and len(uri) > len(start) + len(end)

    definition: JsonObject = {
        "uriTemplate": "test://template/{id}/data",
        "name": "template",
        "description": "Data for an id.",
        "mimeType": "application/json",
    }
    return Template(definition, matches, read)


def _elicited(answer: JsonObject) -> JsonObject:
    return text_result(f"action={answer.get('action')}, content={json.dumps(answer.get('content'))}")
