"""The table of situations: which files lie on the stage. Every one is a right or a wrong thing that people really write.

Texts have PY, SERVER, URL, HOME and PROJECT between at-signs. `~/` is the home, `./` the project.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Files = Mapping[str, str | bytes]
FIRST = frozenset(
    (
        "one server", "one name in both", "http", "url without type", "a program that is missing", "disabled: true",
        "an entry without anything", "key `servers`", "a byte order mark", "a trailing comma", "a comment", "a syntax error",
        "a key twice", "env with a number", "type nonsense", "a variable that is missing", "mcp.excluded",
        "an extension and the user, one name", "an extension that is off", "a folder that is not trusted",
    )
)  # fmt: skip
"""Those that CI runs; the others carry the mark `hosts_more`."""
ENTRY = {"command": "@PY@", "args": ["@SERVER@"]}
BOM = b"\xef\xbb\xbf"


def entry(*args: str, **more: object) -> dict[str, object]:
    return {"command": "@PY@", "args": ["@SERVER@", *args], **more}


@dataclass(frozen=True, slots=True)
class Situation:
    host: str
    name: str
    files: Files
    environ: Mapping[str, str] = field(default_factory=dict)
    dead: frozenset[str] = frozenset()
    """Servers that cannot be reached, and that the host should say so of."""
    no_answer: str = ""
    """Why the host's list gives no answer here."""

    @property
    def id(self) -> str:
        return f"{self.host}: {self.name}"


@dataclass(frozen=True, slots=True)
class _Shape:
    """Where a host with `mcpServers` has its files, and what makes it trust the project."""

    user: str
    project: str
    around: Files
    http: Mapping[str, object]


SHAPES = {
    "claude-code": _Shape(
        "~/.claude.json", "./.mcp.json", {"~/.claude/settings.json": '{"enableAllProjectMcpServers": true}'},
        {"type": "http", "url": "@URL@"},
    ),
    "gemini-cli": _Shape(
        "~/.gemini/settings.json", "./.gemini/settings.json",
        {"~/.gemini/trustedFolders.json": '{"@PROJECT@": "TRUST_FOLDER"}'}, {"httpUrl": "@URL@"},
    ),
    "qwen-code": _Shape("~/.qwen/settings.json", "./.qwen/settings.json", {}, {"httpUrl": "@URL@"}),
    "copilot-cli": _Shape(
        "~/.copilot/mcp-config.json", "./.mcp.json", {"~/.copilot/config.json": '{"trusted_folders": ["@PROJECT@"]}'},
        {"type": "http", "url": "@URL@"},
    ),
}  # fmt: skip


def text(table: object, key: str = "mcpServers", **top: object) -> str:
    return json.dumps({key: table, **top}, indent=2)


