"""Asking the hosts themselves what they make of their files. Starts their programs, and some of these start the servers."""
