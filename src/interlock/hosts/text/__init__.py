"""Hosts' files as text: read with the place of every member, changed without touching anything else."""