def _common(host: str, shape: _Shape) -> Iterator[Situation]:
    """What all hosts with a JSON file and `mcpServers` are asked."""

    def case(
        name: str,
        user: str | bytes | None,
        project: str | bytes | None = None,
        dead: str = "",
        silent: str = "",
        **environ: str,
    ) -> Situation:
        files = dict(shape.around)
        if user is not None:
            files[shape.user] = user
        if project is not None:
            files[shape.project] = project
        return Situation(host, name, files, environ, frozenset(dead.split()), silent)

    one = text({"one": ENTRY})
    family = host in ("gemini-cli", "qwen-code")
    yield case("nothing at all", None)
    yield case("one server", one)
    yield case("one of the project", None, one)
    yield case("one of each", text({"mine": entry("mine")}), text({"ours": entry("ours")}))
    yield case("one name in both", text({"one": entry("mine", env={"A": "1"})}), text({"one": entry("ours")}))
    yield case("http", text({"web": shape.http}))
    yield case(
        "http that is not there",
        text({"web": json.loads(json.dumps(shape.http).replace("@URL@", "http://127.0.0.1:9/mcp"))}),
        dead="web",
    )
    # Qwen Code takes it for the older transport, which the server does not speak.
    yield case("url without type", text({"web": {"url": "@URL@"}}), dead="web" if host == "qwen-code" else "")
    yield case(
        "a program that is missing", text({"gone": {"command": "no-such-program-anywhere"}, "one": ENTRY}), dead="gone"
    )
    yield case("disabled: true", text({"off": entry(disabled=True), "one": ENTRY}))
    yield case("enabled: false", text({"off": entry(enabled=False), "one": ENTRY}))
    yield case("an unknown field", text({"one": entry(flavour="mint")}))
    yield case("command is a number", text({"bad": {"command": 3}, "one": ENTRY}))
    yield case(
        "args is a text",
        text({"bad": {"command": "@PY@", "args": "@SERVER@"}, "one": ENTRY}),
        silent="its list stops there" if family else "",
    )
    yield case("an entry without anything", text({"bad": {}, "one": ENTRY}))
    yield case("an entry that is a text", text({"bad": "npx x", "one": ENTRY}))
    yield case("env with a number", text({"one": entry(env={"PORT": 8080})}))
    yield case("key `servers`", text({"one": ENTRY}, key="servers"))
    yield case("key `mcp_servers`", text({"one": ENTRY}, key="mcp_servers"))
    yield case("a byte order mark", BOM + b'{"mcpServers": {}}')
    yield case("a trailing comma", one.replace("]\n    }\n", "]\n    },\n"))
    yield case("a comment", "// mine\n" + one)
    yield case("a block comment inside", one.replace('"one"', '/* here */ "one"'))
    yield case("a syntax error", one[:-3])
    yield case("an empty file", "")
    yield case(
        "a key twice",
        '{"mcpServers": {"one": {"command": "no-such-program"}, "one": {"command": "@PY@", "args": ["@SERVER@"]}}}',
    )
    yield case("lines that end in CR LF", one.replace("\n", "\r\n"))
    yield case("a name with a space", text({"my server": ENTRY}))
    yield case("a name with a dot", text({"my.server": ENTRY}))
    yield case("a variable that is set", text({"one": entry("${FLAVOUR}", env={"A": "${FLAVOUR}"})}), FLAVOUR="mint")
    yield case("a variable that is missing", text({"one": entry("${NO_SUCH_FLAVOUR}")}))
    yield case("broken of the project", one, one[:-3])
    yield case("a broken entry of the project", one, text({"bad": {"command": 3}, "ours": ENTRY}))
    yield case("two names, one command", text({"one": ENTRY, "two": ENTRY}))
    yield case("type stdio", text({"one": entry(type="stdio")}))
    yield case("type local", text({"one": entry(type="local")}))
    yield case("type nonsense", text({"bad": entry(type="pigeon"), "one": ENTRY}))
    yield case("names that differ in case", text({"one": ENTRY, "ONE": ENTRY}))


