"""The behaviour matrix: every behaviour of the protocol, for both eras and every transport on both sides of the gateway."""
