"""Faults as answers: a tool result with `isError` for an admitted `tools/call`, else a JSON-RPC error (docs/errors.md, Verdicts)."""

from __future__ import annotations

from interlock.model.fault import Fault
from interlock.wire import messages
from interlock.wire.codes import code_of
from interlock.wire.eras import Era


def facts(fault: Fault, build: str) -> dict[str, object]:
    """The machine-readable part, the same in both forms: what failed, where, what may have happened, what to do."""
    data: dict[str, object] = {
        "interlock": build,
        "error": fault.slug,
        "server": fault.server,
        "stage": fault.stage.value,
        "verdict": fault.verdict.value,
        "retry": fault.retry,
    }
    if fault.wait_seconds is not None:
        data["wait_seconds"] = fault.wait_seconds
    if fault.authorize_url is not None:
        data["authorize_url"] = fault.authorize_url
    if fault.approval_id is not None:
        data["approval_id"] = fault.approval_id
    return data


def told(fault: Fault, build: str) -> str:
    """The text: who speaks, then what may have become of the call and so what to do, then why."""
    return f"interlock {build}: {fault.verdict.value}: {fault.message}"


def error_body(fault: Fault, build: str, code: int | None = None) -> bytes:
    """A JSON-RPC error object. One with a code of the protocol's own reads as any server's would: `data` has the rest."""
    number = code_of(fault.slug) if code is None else code
    text = fault.message if number < 0 else told(fault, build)
    return messages.error_body(number, text, facts(fault, build))


def with_notice(body: bytes, text: str) -> bytes:
    """A tool's result with a text of ours behind its content. As it was where it has no content to put it behind."""
    members = messages.try_map(body) or {}
    content = messages.try_list(members.get("content"))
    if content is None:
        return body
    content.append(messages.raw({"type": "text", "text": f"[{text}]"}))
    members["content"] = messages.raw(content)
    return messages.write_map(members)


def tool_result(fault: Fault, build: str, era: Era) -> bytes:
    """A `tools/call` result: the text is for the model, `_meta` for programs."""
    result: dict[str, object] = {
        "content": [{"type": "text", "text": told(fault, build)}],
        "isError": True,
        "_meta": facts(fault, build),
    }
    if era is Era.MODERN:
        result["resultType"] = "complete"
    return messages.encode(result)
