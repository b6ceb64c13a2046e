"""What is worth knowing about a declared server or a host's file: one check a file, its codes in `codes`."""
