"""Fixture MCP servers of known behaviour, and the acceptance runs that use them.

The servers are written from the specification with the standard library alone, so that a fault in Interlock's own wire
code, or in an SDK, cannot hide on both sides of a test.
"""
