"""Extensions of Gemini CLI and of Qwen Code, which are laid out alike.

`extensions/NAME/gemini-extension.json` (`qwen-extension.json`), and beside it who installed it from where. A linked one is
loaded from its source. `extension-enablement.json` has path patterns, the last one that fits decides, `!` switches off; no
pattern that fits: on. Observed with Gemini CLI 0.61.0 and Qwen Code 0.15.10.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from interlock.hosts.declaration import Spot
from interlock.hosts.fact import Fact
from interlock.hosts.machine import Machine
from interlock.hosts.plugins import files
from interlock.hosts.plugins.package import Layout, fill, manifest, place
from interlock.hosts.plugins.plugin import Kind, Plugin


class _Kind(NamedTuple):
    kind: Kind
    host: str
    home: str
    install: str
    layout: Layout


def _layout(manifests: tuple[str, ...], shown: str, version: str) -> Layout:
    return Layout(
        manifests=manifests, servers=(), hooks=("hooks/hooks.json",), scope="extension", joined=False,
        place=place(shown, Fact(True, "O", version), rank=5, scope="extension"), roots=("${extensionPath}",),
    )  # fmt: skip


GEMINI = _Kind(
    "gemini-extension", "gemini-cli", ".gemini", ".gemini-extension-install.json",
    _layout(("gemini-extension.json",), "~/.gemini/extensions/<name>/gemini-extension.json", "0.61.0"),
)  # fmt: skip
QWEN = _Kind(
    "qwen-extension", "qwen-code", ".qwen", ".qwen-extension-install.json",
    _layout(("qwen-extension.json", "gemini-extension.json"), "~/.qwen/extensions/<name>/qwen-extension.json", "0.15.10"),
)  # fmt: skip


def found(machine: Machine, of: _Kind) -> list[Plugin]:
    base = machine.user(of.home, "extensions")
    enablement = machine.join(base, "extension-enablement.json")
    switches = files.document(machine, enablement)
    plugins = []
    for folder_name in files.folders(machine, base):
        folder = machine.join(base, folder_name)
        installed = files.table(machine, machine.join(folder, of.install))
        source, type_ = files.text_of(installed.get("source")), files.text_of(installed.get("type"))
        if type_ == "link" and source:
            folder = machine.expanded(source)
        path, loaded, _ = manifest(machine, folder, of.layout)
        if not path:
            continue
        name = files.text_of(files.inner(loaded.value if loaded else None).get("name")) or folder_name
        plugin = Plugin(
            kind=of.kind, host=of.host, name=name, folder=folder,
            origin=f"{source} ({type_})" if source and type_ else source or "put there by hand",
        )  # fmt: skip
        overrides = files.inner(switches.value if switches else None, name).get("overrides")
        plugin.enabled, plugin.decided = True, "nothing switches it off"
        for index, rule in enumerate(overrides if isinstance(overrides, list) else []):
            if isinstance(rule, str) and fits(rule.removeprefix("!"), machine):
                plugin.enabled = not rule.startswith("!")
                plugin.decided = "the last pattern in `overrides` that fits this folder"
                plugin.decided_by = files.spot(enablement, switches, name, "overrides", index)
        if plugin.decided_by is None:
            plugin.decided_by = Spot(path)
        plugins.append(fill(plugin, machine, of.layout))
    return plugins


def fits(pattern: str, machine: Machine) -> bool:
    """Whether a pattern such as `/home/me/*` holds the working directory; slashes end both."""
    folder = machine.folder.replace("\\", "/").rstrip("/") + "/"
    pattern = pattern.replace("\\", "/")
    whole = pattern.endswith("*")
    body = pattern.rstrip("*").rstrip("/") + "/"
    regex = ".*".join(re.escape(part) for part in body.split("*")) + (".*" if whole else "")
    flags = re.IGNORECASE if machine.platform == "windows" else 0
    return re.fullmatch(regex, folder, flags) is not None
