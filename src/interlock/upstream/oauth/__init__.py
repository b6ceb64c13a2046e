"""One OAuth client for every remote server: discovery, registration, login, and grants that the whole machine shares."""