def _claude() -> Iterator[Situation]:
    def case(name: str, files: Files, **environ: str) -> Situation:
        return Situation("claude-code", name, files, environ)

    def main(user: object = None, **project: object) -> str:
        return json.dumps({"mcpServers": user or {}, "projects": {"@PROJECT@": project}})

    three = text({"a": ENTRY, "b": ENTRY, "c": ENTRY})
    yield case("local beats project and user", {
        "~/.claude.json": main({"one": entry("user")}, mcpServers={"one": entry("local")}),
        "./.mcp.json": text({"one": entry("project")}),
        "~/.claude/settings.json": '{"enableAllProjectMcpServers": true}',
    })  # fmt: skip
    yield case("of the project, not approved", {"./.mcp.json": three})
    yield case(
        "approved by the project itself",
        {"./.mcp.json": three, "./.claude/settings.json": '{"enabledMcpjsonServers": ["a"]}'},
    )
    yield case(
        "approved by the user",
        {
            "./.mcp.json": three,
            "~/.claude/settings.json": '{"enabledMcpjsonServers": ["a"], "disabledMcpjsonServers": ["b"]}',
        },
    )
    yield case("trusted, approved locally", {
        "./.mcp.json": three, "~/.claude.json": main(hasTrustDialogAccepted=True),
        "./.claude/settings.local.json": '{"enabledMcpjsonServers": ["a"], "disabledMcpjsonServers": ["b"]}',
    })  # fmt: skip
    yield case(
        "on the project's list of disabled",
        {"~/.claude.json": main({"a": ENTRY, "b": ENTRY}, disabledMcpServers=["b"])},
    )
    yield case("servers in settings.json", {"~/.claude/settings.json": three})
    yield case("servers in .claude/.mcp.json", {"./.claude/.mcp.json": three})
    yield case(
        ".mcp.json above the repository",
        {"~/code/.mcp.json": text({"up": ENTRY}), "~/.claude/settings.json": '{"enableAllProjectMcpServers": true}'},
    )
    yield case(".mcp.json here and above", {
        "~/code/.mcp.json": text({"up": ENTRY, "one": entry("above")}), "./.mcp.json": text({"one": entry("here")}),
        "~/.claude/settings.json": '{"enableAllProjectMcpServers": true}',
    })  # fmt: skip
    yield case(
        "denied by the user",
        {
            "~/.claude.json": main({"a": ENTRY, "b": ENTRY}),
            "~/.claude/settings.json": '{"deniedMcpServers": [{"serverName": "a"}]}',
        },
    )
    yield case("reserved name", {"~/.claude.json": main({"workspace": ENTRY, "a": ENTRY})})
    yield case(
        "another configuration folder",
        {"~/other/.claude.json": main({"a": ENTRY}), "~/.claude.json": main({"b": ENTRY})},
        CLAUDE_CONFIG_DIR="@HOME@/other",
    )
    yield case(
        "a project's entry of another folder",
        {"~/.claude.json": json.dumps({"projects": {"/elsewhere": {"mcpServers": {"a": ENTRY}}}})},
    )
    yield case("a plugin", {
        "~/market/.claude-plugin/marketplace.json": json.dumps(
            {"name": "market", "owner": {"name": "x"}, "plugins": [{"name": "fine", "source": "./fine"}]}),
        "~/market/fine/.claude-plugin/plugin.json": '{"name": "fine", "version": "2.0.0"}',
        "~/market/fine/.mcp.json": text({"one": {"command": "@PY@", "args": ["@SERVER@", "${CLAUDE_PLUGIN_ROOT}"]}}),
        "~/.claude/plugins/installed_plugins.json": json.dumps({"version": 2, "plugins": {"fine@market": [
            {"scope": "user", "installPath": "@HOME@/.claude/plugins/cache/market/fine/1.0.0", "version": "1.0.0"}]}}),
        "~/.claude/plugins/cache/market/fine/1.0.0/.claude-plugin/plugin.json": '{"name": "fine", "version": "1.0.0"}',
        "~/.claude/plugins/cache/market/fine/1.0.0/.mcp.json": text({"old": ENTRY}),
        "~/.claude/plugins/known_marketplaces.json": json.dumps({"market": {"source": {"source": "directory", "path": "@HOME@/market"},
            "installLocation": "@HOME@/market", "lastUpdated": "2026-01-01T00:00:00.000Z"}}),
        "~/.claude/settings.json": json.dumps({"enabledPlugins": {"fine@market": True}, "extraKnownMarketplaces": {
            "market": {"source": {"source": "directory", "path": "@HOME@/market"}}}}),
    })  # fmt: skip
    tool = {
        ".claude/skills/tool/.claude-plugin/plugin.json": '{"name": "tool", "version": "1.0.0"}',
        ".claude/skills/tool/.mcp.json": text({"one": ENTRY}),
    }
    mine, ours = ({f"{base}/{path}": content for path, content in tool.items()} for base in "~.")
    yield case("a plugin among the skills", mine)
    yield case(
        "a plugin among the skills, off",
        {**mine, "~/.claude/settings.json": '{"enabledPlugins": {"tool@skills-dir": false}}'},
    )
    yield case("a plugin among the project's skills", ours)
    yield case(
        "a plugin among a trusted project's skills", {**ours, "~/.claude.json": main(hasTrustDialogAccepted=True)}
    )


