"""agent-routing/v1 manifests: what they say, where they are read from, and whether a person trusted them."""
