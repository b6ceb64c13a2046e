"""The client that the settings name, for an authorization server that was told of it beforehand."""

from __future__ import annotations

from collections.abc import Mapping

from interlock.manifest.config import OAuth


def preset_of(settings: OAuth, environ: Mapping[str, str]) -> str | None:
    """The client id that the settings name, by themselves or through the environment."""
    if settings.client_id is not None:
        return settings.client_id
    return (environ.get(settings.client_id_env) or None) if settings.client_id_env is not None else None
