"""The gates. Each answers allow, ask or deny by itself; the strictest answer wins."""
