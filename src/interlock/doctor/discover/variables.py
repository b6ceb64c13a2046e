"""Whether the variables that the manifests refer to are set here."""

from __future__ import annotations

from interlock.doctor.examination import Examination
from interlock.doctor.finding import Check, Finding
from interlock.doctor.shown import listed
from interlock.manifest.config import HttpTransport, ServerConfig
from interlock.model.stage import Stage

CHECK = Check("variables", Stage.DISCOVER)


async def check(examination: Examination) -> list[Finding]:
    findings = []
    for config in examination.ready():
        absent = sorted({name for name in _names(config) if name and not examination.environ.get(name)})
        if absent:
            them = "it" if len(absent) == 1 else "them"
            findings.append(
                CHECK.found(
                    "problem", f"`{config.key}` needs {listed(absent)}, not set in this environment", config.origin,
                    "It is not started without. The environment of a host that starts Interlock may differ from this one.",
                    f"Set {them} where the host, or `interlock up`, is started: {listed(absent)}.", server=config.key,
                )
            )  # fmt: skip
    return findings


def _names(config: ServerConfig) -> list[str | None]:
    transport = config.transport
    if not isinstance(transport, HttpTransport):
        return [value.source for value in transport.env]
    names = [transport.endpoint_env, *(each.source for each in (*transport.headers, *transport.session_headers))]
    if transport.token is not None and not (transport.token.file is not None and transport.token.file.is_file()):
        names.append(transport.token.env)
    if transport.oauth is not None:
        names += [transport.oauth.client_id_env, transport.oauth.client_secret_env]
    return names
