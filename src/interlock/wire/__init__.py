"""The protocol without I/O: bytes in, messages out, for both eras of MCP. Nothing here opens a socket or reads a clock."""