def _gemini() -> Iterator[Situation]:
    for host, home, extension in (("gemini-cli", ".gemini", "gemini"), ("qwen-code", ".qwen", "qwen")):
        trust = {"~/.gemini/trustedFolders.json": '{"@PROJECT@": "TRUST_FOLDER"}'} if host == "gemini-cli" else {}

        def case(name: str, files: Files, host: str = host, trust: Files = trust, **environ: str) -> Situation:
            return Situation(host, name, {**trust, **files}, environ)

        settings = f"~/{home}/settings.json"
        folder = f"~/{home}/extensions/fine"
        manifest = json.dumps(
            {"name": "fine", "version": "1.0.0", "mcpServers": {"one": entry("extension"), "own": ENTRY}}
        )
        yield case("mcp.excluded", {settings: text({"a": ENTRY, "b": ENTRY}, mcp={"excluded": ["a"]})})
        yield case("mcp.allowed", {settings: text({"a": ENTRY, "b": ENTRY}, mcp={"allowed": ["a"]})})
        yield case("an extension", {f"{folder}/{extension}-extension.json": manifest})
        yield case("an extension and the user, one name", {
            f"{folder}/{extension}-extension.json": manifest, settings: text({"one": entry("user")}),
        })  # fmt: skip
        yield case("an extension that is off", {
            f"{folder}/{extension}-extension.json": manifest,
            f"~/{home}/extensions/extension-enablement.json": '{"fine": {"overrides": ["!@HOME@/*"]}}',
        })  # fmt: skip
        yield case("a file mcp.json beside settings.json", {f"~/{home}/mcp.json": text({"a": ENTRY})})
        yield case("settings of the folder above", {f"~/code/{home}/settings.json": text({"a": ENTRY})})
    yield Situation(
        "gemini-cli",
        "a folder that is not trusted",
        {"~/.gemini/settings.json": text({"a": ENTRY}), "./.gemini/settings.json": text({"b": ENTRY})},
    )
    yield Situation("gemini-cli", "trust is switched off", {
        "~/.gemini/settings.json": text({"a": ENTRY}, security={"folderTrust": {"enabled": False}}),
        "./.gemini/settings.json": text({"b": ENTRY}),
    })  # fmt: skip
    yield Situation("gemini-cli", "trusted as the folder above", {
        "~/.gemini/trustedFolders.json": '{"@HOME@": "TRUST_FOLDER"}', "~/.gemini/settings.json": text({"a": ENTRY}),
    })  # fmt: skip


def _copilot() -> Iterator[Situation]:
    def case(name: str, files: Files, **environ: str) -> Situation:
        return Situation("copilot-cli", name, files, environ)

    trust = {"~/.copilot/config.json": '{"trusted_folders": ["@PROJECT@"]}'}
    yield case(
        "a folder that is not trusted",
        {"~/.copilot/mcp-config.json": text({"a": ENTRY}), "./.mcp.json": text({"b": ENTRY})},
    )
    yield case(".github/mcp.json", {**trust, "./.github/mcp.json": text({"a": ENTRY})})
    yield case(
        ".github/mcp.json beside .mcp.json",
        {**trust, "./.mcp.json": text({"a": ENTRY}), "./.github/mcp.json": text({"b": ENTRY})},
    )
    yield case(".vscode/mcp.json", {**trust, "./.vscode/mcp.json": text({"a": ENTRY}, key="servers")})
    yield case(
        "disabledMcpServers",
        {
            "~/.copilot/mcp-config.json": text({"a": ENTRY, "b": ENTRY}),
            "~/.copilot/settings.json": '{"disabledMcpServers": ["a"]}',
        },
    )
    yield case(
        "another home",
        {"~/other/mcp-config.json": text({"a": ENTRY}), "~/.copilot/mcp-config.json": text({"b": ENTRY})},
        COPILOT_HOME="@HOME@/other",
    )
    yield case("tools", {"~/.copilot/mcp-config.json": text({"a": entry(tools=["echo"])})})


def _toml(name: str, *args: str, more: str = "") -> str:
    words = "".join(f', "{each}"' for each in args)
    return f'[mcp_servers.{name}]\ncommand = "@PY@"\nargs = ["@SERVER@"{words}]\n{more}\n'


