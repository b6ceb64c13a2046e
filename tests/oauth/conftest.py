"""The real authorization server as a fixture, skipped with the reason where Node.js is missing."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.conformance import programs

from .oidc import OidcLab, oidc_lab, provider_package


@pytest.fixture
async def real_lab() -> AsyncIterator[OidcLab]:
    """oidc-provider with an MCP server of the modern era behind it."""
    try:
        programs.node()
        provider_package()
    except programs.Missing as missing:
        pytest.skip(str(missing))
    async with oidc_lab() as lab:
        yield lab
