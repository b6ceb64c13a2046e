"""The lab of authorization, honest until told otherwise, and a bare client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.oauth.client import BareClient

from interlock.lab.auth import AuthLab


@pytest.fixture
async def lab() -> AsyncIterator[AuthLab]:
    async with AuthLab() as lab:
        yield lab


@pytest.fixture
async def client(lab: AuthLab) -> AsyncIterator[BareClient]:
    async with BareClient(lab.url) as client:
        yield client
