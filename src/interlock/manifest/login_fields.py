"""The fields of a remote transport that say who calls: headers, OAuth, a personal access token, and session binding."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.manifest.shapes import (
    EitherField,
    Field,
    FlagField,
    Implies,
    ListField,
    LiteralField,
    MapField,
    NumberField,
    Only,
    RecordField,
    TextField,
)

_ENV_NAME = r"^[A-Za-z_][A-Za-z0-9_().-]*$"
_ENV_RULE = "made of letters, digits and `_`, not beginning with a digit"


def env_name(about: str, example: str) -> TextField:
    """The name of an environment variable, on any platform."""
    return TextField(about=about, example=example, pattern=_ENV_NAME, rule=_ENV_RULE, most=128)


def secret_file(what: str, example: str) -> TextField:
    """The path of a file that holds one secret."""
    return TextField(
        about=f"File that holds the {what} and nothing else, relative to the manifest's folder; `~` is your home "
        "directory. Only you may be able to read it.",
        example=example,
        most=4096,
    )


HEADER_NAME = TextField(
    about="A header's name.",
    example="Authorization",
    pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$",
    rule="an HTTP header name (RFC 9110, section 5.1)",
    most=128,
)

HEADER = EitherField(
    about="The header's value: a literal that is no secret, or a reference to an environment variable or a file.",
    example='Authorization: {fromEnv: ACME_TOKEN, prefix: "Bearer "}',
    literal=LiteralField(about="A value that is no secret.", example="X-Team: platform"),
    table=RecordField(
        about="A value by reference, or a literal that only looks like a secret.",
        example='{fromEnv: ACME_TOKEN, prefix: "Bearer "}',
        only_one=("fromEnv", "fromFile", "literal"),
        fields={
            "fromEnv": env_name(
                "Environment variable that holds the value, read when the server is first needed.",
                "fromEnv: ACME_TOKEN",
            ),
            "fromFile": secret_file("value", "fromFile: ~/.interlock/secrets/acme-token"),
            "prefix": TextField(
                about="Text before the variable's or the file's value.",
                example='prefix: "Bearer "',
                least=0,
                most=64,
                pattern=r"^[\u0020-\u007e]*$",
                rule="of printable ASCII characters",
            ),
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

_OAUTH = RecordField(
    about="How Interlock gets its grant, with `auth: oauth`. Everything that is not set is found out from the server.",
    example="oauth: {flow: device}",
    at_most_one=("clientId", "clientIdEnv", "clientMetadataUrl"),
    implies=(
        Implies(field="flow", values=("client-credentials",), needs=("clientSecretEnv",)),
        Implies(field="clientSecretEnv", needs=("clientId", "clientIdEnv")),
    ),
    fields={
        "flow": TextField(
            about="`browser`: a person logs in at a browser on this machine. `device`: with a code, at any browser. "
            "`client-credentials`: nobody does; the client has a secret of its own.",
            example="flow: device",
            choices=("browser", "device", "client-credentials"),
            default="browser",
        ),
        "clientId": TextField(
            about="The client id that the authorization server's administrator gave out. Without one, Interlock "
            "registers itself where the server allows it.",
            example="clientId: interlock-desktop",
            most=512,
        ),
        "clientIdEnv": env_name("Environment variable that holds the client id.", "clientIdEnv: ACME_CLIENT_ID"),
        "clientSecretEnv": env_name(
            "Environment variable that holds the client's secret.", "clientSecretEnv: ACME_CLIENT_SECRET"
        ),
        "clientMetadataUrl": TextField(
            about="Address of a Client ID Metadata Document that you host for Interlock; it is the client id where "
            "the authorization server supports that.",
            example="clientMetadataUrl: https://example.com/interlock/client.json",
            pattern=r"^https://[^\s@#?/]+/[^\s@#?]+$",
            rule="an https:// URL with a path, without user, password, query or fragment",
            most=2048,
        ),
        "resource": TextField(
            about="Sent as `resource` (RFC 8707) in place of what the server's own metadata says. Needed where an "
            "authorization server knows the server by another name.",
            example="resource: https://mcp.example.com/mcp",
            pattern=r"^[A-Za-z][A-Za-z0-9+.-]*:[^\s#]+$",
            rule="an absolute URI without fragment (RFC 8707, section 2)",
            most=2048,
        ),
        "issuer": TextField(
            about="The only authorization server to sign in at, by its issuer identifier. Without it, the one that the server "
            "names; a configured client then stays with the one that it was first used with.",
            example="issuer: https://login.example.com",
            pattern=r"^https?://[^\s@#?]+$",
            rule="an http:// or https:// URL without user, password, query or fragment (RFC 8414, section 2)",
            most=2048,
        ),
        "callbackPort": NumberField(
            about="Port on this machine that the browser returns to. Set it where the client id is registered for "
            "one port. Default: a stable one of Interlock's own.",
            example="callbackPort: 33418",
            least=1024,
            most=65535,
            whole=True,
        ),
        "allowMissingPkce": FlagField(
            about="`true` goes on where the authorization server does not say that it checks PKCE. That does not "
            "conform to the specification: a stolen code could then be used.",
            example="allowMissingPkce: true",
            default=False,
        ),
    },
)

_TOKEN = RecordField(
    about="Where the personal access token is read, with `auth: token`. The variable is tried first, then the file.",
    example="token: {fromEnv: ACME_TOKEN}",
    some=("fromEnv", "fromFile"),
    secret=True,
    fields={
        "fromEnv": env_name("Environment variable that holds the token.", "fromEnv: ACME_TOKEN"),
        "fromFile": secret_file("token", "fromFile: ~/.config/acme/token"),
    },
)

_SESSION = RecordField(
    about="What binds a session with the server to its caller.",
    example="session: {headers: {X-Agent: {fromEnv: AGENT_NAME}}}",
    some=("headers", "replay"),
    fields={
        "headers": MapField(
            about="HTTP headers sent with the request that opens a session; with every request where the protocol "
            "has no sessions.",
            example="headers: {X-Agent: {fromEnv: AGENT_NAME}}",
            key=HEADER_NAME,
            value=HEADER,
        ),
        "replay": ListField(
            about="Calls that are made again when the session had to be rebuilt, before anything else is sent.",
            example="replay: [{tool: register, remember: [name]}]",
            most=16,
            item=RecordField(
                about="One call that is made again.",
                example="{tool: register, remember: [name]}",
                required=("tool",),
                fields={
                    "tool": TextField(
                        about="The tool's own name. Its last successful call is repeated; without one, nothing is.",
                        example="tool: register",
                        most=512,
                    ),
                    "remember": ListField(
                        about="Arguments that are kept for it, in memory only. Without it all.",
                        example="remember: [name]",
                        item=TextField(about="An argument's name.", example="name", most=256),
                        most=100,
                    ),
                },
            ),
        ),
    },
)

LOGIN: Mapping[str, Field] = {
    "auth": TextField(
        about="How Interlock logs in to the server. `none` sends only `headers`; `oauth` gets a grant, with "
        "`interlock login`; `token` sends the personal access token that `token` names.",
        example="auth: oauth",
        choices=("none", "oauth", "token"),
        default="none",
    ),
    "scopes": ListField(
        about="OAuth scopes to ask for, in place of those that the server names.",
        example="scopes: [issues.read]",
        item=TextField(
            about="One scope.",
            example="issues.read",
            most=256,
            pattern=r"^[\u0021\u0023-\u005b\u005d-\u007e]+$",
            rule="one scope of printable ASCII characters, without space, quote or backslash (RFC 6749, section 3.3)",
        ),
    ),
    "oauth": _OAUTH,
    "token": _TOKEN,
    "session": _SESSION,
}
LOGIN_NEEDS = (Implies(field="auth", values=("token",), needs=("token",)),)
LOGIN_ONLY = (
    Only(field="scopes", other="auth", value="oauth"),
    Only(field="oauth", other="auth", value="oauth"),
    Only(field="token", other="auth", value="token"),
)
