"""Whether a model can tell one tool from another."""
