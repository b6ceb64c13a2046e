"""OBSERVE: can we prove it later? The route of each call, recorded off the hot path, redacted, and shown to people."""
