"""Whether answers were well formed, and small enough for hosts."""
