"""Starts ContextForge with SQLite and its own authentication, no plugins, no interface, and no rate limit."""

from __future__ import annotations

import http.client
import json
import secrets
import subprocess
from pathlib import Path

from harness.processes import Program
from harness.rivals import Rivals

_USER = "bench@example.com"


def settings(folder: Path) -> dict[str, str]:
    """Its environment, with secrets made for this run. The rate limit is off because it would be the thing measured."""
    password = f"Aa1!{secrets.token_urlsafe(24)}"
    return {
        "DATABASE_URL": f"sqlite:///{folder}/contextforge.db",
        "JWT_SECRET_KEY": secrets.token_urlsafe(48),
        "AUTH_ENCRYPTION_SECRET": secrets.token_urlsafe(48),
        "PLATFORM_ADMIN_EMAIL": _USER,
        "PLATFORM_ADMIN_PASSWORD": password,
        "DEFAULT_USER_PASSWORD": password,
        "BASIC_AUTH_PASSWORD": password,
        "SSRF_ALLOW_LOCALHOST": "true",
        "SSRF_ALLOW_PRIVATE_NETWORKS": "true",
        "RATE_LIMITING_ENABLED": "false",
        "PLUGINS_ENABLED": "false",
        "MCPGATEWAY_UI_ENABLED": "false",
        "MCPGATEWAY_ADMIN_API_ENABLED": "false",
        "CACHE_TYPE": "memory",
        "LOG_LEVEL": "ERROR",
    }


def start(rivals: Rivals, folder: Path, port: int) -> tuple[Program, str]:
    """The running gateway, and the token that its clients send."""
    environment = settings(folder)
    command = [str(rivals.program("contextforge", "mcpgateway")), "--host", "127.0.0.1", "--port", str(port)]
    program = Program(command, folder / "contextforge.log", environment=environment, directory=folder)
    try:
        program.wait_for_port(port, 120)
        maker = [str(rivals.python("contextforge")), "-m", "mcpgateway.utils.create_jwt_token"]
        maker += ["--username", _USER, "--exp", "600", "--secret", environment["JWT_SECRET_KEY"]]
        made = subprocess.run(maker, env=environment, cwd=folder, capture_output=True, text=True, check=True)
        return program, made.stdout.split()[-1]
    except BaseException:
        program.stop()
        raise


def register(port: int, token: str, url: str) -> None:
    """Adds the upstream; raises ValueError with its answer where it refuses."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"name": "echo", "url": url, "transport": "STREAMABLEHTTP"})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request("POST", "/gateways", body, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status not in (200, 201):
        raise ValueError(f"ContextForge refused the upstream: HTTP {answer.status} {text[:300]!r}")
