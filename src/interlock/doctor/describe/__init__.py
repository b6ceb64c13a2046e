"""What servers offer, under which names, and at what cost."""
