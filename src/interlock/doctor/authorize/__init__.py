"""How callers log in to the server: documents, registration, grant, token, and the login that may be open."""
