"""What became of calls, and where their time went."""
