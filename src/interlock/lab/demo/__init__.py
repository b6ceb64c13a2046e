"""The example that `interlock demo` runs: a manifest, and two small servers that both publish a tool named `search`."""
