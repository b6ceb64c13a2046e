"""What hosts connect to: Streamable HTTP, stdio, and the local socket between `connect` and a running `up`."""
