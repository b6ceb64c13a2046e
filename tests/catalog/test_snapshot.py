"""A snapshot as it is stored for the next run: the same after it was read back, whatever the server said of itself."""

from __future__ import annotations

import pytest

from interlock.catalog.snapshot import KINDS, Kind, build, keep, recall
from interlock.wire import messages
from interlock.wire.eras import Era
from interlock.wire.messages import Raw, RawMap

PAGES: dict[Kind, list[RawMap]] = {
    "tools": [{"tools": Raw(b'[{"name":"echo","inputSchema":{"type":"object"}}]'), "ttlMs": Raw(b"5000")}],
    "prompts": [{"prompts": Raw(b'[{"name":"p"}]')}],
    "resources": [{"resources": Raw(b'[{"uri":"x://y","name":"y"}]')}],
    "templates": [],
}


@pytest.mark.parametrize("era", Era)
@pytest.mark.parametrize("instructions", [None, "Read first."])
@pytest.mark.parametrize("server_info", [None, b'{"name":"srv","version":"1"}'])
@pytest.mark.parametrize("capabilities", [{}, {"tools": Raw(b'{"listChanged":true}')}])
def test_what_is_kept_is_what_is_recalled(
    era: Era, instructions: str | None, server_info: bytes | None, capabilities: RawMap
) -> None:
    made = build(
        "srv", era, PAGES, capabilities=capabilities, instructions=instructions, server_info=server_info,
        over_http=True, problems=[], at=1.0,
    )  # fmt: skip
    found = recall("srv", keep(made, PAGES), over_http=True)
    assert found is not None
    assert found.remembered
    assert (found.era, found.instructions, found.server_info) == (era, instructions, server_info)
    assert messages.write_map(found.capabilities) == messages.write_map(capabilities)
    for kind in KINDS:
        assert list(found.listings[kind].entries) == list(made.listings[kind].entries)
    assert list(found.listings["tools"].entries) == ["echo"]
    assert found.digest == made.digest


@pytest.mark.parametrize(
    "stored", [b"", b"{}", b"[]", b'{"era":"future"}', b"\xff", b'{"era":"modern","capabilities":1}']
)
def test_what_cannot_be_read_is_forgotten(stored: bytes) -> None:
    assert recall("srv", stored, over_http=True) is None
