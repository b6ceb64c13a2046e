"""The fields of `transports`: how each kind of server is reached."""

from __future__ import annotations

from interlock.manifest.login_fields import HEADER, HEADER_NAME, LOGIN, LOGIN_NEEDS, LOGIN_ONLY, env_name, secret_file
from interlock.manifest.shapes import (
    EitherField,
    FlagField,
    Implies,
    ListField,
    LiteralField,
    MapField,
    RecordField,
    TextField,
)

_ENV = EitherField(
    about="The variable's value: a literal that is no secret, or a reference to an environment variable or a file.",
    example="LOG_LEVEL: info",
    literal=LiteralField(about="A value that is no secret.", example="LOG_LEVEL: info"),
    table=RecordField(
        about="A value by reference, or a literal that only looks like a secret.",
        example="{fromEnv: MY_TOKEN}",
        only_one=("fromEnv", "fromFile", "literal"),
        fields={
            "fromEnv": env_name("Variable of Interlock's own environment whose value is copied.", "fromEnv: MY_TOKEN"),
            "fromFile": secret_file("value", "fromFile: ~/.interlock/secrets/issues-token"),
            "literal": LiteralField(about="The value itself.", example='literal: "3f2a..."'),
            "notSecret": FlagField(
                about="Says that `literal` is public although it looks like a secret. Known token "
                "formats stay refused.",
                example="notSecret: true",
                default=False,
            ),
        },
    ),
)


def _remote(about: str, path: str) -> RecordField:
    return RecordField(
        about=about,
        example=f"{path}: {{endpoint: https://mcp.example.com/mcp}}",
        only_one=("endpoint", "endpointEnv"),
        implies=LOGIN_NEEDS,
        only=LOGIN_ONLY,
        fields={
            "endpoint": TextField(
                about="The server's URL. No user, password, fragment or secret in it.",
                example="endpoint: https://mcp.example.com/mcp",
                pattern=r"^https?://[^\s@#/?][^\s@#]*$",
                rule="an http:// or https:// URL without user, password or fragment",
                most=2048,
            ),
            "endpointEnv": env_name(
                "Environment variable that holds the URL, read when the server is first needed. Use it where the "
                "URL itself is a secret.",
                "endpointEnv: ACME_MCP_URL",
            ),
            "headers": MapField(
                about="HTTP headers sent with every request to this server.",
                example='headers: {Authorization: {fromEnv: ACME_TOKEN, prefix: "Bearer "}}',
                key=HEADER_NAME,
                value=HEADER,
            ),
            **LOGIN,
        },
    )


def _command(about: str, example: str) -> ListField:
    return ListField(
        about=about,
        example=example,
        least=1,
        most=256,
        item=TextField(
            about="The program, then its arguments; no shell reads them.",
            example="node",
            least=0,
            most=8192,
            pattern=r"^[^\u0000]*$",
            rule="without a NUL character",
        ),
    )


TRANSPORTS = RecordField(
    about="How to reach the server. At least one of `http`, `sse` and `stdio`.",
    example="transports: {stdio: {command: [npx, -y, some-mcp-server]}}",
    some=("http", "sse", "stdio"),
    implies=(
        Implies(field="preferred", values=("streamable-http", "http"), needs=("http",)),
        Implies(field="preferred", values=("sse",), needs=("sse",)),
        Implies(field="preferred", values=("stdio",), needs=("stdio",)),
    ),
    fields={
        "preferred": TextField(
            about="Which transport to use where several are declared. Without it: the first declared of "
            "http, sse, stdio. "
            "Interlock never changes over to another one at run time.",
            example="preferred: stdio",
            choices=("streamable-http", "http", "sse", "stdio"),
        ),
        "http": _remote("Streamable HTTP.", "http"),
        "sse": _remote("The HTTP+SSE transport of protocol revision 2024-11-05.", "sse"),
        "stdio": RecordField(
            about="A child process that speaks on its standard input and output.",
            example="stdio: {command: [npx, -y, some-mcp-server]}",
            only_one=("command", "commandByPlatform"),
            fields={
                "command": _command("Program and arguments, as a list.", "command: [npx, -y, some-mcp-server]"),
                "commandByPlatform": RecordField(
                    about="Program and arguments for each operating system.",
                    example="commandByPlatform: {windows: [node.exe, server.js], linux: [node, server.js]}",
                    some=("windows", "linux", "macos"),
                    fields={
                        "windows": _command("On Windows.", "windows: [node.exe, server.js]"),
                        "linux": _command("On Linux.", "linux: [node, server.js]"),
                        "macos": _command("On macOS.", "macos: [node, server.js]"),
                    },
                ),
                "cwd": TextField(
                    about="The process's directory, relative to the manifest's folder; `~` is your home "
                    "directory. Default: the manifest's folder.",
                    example="cwd: tools/issue-mcp",
                    most=4096,
                ),
                "env": MapField(
                    about="Variables that the process gets, besides a small safe base (PATH, HOME, language, "
                    "temporary folder).",
                    example="env: {LOG_LEVEL: info, API_TOKEN: {fromEnv: MY_TOKEN}}",
                    key=env_name("A variable's name.", "LOG_LEVEL"),
                    value=_ENV,
                ),
                "envNames": ListField(
                    about="Variables that are copied from Interlock's own environment under the same name.",
                    example="envNames: [ACME_MCP_TOKEN]",
                    item=env_name("A variable's name.", "ACME_MCP_TOKEN"),
                ),
            },
        ),
    },
)
