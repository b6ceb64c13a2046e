"""Reaching MCP servers: child processes, Streamable HTTP and HTTP+SSE, in whichever era each server speaks."""