def _codex() -> Iterator[Situation]:
    trusted = '\n[projects."@PROJECT@"]\ntrust_level = "trusted"\n'

    def case(name: str, user: str | bytes, project: str | None = None, dead: str = "", **more: str) -> Situation:
        files: dict[str, str | bytes] = {"~/.codex/config.toml": user}
        if project is not None:
            files["./.codex/config.toml"] = project
        for path, content in more.items():
            files[path] = content
        return Situation("codex", name, files, {}, frozenset(dead.split()))

    one = _toml("one")
    yield Situation("codex", "nothing at all", {})
    yield case("one server", one)
    yield case("one of each", _toml("mine") + trusted, _toml("ours"))
    yield case("one of the project, not trusted", one, _toml("ours"))
    yield case(
        "one name in both",
        _toml("one", "mine", more="startup_timeout_sec = 20") + trusted,
        '[mcp_servers.one]\nargs = ["@SERVER@", "ours"]\n',
    )
    yield case("a merge that neither file contains", one + trusted, '[mcp_servers.one]\nurl = "@URL@"\n')
    yield case("switched off by the project", one + trusted, "[mcp_servers.one]\nenabled = false\n")
    yield case("enabled = false", _toml("off", more="enabled = false") + one)
    yield case("disabled = true", _toml("off", more="disabled = true") + one)
    yield case("http", '[mcp_servers.web]\nurl = "@URL@"\n')
    yield case("http that is not there", '[mcp_servers.web]\nurl = "http://127.0.0.1:9/mcp"\n', dead="web")
    yield case(
        "a program that is missing", '[mcp_servers.gone]\ncommand = "no-such-program-anywhere"\n' + one, dead="gone"
    )
    yield case("command and url", '[mcp_servers.bad]\ncommand = "x"\nurl = "@URL@"\n' + one)
    yield case("an entry without anything", "[mcp_servers.bad]\n" + one)
    yield case("a token in the file", '[mcp_servers.bad]\nurl = "@URL@"\nbearer_token = "x"\n' + one)
    yield case("headers on a program", _toml("bad", more='http_headers = { A = "b" }') + one)
    yield case("command is a number", "[mcp_servers.bad]\ncommand = 3\n" + one)
    yield case("env with a number", _toml("bad", more="env = { PORT = 8080 }") + one)
    yield case("an unknown field", _toml("one", more='flavour = "mint"'))
    yield case("a bad approval mode", _toml("bad", more='default_tools_approval_mode = "sometimes"') + one)
    yield case("table mcpServers", '[mcpServers.one]\ncommand = "@PY@"\nargs = ["@SERVER@"]\n')
    yield case("a name with a space", _toml('"my server"') + one)
    yield case("a name with a dot", _toml('"my.server"'))
    yield case("a byte order mark", BOM + b'[mcp_servers.off]\ncommand = "x"\nenabled = false\n')
    yield case("lines that end in CR LF", one.replace("\n", "\r\n"))
    yield case("a table twice", one + one)
    yield case("a syntax error", one + "[mcp_servers\n")
    yield case("an empty file", "")
    yield case("comments", "# mine\n" + one + "# end\n")
    yield case("deny list", _toml("one", more='disabled_tools = ["wipe"]'))
    yield case("a variable", _toml("one", "${FLAVOUR}"))
    yield case("broken of the project, not trusted", one, "[mcp_servers\n")
    yield case("broken of the project, trusted", one + trusted, "[mcp_servers\n")
    yield Situation(
        "codex",
        "another home",
        {"~/other/config.toml": one, "~/.codex/config.toml": _toml("two")},
        {"CODEX_HOME": "@HOME@/other"},
    )
    yield Situation("codex", "a file mcp.json", {"~/.codex/mcp.json": text({"one": ENTRY})})
    yield Situation("codex", "the folder above, trusted", {
        "~/.codex/config.toml": '[projects."@HOME@/code"]\ntrust_level = "trusted"\n', "./.codex/config.toml": one,
    })  # fmt: skip
    plugin = {
        "~/.codex/plugins/cache/market/fine/1.9.0/.codex-plugin/plugin.json": '{"name": "fine", "version": "1.9.0"}',
        "~/.codex/plugins/cache/market/fine/1.9.0/.mcp.json": text({"old": ENTRY}),
        "~/.codex/plugins/cache/market/fine/1.10.0/.codex-plugin/plugin.json": '{"name": "fine", "version": "1.10.0"}',
        "~/.codex/plugins/cache/market/fine/1.10.0/.mcp.json": text({"new": ENTRY, "one": entry("plugin")}),
    }
    yield Situation(
        "codex",
        "a plugin in two versions",
        {**plugin, "~/.codex/config.toml": '[plugins."fine@market"]\nenabled = true\n'},
    )
    yield Situation(
        "codex",
        "a plugin that is off",
        {**plugin, "~/.codex/config.toml": '[plugins."fine@market"]\nenabled = false\n'},
    )
    yield Situation("codex", "a plugin that nobody switched on", {**plugin, "~/.codex/config.toml": one})
    yield Situation(
        "codex",
        "a plugin and the user, one name",
        {**plugin, "~/.codex/config.toml": one + '[plugins."fine@market"]\n'},
    )
    yield Situation("codex", "the user's entry, off, and a plugin's", {
        **plugin, "~/.codex/config.toml": _toml("one", more="enabled = false") + '[plugins."fine@market"]\n',
    })  # fmt: skip


