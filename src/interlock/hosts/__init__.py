"""AI hosts: where each keeps its MCP configuration, what it makes of it, and how an entry is written for it."""
