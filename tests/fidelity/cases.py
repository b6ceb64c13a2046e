"""The table: what a server says, byte for byte, and what a client of each era gets. Each change has its reason here.

Notation: a result is written as its members without the braces. `expected` gives members where they differ from what was
said; without it they must be the same, byte for byte. The members that an era itself adds are added by `said` and `heard`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from interlock import __version__

from .peer import Era
from .peer import members as members_of

KEY = "raw"
INFO = f'"io.modelcontextprotocol/serverInfo":{{"name":"interlock","version":"{__version__}","title":"Interlock"}}'
TTL, SCOPE = 86_400_123, "public"
"""What the modern server says of everything that may be cached."""


@dataclass(frozen=True, slots=True)
class Row:
    """One result. `why` explains each entry of `expected`, whose keys are (up, down, names) with `*` for any."""

    id: str
    method: str
    members: str
    expected: dict[tuple[str, str, str], str] = field(default_factory=dict)
    why: str = ""
    only: tuple[str, str] = ("*", "*")
    """Era and transport of the server, where the row makes no sense with others."""

    def members_for(self, up: Era, down: Era, names: str) -> str:
        for (one, two, three), members in self.expected.items():
            if one in ("*", up) and two in ("*", down) and three in ("*", names):
                return members
        return self.members


CACHEABLE = ("resources/read",)


def said(row: Row, up: Era) -> bytes:
    """The whole result as the server says it."""
    parts = [row.members] if row.members else []
    if up == "modern":
        parts.insert(0, '"resultType":"complete"')
        if row.method in CACHEABLE:
            parts.append(f'"ttlMs":{TTL},"cacheScope":"{SCOPE}"')
    return ("{" + ",".join(parts) + "}").encode("utf-8", "surrogateescape")


def heard(row: Row, up: Era, down: Era, names: str) -> bytes:
    """The whole result as the client must get it."""
    members = row.members_for(up, down, names)
    parts = [members] if members else []
    if down == "modern":
        parts.insert(0, '"resultType":"complete"')
        if row.method in CACHEABLE:
            ttl, scope = (TTL, SCOPE) if up == "modern" else (0, "private")
            parts.append(f'"ttlMs":{ttl},"cacheScope":"{scope}"')
        if not any(name == "_meta" for name, _ in members_of(("{" + members + "}").encode())):
            parts.append('"_meta":{' + INFO + "}")
    return ("{" + ",".join(parts) + "}").encode()


TEXT = '{"type":"text","text":"hi"}'
NUMBERS = (
    '"structuredContent":{"one":1.0,"zero":-0.0,"e":1E+5,"big":9007199254740993,"bigger":123456789012345678901234567890,'
    '"small":1e-7,"huge":1e999,"long":0.1000000000000000055511151231257827}'
)

RESULTS: tuple[Row, ...] = (
    Row("plain", "tools/call", f'"content":[{TEXT}]'),
    Row("nothing", "tools/call", ""),
    Row("error", "tools/call", f'"content":[{TEXT}],"isError":true'),
    Row(
        "unknown members", "tools/call",
        '"x-top":{"n":1.0},"content":[{"type":"text","text":"hi","x-item":{"b":1,"a":[1.0,2e5]},"annotations":{"audience":["user"],'
        '"priority":0.50,"x-a":1},"_meta":{"com.example/k":1}},{"type":"image","data":"AAAA","mimeType":"image/png","x-i":null},'
        '{"type":"audio","data":"AAAA","mimeType":"audio/wav","x-i":[]}],"isError":false,"x-null":null,"x-empty":{}',
    ),
    Row(
        "unknown content types", "tools/call",
        '"content":[{"type":"com.example/hologram","payload":{"z":1,"a":[{}]}},{"type":"thinking","text":"hm"},{"no":"type"},7]',
    ),
    Row("numbers", "tools/call", f'"content":[],{NUMBERS}'),
    Row("key order", "tools/call", '"structuredContent":{"z":{"y":1,"b":2},"a":1,"m":0},"isError":false,"content":[]'),
    Row(
        "escapes and other scripts", "tools/call",
        '"content":[{"type":"text","text":"\\u00e9\\/\\"\\\\ \\ud83d\\ude00 \\u0000 \\u2028 '
        'é 世界 😀 \u2028 \x7f","\\u00fc":1}],"é":"\\u0041"',
    ),
    Row(
        "escapes in names", "tools/call", '"content":[],"x-\\u00fc\\/":{"x-\\u00fc":1}',
        {
            ("legacy", "modern", "*"): '"content":[],"x-ü/":{"x-\\u00fc":1}',
            ("modern", "legacy", "*"): '"content":[],"x-ü/":{"x-\\u00fc":1}',
        },
        "where the outermost object is written anew, its names are written plainly",
    ),
    Row(
        "names of the envelope inside", "tools/call",
        '"content":[],"jsonrpc":"2.0","id":99,"method":"x","params":{"jsonrpc":"2.0"},"result":{"result":1},"error":{"code":1}',
    ),
    Row(
        "white space", "tools/call", ' "content" : [ { "type":"text",\t"text":"a  b" } ] , "x" :  1 ',
        {
            ("legacy", "modern", "*"): '"content":[ { "type":"text",\t"text":"a  b" } ],"x":1',
            ("modern", "legacy", "*"): '"content":[ { "type":"text",\t"text":"a  b" } ],"x":1',
        },
        "where members have to be added or taken away, the outermost object is written anew; its values are not touched",
    ),
    Row(
        "line breaks", "tools/call", '"content":[\n  {"type":"text",\r\n   "text":"a"}\n],"x":1',
        {("*", "*", "*"): '"content":[   {"type":"text",     "text":"a"} ],"x":1'},
        "line breaks between tokens become spaces: the client may be one that takes a message a line", ("*", "http"),
    ),
    Row(
        "cut surrogate", "tools/call", r'"content":[{"type":"text","text":"cut \ud83d"}],"x":"\\ud83d \udc00"',
        {("*", "*", "*"): r'"content":[{"type":"text","text":"cut \ufffd"}],"x":"\\ud83d \ufffd"'},
        "half a surrogate pair is no character: some hosts refuse the whole message for one",
    ),
    Row(
        "not UTF-8", "tools/call", '"content":[{"type":"text","text":"caf\udce9"}]',
        {("*", "*", "*"): '"content":[{"type":"text","text":"caf\ufffd"}]'},
        "JSON is UTF-8 (RFC 8259, 8.1); the byte is shown as U+FFFD, and the rest of the answer arrives",
    ),
    Row(
        "repeated members", "tools/call", '"content":[{"type":"text","text":"one","text":"two"}],"x":1,"x":2',
        {
            ("legacy", "modern", "*"): '"content":[{"type":"text","text":"one","text":"two"}],"x":2',
            ("modern", "legacy", "*"): '"content":[{"type":"text","text":"one","text":"two"}],"x":2',
        },
        "where the outermost object is written anew, the last of two members with one name stays",
    ),
    Row(
        "_meta of others", "tools/call", '"content":[],"_meta":{"com.example/x":{"n":1.0},"traceparent":"00-a-b-01"},"x":1',
        {("*", "modern", "*"): f'"content":[],"_meta":{{"com.example/x":{{"n":1.0}},"traceparent":"00-a-b-01",{INFO}}},"x":1'},
        "the modern era names who answers, which is Interlock",
    ),
    Row(
        "_meta that names somebody", "tools/call",
        '"content":[],"_meta":{"io.modelcontextprotocol\\/serverInfo":{"name":"Interlock"},"io.modelcontextprotocol/related":"r"}',
        {
            ("*", "modern", "*"): f'"content":[],"_meta":{{"io.modelcontextprotocol/related":"r",{INFO}}}',
            ("*", "legacy", "*"): '"content":[],"_meta":{"io.modelcontextprotocol/related":"r"}',
        },
        "who a server says it is describes one hop, and no server may pose as another; other names of the protocol pass",
    ),
    Row(
        "structured content that is no object", "tools/call", '"content":[],"structuredContent":[1.0,{"b":1,"a":2}]',
        {("modern", "legacy", "*"): r'"content":[{"type":"text","text":"[1.0,{\"b\":1,\"a\":2}]"}]'},
        "the legacy era has objects only; the value still reaches the model as text", ("modern", "*"),
    ),
    Row(
        "resources inside", "tools/call",
        '"content":[{"type":"resource_link","uri":"file:///a","name":"a","x-l":1.0},{"type":"resource","resource":{"uri":"file:///b",'
        '"text":"t","x-r":{"uri":"file:///c"}},"x-e":1}],"structuredContent":{"uri":"file:///d"}',
        {
            ("*", "*", "prefixed"):
            '"content":[{"type":"resource_link","uri":"raw+file:///a","name":"a","x-l":1.0},{"type":"resource","resource":{"uri":'
            '"raw+file:///b","text":"t","x-r":{"uri":"file:///c"}},"x-e":1}],"structuredContent":{"uri":"file:///d"}',
        },
        "a URI that the client may read next leads back to its server",
    ),
    Row(
        "prompt", "prompts/get",
        '"description":"d","messages":[{"role":"user","content":{"type":"text","text":"hi","x-c":1.0},"x-m":{"z":1,"a":2}},'
        '{"role":"narrator","content":{"type":"com.example/odd","v":[9007199254740993]}}],"x-p":1E+2',
    ),
    Row(
        "resource", "resources/read",
        '"contents":[{"uri":"file:///one","mimeType":"text/plain","text":"\\u00e9","x-c":1.0,"_meta":{"com.example/k":1}},'
        '{"uri":"file:///two","blob":"AAAA","x-b":{"z":1,"a":2}}],"x-r":9007199254740993',
        {
            ("*", "*", "prefixed"):
            '"contents":[{"uri":"raw+file:///one","mimeType":"text/plain","text":"\\u00e9","x-c":1.0,"_meta":{"com.example/k":1}},'
            '{"uri":"raw+file:///two","blob":"AAAA","x-b":{"z":1,"a":2}}],"x-r":9007199254740993',
        },
        "as above",
    ),
    Row(
        "completion", "completion/complete",
        '"completion":{"values":["a","\\u00e9"],"total":1.0,"hasMore":false,"x-v":[1,{"z":1,"a":2}]},"x-top":123456789012345678901',
    ),
    Row("method that nobody knows", "com.example/do", '"anything":{"z":1.0,"a":[]},"uri":"file:///a"'),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ErrorRow:
    """One error object, and what clients of the modern and the legacy era get where it differs."""

    id: str
    error: str
    modern: str | None = None
    legacy: str | None = None
    why: str = ""

    def heard(self, down: Era) -> bytes:
        return (getattr(self, down) or self.error).encode()


ERRORS: tuple[ErrorRow, ...] = (
    ErrorRow("invalid params", '{"code":-32602,"message":"no such thing"}'),
    ErrorRow("method not found", '{"code":-32601,"message":"Method not found"}'),
    ErrorRow("internal", '{"code":-32603,"message":"oops \\u00e9\\/ 世界"}'),
    ErrorRow("own code", '{"code":1234567890,"message":"mine","data":"text"}'),
    ErrorRow("order and space", '{ "message" : "m" , "code" : -1 }'),
    ErrorRow(
        "unknown members",
        '{"code":-32000,"message":"m","data":{"n":1.0,"big":9007199254740993,"z":1,"a":[null]},"x-e":{"retryable":true}}',
    ),
    ErrorRow(
        "resource not found",
        '{"code":-32002,"message":"Resource not found","data":{"uri":"file:///x"},"x-e":1.0}',
        modern='{"code":-32602,"message":"Resource not found","data":{"uri":"file:///x"},"x-e":1.0}',
        why="2026-07-28 took -32002 back and put -32602 in its place (basic/index, Error Codes)",
    ),
)

# Definitions: item by item, as listed, and as clients get them where that differs. Keys are (down, names).


@dataclass(frozen=True, slots=True)
class Item:
    kind: str
    raw: str
    expected: dict[tuple[str, str], str] = field(default_factory=dict)
    why: str = ""
    only: str = "*"

    def heard(self, down: Era, names: str) -> str:
        for (one, two), text in self.expected.items():
            if one in ("*", down) and two in ("*", names):
                return text
        if names == "verbatim":
            return self.raw
        # The one change that prefixed names make, in place: the name, or the URI.
        if self.kind in ("tools", "prompts"):
            return self.raw.replace('"name":"', f'"name":"{KEY}__', 1)
        mark = '"uriTemplate":"' if self.kind == "resourceTemplates" else '"uri":"'
        return self.raw.replace(mark, f"{mark}{KEY}+", 1)


_HEAVY = (
    '{"name":"heavy","title":"T \\u00e9","description":"d\\/","icons":[{"src":"https:\\/\\/x\\/i.png","mimeType":"image/png",'
    '"sizes":["48x48"],"theme":"dark","x-icon":1.0}],"inputSchema":{"$schema":"https://json-schema.org/draft/2020-12/schema",'
    '"type":"object","properties":{"b":{"$ref":"#/$defs/b"},"a":{"type":"number","default":1.0,"maximum":123456789012345678901234567890}'
    '},"required":["b"],"$defs":{"b":{"type":"string","enum":["z","a"]}},"x-in":{"k":[1,2.50]}},"outputSchema":{"type":"object",'
    '"properties":{"n":{"type":"integer","const":9007199254740993},"u":{"$ref":"#/$defs/u"}},"$defs":{"u":{}}},"annotations":{"title":"x",'
    '"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,"x-ann":{"deep":true}},"execution":{"taskSupport":"optional",'
    '"x-ex":1},"_meta":{"com.example/t":{"z":1,"a":1.0},"io.modelcontextprotocol/related":1},"x-unknown":[1.0,1E+5,null]}'
)

ITEMS: tuple[Item, ...] = (
    Item("tools", '{"name":"call","inputSchema":{"type":"object"}}'),
    Item("tools", _HEAVY),
    Item("tools", '{"inputSchema":{"type":"object","properties":{}},"x-first":1,"name":"last"}'),
    Item(
        "tools", '{ "name" : "spaced" , "inputSchema" : { "type" : "object" } }',
        {("*", "prefixed"): '{"name":"raw__spaced","inputSchema":{ "type" : "object" }}'},
        "the outermost object is written anew to change the name; its values are not touched",
    ),
    Item(
        "tools", '{"name":"hinted","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"x":1.0}}',
        {
            ("*", "verbatim"): '{"name":"hinted","inputSchema":{"type":"object"},"annotations":{"x":1.0}}',
            ("*", "prefixed"): '{"name":"raw__hinted","inputSchema":{"type":"object"},"annotations":{"x":1.0}}',
        },
        "some hosts run a tool on this hint alone, so it passes only where the manifest vouches for it",
    ),
    Item(
        "tools", '{"name":"listing","inputSchema":{"type":"object"},"outputSchema":{"type":"array","items":{}},"x":1}',
        {
            ("legacy", "verbatim"): '{"name":"listing","inputSchema":{"type":"object"},"x":1}',
            ("legacy", "prefixed"): '{"name":"raw__listing","inputSchema":{"type":"object"},"x":1}',
        },
        "the legacy era knows output schemas of objects only, and hosts drop the whole server for another", only="modern",
    ),
    Item(
        "prompts",
        '{"name":"ask","title":"A","description":"d","arguments":[{"name":"topic","title":"t","required":true,"x-arg":1.0}],"icons":'
        '[{"src":"data:,","x-i":1}],"_meta":{"com.example/p":1.0},"x-p":{"z":1,"a":2}}',
    ),
    Item(
        "resources",
        '{"uri":"file:///one","name":"one","title":"O","mimeType":"text/plain","size":9007199254740993,"annotations":{"audience":["user"],'
        '"priority":0.50,"lastModified":"2025-01-12T15:00:58Z","x-ann":1},"icons":[{"src":"data:,"}],"_meta":{"com.example/r":1},"x-r":1.0}',
    ),
    Item(
        "resources", '{"uri":"file:\\/\\/\\/two","name":"t\\u0077o","x":"\\/"}',
        {("*", "prefixed"): '{"uri":"raw+file:///two","name":"t\\u0077o","x":"\\/"}'},
        "the URI is written anew, so its escapes go; it stays the same URI",
    ),
    Item(
        "resourceTemplates",
        '{"uriTemplate":"file:///{path}","name":"files","mimeType":"x/y","annotations":{"priority":1.0,"x-a":[]},"_meta":{"a":1},"x-t":1.0}',
    ),
)  # fmt: skip

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
EXTRA = '"x-list":{"n":1.0,"z":1,"a":2}'
EXTRA_META = '"com.example/list":1E+2'
CAPABILITIES = (
    '{"tools":{"listChanged":true},"prompts":{"listChanged":true},"resources":{"subscribe":true,"listChanged":true},"completions":{},'
    '"logging":{},"experimental":{"com.example/x":{"n":1.0,"big":12345678901234567890}},"extensions":{"com.example/ui":{"z":1,"a":2}}}'
)
EXTRA_CAPABILITIES = (
    b'"experimental":{"com.example/x":{"n":1.0,"big":12345678901234567890}},'
    b'"extensions":{"com.example/ui":{"z":1,"a":2}}'
)
INSTRUCTIONS = 'Say é/ 世界 to "raw"'


def items(kind: str, up: Era) -> list[Item]:
    return [item for item in ITEMS if item.kind == kind and item.only in ("*", up)]


def pages(method: str, up: Era) -> list[bytes]:
    """A list of the server, an item a page, so that its cursors are needed and must not get out."""
    kind = LISTS[method]
    found = items(kind, up)
    made = []
    for number, item in enumerate(found):
        parts = [f'"{kind}":[{item.raw}]', EXTRA]
        if number + 1 < len(found):
            parts.insert(0, f'"nextCursor":"of-the-server-{number + 1}"')
        if up == "modern":
            parts.insert(0, f'"resultType":"complete","ttlMs":{TTL + number},"cacheScope":"{SCOPE}"')
            parts.append(
                '"_meta":{' + EXTRA_META + ',"io.modelcontextprotocol/serverInfo":{"name":"raw","version":"1"}}'
            )
        else:
            parts.append('"_meta":{' + EXTRA_META + "}")
        made.append(("{" + ",".join(parts) + "}").encode())
    return made


def heard_list(method: str, up: Era, down: Era, names: str) -> bytes:
    """The one page that a client gets of it."""
    kind = LISTS[method]
    parts = [f'"{kind}":[' + ",".join(item.heard(down, names) for item in items(kind, up)) + "]"]
    # Members of the list itself belong to one server; with several they would be nobody's.
    extra = names == "verbatim"
    if extra:
        parts.append(EXTRA)
    meta = [EXTRA_META] if extra else []
    if down == "modern":
        # Prefixed lists are filtered and named for one client, so nobody else may be given them.
        ttl, scope = (TTL, SCOPE if extra else "private") if up == "modern" else (0, "private")
        parts.append(f'"resultType":"complete","ttlMs":{ttl},"cacheScope":"{scope}"')
        meta.append(INFO)
    if meta:
        parts.append('"_meta":{' + ",".join(meta) + "}")
    return ("{" + ",".join(parts) + "}").encode()


def hello(up: Era) -> bytes:
    said = f'"capabilities":{CAPABILITIES},"instructions":"Say \\u00e9\\/ 世界 to \\"raw\\"","x-hello":1'
    info = '{"name":"raw","version":"1"}'
    if up == "legacy":
        return f'{{"protocolVersion":"2025-11-25",{said},"serverInfo":{info}}}'.encode()
    return (
        f'{{"supportedVersions":["2026-07-28"],{said},"resultType":"complete","ttlMs":1,"cacheScope":"public",'
        f'"_meta":{{"io.modelcontextprotocol/serverInfo":{info}}}}}'
    ).encode()