def _opencode() -> Iterator[Situation]:
    def local(*args: str, **more: object) -> dict[str, object]:
        return {"type": "local", "command": ["@PY@", "@SERVER@", *args], **more}

    def case(
        name: str, user: str | bytes | None, project: str | None = None, dead: str = "", **environ: str
    ) -> Situation:
        files: dict[str, str | bytes] = {}
        if user is not None:
            files["~/.config/opencode/opencode.json"] = user
        if project is not None:
            files["./opencode.json"] = project
        return Situation("opencode", name, files, environ, frozenset(dead.split()))

    def mcp(table: object) -> str:
        return text(table, key="mcp")

    one = mcp({"one": local()})
    yield case("nothing at all", None)
    yield case("one server", one)
    yield case("one of each", mcp({"mine": local()}), mcp({"ours": local()}))
    yield case("one name in both", mcp({"one": local("mine", environment={"A": "1"})}), mcp({"one": local("ours")}))
    yield case("switched off by the project", one, mcp({"one": {"enabled": False}}))
    yield case("enabled: false", mcp({"off": local(enabled=False), "one": local()}))
    yield case("disabled: true", mcp({"off": local(disabled=True), "one": local()}))
    yield case("http", mcp({"web": {"type": "remote", "url": "@URL@"}}))
    yield case(
        "a program that is missing",
        mcp({"gone": {"type": "local", "command": ["no-such-program"]}, "one": local()}),
        dead="gone",
    )
    yield case("command is a text", mcp({"bad": {"type": "local", "command": "npx x"}, "one": local()}))
    yield case("no type", mcp({"bad": {"command": ["@PY@", "@SERVER@"]}, "one": local()}))
    yield case("key mcpServers", text({"one": ENTRY}))
    yield case("a comment", "// mine\n" + one)
    yield case("a trailing comma", one.replace("]\n    }\n", "]\n    },\n"))
    yield case("a byte order mark", BOM + b'{"mcp": {}}')
    yield case("a syntax error", one[:-3])
    yield case("an empty file", "")
    yield case("a name with a space", mcp({"my server": local()}))
    yield case("a variable that is set", mcp({"one": local("{env:FLAVOUR}")}), FLAVOUR="mint")
    yield case("a variable that is missing", mcp({"one": local("{env:NO_SUCH_FLAVOUR}")}))
    yield case("a remote over a local", one, mcp({"one": {"type": "remote", "url": "@URL@"}}))
    yield Situation("opencode", "json and jsonc", {
        "~/.config/opencode/opencode.json": mcp({"a": local(), "one": local("json")}),
        "~/.config/opencode/opencode.jsonc": mcp({"b": local(), "one": local("jsonc")}),
    })  # fmt: skip
    yield Situation("opencode", ".opencode over the project", {
        "./opencode.json": mcp({"one": local("project")}), "./.opencode/opencode.json": mcp({"one": local("hidden")}),
    })  # fmt: skip
    yield Situation("opencode", "the folder above", {"~/code/opencode.json": mcp({"up": local()})})


def every() -> list[Situation]:
    found = [each for host, shape in SHAPES.items() for each in _common(host, shape)]
    return [*found, *_claude(), *_gemini(), *_copilot(), *_codex(), *_opencode()]
