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
MAX_VALUES: Final = 1_000_000
"""Values in one message. Each costs about 50 bytes more than its text once its array or object is taken apart."""
MAX_BATCH: Final = 1000
"""Messages in one batch (revision 2025-03-26)."""
MAX_TOKEN_BYTES: Final = 1024
"""A progress token as JSON. It is repeated in every notification."""
MAX_EVENT_ID_BYTES: Final = 1024
"""An event id of a stream. It is sent back as a header."""
MAX_METHOD_LENGTH: Final = 256
MAX_HEADER_BYTES: Final = 64 * 1024
"""All header lines of one HTTP message together."""
MAX_LIST_PAGES: Final = 1000
"""Pages that one list of one server may have."""
MAX_LIST_ITEMS: Final = 20_000
"""Items that one list of one server may have."""
