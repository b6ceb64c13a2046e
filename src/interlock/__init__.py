"""Interlock: one place between AI coding hosts and the MCP servers they use."""

__version__ = "0.1.0"
