"""A real authorization server with an MCP server behind it, and the person who clicks, for tests of authorization."""
