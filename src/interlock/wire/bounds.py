"""Every size that a peer could try to make unbounded, in one place."""

from __future__ import annotations

from typing import Final

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024
"""One JSON-RPC message from a server, on any transport."""
MAX_REQUEST_BYTES: Final = 16 * 1024 * 1024
"""One JSON-RPC message from a client."""
MAX_ID_LENGTH: Final = 256
"""Characters of a string id."""
MAX_DEPTH: Final = 200
"""Nesting of arrays and objects. Real messages stay below 40; the JSON reader itself gives up near 1,000."""
MAX_METHOD_LENGTH: Final = 256
MAX_HEADER_BYTES: Final = 64 * 1024
"""All header lines of one HTTP message together."""
MAX_LIST_PAGES: Final = 1000
"""Pages that one list of one server may have."""
MAX_LIST_ITEMS: Final = 20_000
"""Items that one list of one server may have."""
