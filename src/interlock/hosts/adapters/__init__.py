"""One file a host."""
